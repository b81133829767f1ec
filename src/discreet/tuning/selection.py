"""Private selection: train a random number of candidates, keep the best, pay for little more than one.

The number of runs is drawn first, from a law of heavy tails, and never shown. Each run draws a candidate from the
public list, trains it, and releases its score; the best is kept and all others are destroyed. What is known of a run
holds for the best, at the price of :class:`discreet.events.Selected`.

References: Liu and Talwar (2019); Papernot and Steinke (2022).

Decision 480.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypedDict, Unpack

from discreet import accounting, events
from discreet.accounting.selection import runs_of
from discreet.adjacency import Adjacency
from discreet.errors import extra
from discreet.random import RngLike, Streams
from discreet.random.process import draw_from
from discreet.random.tap import draw_output
from discreet.release import Chargeable, Operation, Release, charged
from discreet.statistics.asking import spell_out
from discreet.tuning.runs import check_runs, draw_runs
from discreet.tuning.scores import Score
from discreet.tuning.space import Params, candidates

__all__ = ["DEFAULTS", "Chosen", "SearchOptions", "Selection", "select"]


@dataclass(frozen=True)
class Chosen:
    """The best run: its parameters, what it released, and its private score. Nothing is left of the others.

    A candidate that failed has no model, and the worst of scores.
    """

    params: Params
    model: Any = field(repr=False)
    score: float
    event: events.Event = field(repr=False)

    @property
    def failed(self) -> bool:
        """Whether even the best run failed."""
        return self.score == -math.inf


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A private search, as an operation: ``release(data)`` gives the ``Chosen`` one.

    ``train(params)`` is an operation, made from public facts; its release is the model. It is called again for every
    run, with parameters of its own, and must make anew whatever training changes: runs share nothing. ``score`` is an
    operation on (model, data). Candidates may cost different amounts: each run is priced as the costliest.

    ``default`` is what a Poisson law returns when it makes no run at all. The time a search takes tells how many runs
    it made: with a ``cap`` that many are always made, and what exceeds it is charged for.

    >>> from discreet.linear import LogisticRegression
    >>> from discreet.tuning import Correct
    >>> public = {"epsilon": 1.0, "delta": 0, "feature_norm": 1.0, "classes": (0, 1)}
    >>> search = Selection(
    ...     train=lambda params: LogisticRegression(**public, **params).operation(2),
    ...     space={"regularization": [0.01, 0.1]}, score=Correct(epsilon=0.1), mean=10)
    >>> print(search.cost(delta=1e-6))
    ε = 1.1 per candidate becomes 2.07 for the one selected (mean 10, logarithmic), at δ = 1e-06.
    """

    train: Callable[[Params], Operation]
    space: Mapping[str, Any] | Iterable[Mapping[str, Any]]
    score: Score
    mean: float = 10.0
    law: str | float = "logarithmic"
    cap: int | None = None
    default: Any = None
    progress: bool = False

    label = "private selection"

    def __post_init__(self) -> None:
        if self.law == "poisson" and self.default is None:
            raise ValueError("default is missing, but a Poisson number of runs may be none: say what is returned then.")
        units = {each.unit for each in self._operations} | {self.score.unit}
        if len(units) > 1:
            raise ValueError(f"Candidates and score protect {', '.join(sorted(units))}, but must all protect the same.")
        check_runs(runs_of(self.event))

    @cached_property
    def candidates(self) -> list[Params]:
        """The public list, in a fixed order."""
        return candidates(self.space)

    @cached_property
    def _operations(self) -> list[Operation]:
        return [self.train(deepcopy(params)) for params in self.candidates]

    @property
    def run_event(self) -> events.Event:
        """What one run costs: a candidate and its score."""
        return events.OneOf(events=tuple(each.event + self.score.event for each in self._operations))

    @property
    def event(self) -> events.Selected:
        """The cost of the search."""
        return events.Selected(event=self.run_event, mean=self.mean, law=self.law, cap=self.cap)

    @property
    def unit(self) -> str:
        """Whom candidates and score protect."""
        return self.score.unit

    def cost(self, delta: float, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> str:
        """What a candidate costs, and the one selected, in a sentence: known before anything is read."""
        one, chosen = (accounting.epsilon(e, delta, adjacency=adjacency) for e in (self.run_event, self.event))
        law = self.law if isinstance(self.law, str) else f"shape {self.law:g}"
        of = f"(mean {self.mean:g}, {law})"
        return f"ε = {one:.3g} per candidate becomes {chosen:.3g} for the one selected {of}, at δ = {delta:g}."

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[Chosen]]:
        """Refuse what public facts tell of any candidate, and return what trains."""
        streams = Streams(rng)
        for each in self._operations:
            if (prepare := getattr(each, "prepare", None)) is not None:
                prepare(data, streams.public(0))
        return lambda: self._release_choice(data, streams)

    def release(self, data: Any = None, rng: RngLike = None) -> Release[Chosen]:
        """Train, compare, and give the best."""
        return self.prepare(data, rng)()

    def _release_choice(self, data: Any, streams: Streams) -> Release[Chosen]:
        # what is drawn here says nothing of the data, so replay makes the same number of runs of the same candidates
        counted = draw_output("number of runs", 0, "l1", 0, lambda: draw_runs(runs_of(self.event), streams.sampling(0)))
        best: Chosen | None = None
        with _spinner(self.progress):
            for run in range(counted if self.cap is None else self.cap):
                found = self._run(data, streams, run)
                if run < counted and (best is None or found.score > best.score):  # among equals the first, any of them
                    best = found
                del found  # a loser must not outlive its run
        if best is None:
            best = Chosen({}, self.default, -math.inf, self.event)
        return Release(best, self.event, reproducible=streams.reproducible, unit=self.unit)

    def _run(self, data: Any, streams: Streams, run: int) -> Chosen:
        """One candidate, drawn afresh; whatever goes wrong in it is the worst score, and tells nothing else."""
        draw = streams.sampling(1, run)
        index = draw_output("candidate", 0, "l1", 0, lambda: draw.below(len(self.candidates)))
        try:
            with draw_from(streams.chance(run)):  # what candidates and predictions draw by themselves, row after row
                model = self._afresh(index).release(data, streams.noise(run, 0)).value
                score = float(self.score.release((model, data), streams.noise(run, 1)).value)
        except Exception:  # a failure is a result like any other, and the worst
            score = math.nan
        if math.isnan(score):
            model, score = None, -math.inf
        return Chosen(deepcopy(self.candidates[index]), model, score, self.event)

    def _afresh(self, index: int) -> Operation:
        """A candidate's operation that no other run has touched, at the price that was charged."""
        made, priced = self.train(deepcopy(self.candidates[index])), self._operations[index]
        if made.event != priced.event or made.unit != priced.unit:
            raise ValueError("train gave another operation for the same parameters than the one that was charged for.")
        return made


def _spinner(shown: bool) -> Any:
    """Shows that work goes on, and not how much of it is done."""
    if not shown:
        return nullcontext()
    with extra("cli"):
        from rich.console import Console
    return Console(stderr=True).status("searching: the number of runs is secret")


class SearchOptions(TypedDict, total=False):
    """What ``Selection`` takes beside candidates and score; who pays, as what; the delta at which the cost is said."""

    mean: float
    law: str | float
    cap: int | None
    default: Any
    progress: bool
    book: Chargeable | None
    label: str
    rng: RngLike
    delta: float | None


DEFAULTS = {each.name: each.default for each in fields(Selection) if each.name in SearchOptions.__annotations__}


@spell_out(SearchOptions, "", DEFAULTS)
def select(
    train: Callable[[Params], Operation],
    space: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    data: Any,
    *,
    score: Score,
    **options: Unpack[SearchOptions],
) -> Chosen:
    """Search privately and give the best: ``.params``, ``.model``, ``.score``, ``.event``; the rest is gone.

    The book is charged once, for the whole search, before anything is read (see ``Selection``). With ``delta`` the cost
    at that delta is printed on standard error first. ``progress`` shows that work goes on, not how much is left.
    """
    asked: dict[str, Any] = dict(options)
    delta = asked.pop("delta", None)
    payment = {name: asked.pop(name) for name in ("book", "label", "rng") if name in asked}
    search = Selection(train=train, space=space, score=score, **asked)
    if delta is not None:
        print(search.cost(delta), file=sys.stderr)
    chosen: Chosen = charged(search, data, **payment).value
    return chosen
