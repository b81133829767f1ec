"""A decision tree and a forest: splits that are public or chosen from noisy histograms, leaves of noisy counts.

**Forest.** Trees of random splits, drawn from a public stream over the declared bounds, look at no record; only the
class counts of their leaves do. A record is in one leaf of each tree, so all leaves of T trees are one vector of
sensitivity √T, released once. How deep trees are follows from a noisy count of the records, for 1 % of the budget,
unless it is given: leaves that hold fewer records than their noise say nothing.

**Tree.** Level by level, every open node has a noisy histogram of class by bin for each feature; the best split of the
noisy counts is post-processing. A record is in one node of a level, once for each of d features: √d a level. The leaves
are counted once more, by what is left of the budget.

Reference: Jagannathan, Pillaipakkamnatt and Wright (2009) for random trees; Blum, Dwork, McSherry and Nissim (2005) for
noisy counts in greedy ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.estimators.bins import Bins
from discreet.estimators.sums import group_sums, noise_for
from discreet.fitting import FitPlan
from discreet.mechanisms import Budget

__all__ = ["Forest", "Greedy", "Splits", "shares"]

LEAVES = 0.4  # the share of the budget that a greedy tree's leaves take
COUNTING = 0.01  # the share that a forest counts its records with
DEEP, SHALLOW = 9, 2  # levels of a forest that are not given


@dataclass
class Splits:
    """A complete binary tree: node i asks whether the code of its feature is above its threshold, and sends the record
    to 2i + 2, otherwise to 2i + 1. Without a question (feature -1) everybody goes to the left.
    """

    depth: int
    feature: NDArray[np.int64] = field(init=False)
    threshold: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        inner = 2**self.depth - 1
        self.feature, self.threshold = np.full(inner, -1), np.zeros(inner, np.int64)

    @property
    def leaves(self) -> int:
        """How many there are."""
        return int(2**self.depth)

    def nodes_of(self, codes: NDArray[np.int64], depth: int | None = None) -> NDArray[np.int64]:
        """The place, within its level, of the node that each record reaches."""
        node = np.zeros(len(codes), np.int64)
        for _ in range(self.depth if depth is None else depth):
            asked = self.feature[node]
            above = codes[np.arange(len(codes)), np.maximum(asked, 0)] > self.threshold[node]
            node = 2 * node + 1 + (above & (asked >= 0))
        return np.asarray(node - (2 ** (self.depth if depth is None else depth) - 1))


@dataclass(frozen=True)
class Forest(FitPlan):
    """Random trees, and one noisy vector of all their leaves; without a depth, a noisy count first."""

    bins: Bins
    classes: NDArray[Any]
    trees: int
    depth: int | None
    budget: Budget
    movement: int
    seed: int

    @cached_property
    def counting(self) -> Any:
        """For the number of records, where that decides the depth."""
        return None if self.depth else noise_for(self.budget.part(COUNTING), 1, 1, 1, self.movement)

    @cached_property
    def noise(self) -> Any:
        """For the class counts of every leaf."""
        size = self.trees * 2 ** (self.depth or DEEP) * len(self.classes)
        left = self.budget if self.depth else self.budget.part(1 - COUNTING)
        return noise_for(left, self.trees, self.trees, size, self.movement)

    @property
    def event(self) -> events.Event:
        """One noisy vector, and the count."""
        return self.noise.event if self.depth else self.counting.event + self.noise.event  # type: ignore[no-any-return]

    def _depth(self, targets: NDArray[Any], rng: random.Rng) -> int:
        """As given, or as deep as leaves of equal size would hold more records than noise."""
        if self.depth:
            return self.depth
        count = float(self.counting.draw(np.array([(targets >= 0).sum()], np.float64), rng)[0])
        return min(max(math.floor(math.log2(max(count, 1.0) / self.noise.deviation)), SHALLOW), DEEP)

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        """Count the leaves, with noise."""
        codes, k = self.bins.codes(rows), len(self.classes)
        public = np.random.default_rng([20232, self.seed])
        depth = self._depth(targets, rng)
        trees = [self._draw_splits(public, depth) for _ in range(self.trees)]
        found = [_counts(tree.nodes_of(codes), targets, tree.leaves, k) for tree in trees]
        noisy = self.noise.draw(np.concatenate(found), rng).reshape(self.trees, -1, k)
        leaves = [shares(counts, self.noise.deviation) for counts in noisy]
        totals = np.maximum(noisy.sum(axis=(0, 1)), self.noise.deviation)
        learnt = {"classes_": self.classes, "trees_": trees, "leaves_": leaves, "bins_": self.bins}
        return learnt | {"class_prior_": totals / totals.sum()}

    def _draw_splits(self, public: np.random.Generator, depth: int) -> Splits:
        """A random feature at each node, and a random threshold within what the path leaves of its range."""
        tree, features = Splits(depth), len(self.bins.counts)
        ranges = {0: [(0, count - 1) for count in self.bins.counts]}
        for node in range(len(tree.feature)):
            within = ranges.pop(node)
            open_ = [j for j in range(features) if within[j][0] < within[j][1]]
            left, right = list(within), list(within)
            if open_:
                j = int(public.choice(open_))
                low, high = within[j]
                cut = int(public.integers(low, high))
                tree.feature[node], tree.threshold[node] = j, cut
                left[j], right[j] = (low, cut), (cut + 1, high)
            ranges[2 * node + 1], ranges[2 * node + 2] = left, right
        return tree


@dataclass(frozen=True)
class Greedy(FitPlan):
    """A tree that is grown level by level from noisy histograms."""

    bins: Bins
    classes: NDArray[Any]
    depth: int
    budget: Budget
    movement: int

    @cached_property
    def growing(self) -> list[Any]:
        """Noise for the histograms of each level."""
        features, share = len(self.bins.counts), self.budget.part((1 - LEAVES) / self.depth)
        sizes = [2**level * sum(self.bins.sizes) * len(self.classes) for level in range(self.depth)]
        return [noise_for(share, features, features, size, self.movement) for size in sizes]

    @cached_property
    def counting(self) -> Any:
        """Noise for the class counts of the leaves, of which a record is in one."""
        return noise_for(self.budget.part(LEAVES), 1, 1, 2**self.depth * len(self.classes), self.movement)

    @property
    def event(self) -> events.Event:
        """Every level, and the leaves."""
        total: events.Event = self.counting.event
        for noise in self.growing:
            total = total + noise.event
        return total

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        """Grow, then count."""
        codes, k, tree = self.bins.codes(rows), len(self.classes), Splits(self.depth)
        for level, noise in enumerate(self.growing):
            nodes, places = 2**level, tree.nodes_of(codes, level)
            totals = [_counts(places * size + codes[:, j], targets, nodes * size, k)
                      for j, size in enumerate(self.bins.sizes)]  # fmt: skip
            ends = np.cumsum([len(part) for part in totals])[:-1]
            parts = np.split(noise.draw(np.concatenate(totals), rng), ends)
            tables = [part.reshape(nodes, size, k) for part, size in zip(parts, self.bins.sizes, strict=True)]
            for node in range(nodes):
                _split(tree, nodes - 1 + node, [table[node] for table in tables], noise.deviation)
        noisy = self.counting.draw(_counts(tree.nodes_of(codes), targets, tree.leaves, k), rng).reshape(-1, k)
        leaves = [shares(noisy, self.counting.deviation)]
        return {"classes_": self.classes, "trees_": [tree], "leaves_": leaves, "bins_": self.bins}


def _counts(places: NDArray[np.int64], targets: NDArray[Any], size: int, classes: int) -> NDArray[np.float64]:
    """Class counts at each place; a record whose label is none of the classes counts nowhere."""
    cells = np.where(targets >= 0, places * classes + targets, -1)
    return group_sums(np.ones(len(cells)), cells, size * classes)


def _split(tree: Splits, node: int, tables: list[NDArray[np.float64]], deviation: float) -> None:
    """The threshold with the largest gain of Gini's index on the noisy counts, if it stands out of the noise."""
    best = 4 * deviation
    for j, table in enumerate(tables):
        below = np.cumsum(table[:-1], axis=0)[:-1]  # the last bin holds what is missing; it goes to the right
        above = table.sum(axis=0) - below
        gains = _purity(below) + _purity(above) - _purity(table.sum(axis=0)[None])
        if len(gains) and gains.max() > best:
            best, at = float(gains.max()), int(gains.argmax())
            tree.feature[node], tree.threshold[node] = j, at


def _purity(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ n_c²/n of noisy counts: records that a guess by the leaf's shares would get right."""
    kept = np.maximum(counts, 0.0)
    return np.asarray((kept**2).sum(axis=1) / np.maximum(kept.sum(axis=1), 1.0))


def shares(counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Class shares of leaves, drawn towards those of all leaves together where the noise is as large as the counts."""
    kept = np.maximum(counts, 0.0)
    overall = np.maximum(kept.sum(axis=0), 1e-9)
    return np.asarray((kept + deviation * overall / overall.sum()) / (kept.sum(axis=1, keepdims=True) + deviation))
