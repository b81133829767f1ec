"""PATE on MNIST: 250 teachers of 240 digits each, a student of 9,000 public digits without labels.

The public digits are 9,000 of the test file, chosen at random, and the student is tested on the other 1,000, as in the
papers; the mean of five such splits counts. What is charged is the event of the aggregator, which holds whatever the
data; the data-dependent figure, and its sanitised form, are shown beside it and guarantee nothing.

Public things do most of the work, and cost nothing:

1. gradients' histograms of a digit (``_digits.hog``), reduced to the principal axes of the public digits;
2. the graph of the public digits' nearest neighbours, and its smoothest functions (Belkin and Niyogi 2003). A private
   digit takes the weighted mean of its public neighbours, so its features depend on no other private digit. On them a
   linear teacher of 240 digits is right 19 times of 20, and teachers agree;
3. the digits that are asked about: one from the middle of each of 480 clusters of public digits;
4. the answers, spread over that graph by a linear function: a label for the 85 of 100 public digits of which it is
   surest. The student, a small convolutional network, learns from those, turned and moved a little.

Settings were chosen on the training file alone (50,000 digits as private, 9,000 as public, 1,000 to test on), by
``python -m experiments.pate_mnist choose``; no label of the test file was used for them.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier

import discreet as dp
from discreet.datasets import Digits
from discreet.pate import GNMax, SanitisedCost, Teachers, count_votes, data_dependent_cost
from discreet.pate.networks import NetworkClassifier
from discreet.random import Streams
from experiments import _results
from experiments._data import cache, mnist
from experiments._digits import Weak, hog, network

DELTA, SPLITS, TEACHERS = 1e-5, 5, 250
VOTES = GNMax(sigma=50.0, queries=480)
ORDER = 12.0  # of the sanitised figure
EPOCHS, SURE = 8, 0.85  # of the student; the share of public digits that it learns from
NUMBERS = (10, 25, 50, 100, 250, 500)  # of teachers, in the figure
AXES, NEIGHBOURS, FUNCTIONS = 60, 10, 80
Array = NDArray[Any]


@dataclass(frozen=True)
class Split:
    """Private digits with labels; public ones without, of which some are asked about; ones to test on."""

    private: Array
    labels: Array
    public: Array
    asked: Array
    images: Array  # of the public digits, from 0 to 1
    truth: Array  # for tables only: no step above reads it
    test: Array
    answers: Array


@dataclass(frozen=True)
class Result:
    """Of one split."""

    student: float
    answers: float
    charged: float
    sanitised: float
    private: float
    seconds: float


# --- public features --------------------------------------------------------------------------------------------------


def histograms(digits: Digits) -> tuple[Array, Array]:
    """Of the training and the test file, kept in a file between runs."""
    path = cache("mnist-hog.npz")
    if not path.exists():
        np.savez(path, train=hog(digits.X_train), test=hog(digits.X_test))
    with np.load(path) as found:
        return found["train"], found["test"]


def neighbours(rows: Array, among: Array, count: int) -> tuple[Array, Array]:
    """The nearest of ``among``, and their squared distances."""
    squares, found = (among**2).sum(axis=1), []
    for part in np.array_split(rows, max(1, len(rows) // 2000)):
        distance = squares - 2 * part @ among.T
        nearest = np.argpartition(distance, count, axis=1)[:, :count]
        square = np.take_along_axis(distance, nearest, 1) + (part**2).sum(axis=1, keepdims=True)
        found.append((nearest, np.maximum(square, 0)))
    return np.concatenate([at for at, _ in found]), np.concatenate([square for _, square in found])


class PublicMap:
    """Features of a digit from its own histogram and the public digits."""

    def __init__(self, public: Array) -> None:
        self.axes = PCA(AXES, random_state=0).fit(public)
        self.rows = self.axes.transform(public).astype(np.float32)
        at, square = neighbours(self.rows, self.rows, NEIGHBOURS + 1)
        self.width = float(np.median(square))
        size = len(public)
        weights = csr_matrix(
            (np.exp(-square / self.width).ravel(), (np.repeat(np.arange(size), NEIGHBOURS + 1), at.ravel())),
            shape=(size, size),
        )
        weights = weights.maximum(weights.T)
        weights.setdiag(0)
        root = diags(np.asarray(weights.sum(axis=1)).ravel() ** -0.5)
        start = np.random.default_rng(0).normal(size=size)
        values, vectors = eigsh(root @ weights @ root, k=FUNCTIONS, v0=start)
        functions = root @ vectors
        self.functions = functions / functions.std(axis=0) * np.clip(values, 0, 1) ** 3

    def of(self, histograms: Array) -> Array:
        """The public neighbours' functions, each weighted by how near it is."""
        at, square = neighbours(self.axes.transform(histograms).astype(np.float32), self.rows, NEIGHBOURS)
        weight = np.exp(-(square - square.min(axis=1, keepdims=True)) / self.width)
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("ij,ijk->ik", weight, self.functions[at]))

    def typical(self, count: int) -> Array:
        """One public digit from the middle of each of so many clusters."""
        clusters = MiniBatchKMeans(count, n_init=1, random_state=0, batch_size=2048).fit(self.rows)
        return np.unique(clusters.transform(self.rows).argmin(axis=0))


# --- a split ----------------------------------------------------------------------------------------------------------


def split(seed: int, queries: int, *, choosing: bool = False) -> Split:
    digits = mnist()
    train, test = histograms(digits)
    order = np.random.default_rng(seed)
    if choosing:  # everything from the training file
        order = order.permutation(len(train))
        private, others = order[: len(train) * 5 // 6], order[len(train) * 5 // 6 :]
        features, images, labels = train, digits.X_train, digits.y_train
    else:
        private, others = np.arange(len(train)), order.permutation(len(test))
        features, images, labels = test, digits.X_test, digits.y_test
    most = len(others) * 9 // 10
    public, held = others[:most], others[most:]
    made = PublicMap(features[public])
    pixels = images.reshape(len(images), 784).astype(np.float32) / 255
    return Split(
        made.of(train[private]),
        digits.y_train[private].astype(int),
        made.functions,
        made.typical(queries),
        pixels[public],
        labels[public].astype(int),
        pixels[held],
        labels[held].astype(int),
    )


def votes(parts: Split, n_teachers: int, seed: int) -> Array:
    """Counts for the digits that are asked about: private."""
    teachers = Teachers(teacher=RidgeClassifier(alpha=10.0), n_teachers=n_teachers, n_classes=10)
    found = teachers.votes(parts.private, parts.labels, parts.public[parts.asked], Streams(seed))
    return count_votes(found, 10)


def spread(parts: Split, labels: Array) -> Array:
    """A label for the public digits of which the answers, smoothed over the graph, are surest; -1 for the others."""
    smooth = RidgeClassifier(alpha=10.0).fit(parts.public[parts.asked], labels)
    scores = np.sort(smooth.decision_function(parts.public), axis=1)
    lead = scores[:, -1] - scores[:, -2]
    return np.where(lead >= np.quantile(lead, 1 - SURE), smooth.predict(parts.public), -1)


def student(parts: Split, labels: Array, seed: int, epochs: int = EPOCHS) -> float:
    """The share of test digits that a student of these answers knows."""
    given = spread(parts, labels)
    model = NetworkClassifier(network, n_classes=10, epochs=epochs, weak=Weak(), random_state=seed)
    model.fit(parts.images[given >= 0], given[given >= 0])
    return float((model.predict(parts.test) == parts.answers).mean())


def run(seed: int, aggregator: GNMax = VOTES, *, choosing: bool = False, epochs: int = EPOCHS) -> Result:
    import torch

    torch.set_num_threads(1)
    start = time.process_time()
    parts = split(seed, aggregator.queries, choosing=choosing)
    counts = votes(parts, TEACHERS, seed)
    answers = aggregator.release(counts, rng=seed).value
    sanitised = SanitisedCost(aggregator=aggregator, answers=answers, order=ORDER).release(counts, rng=seed).value
    return Result(
        student(parts, answers.labels, seed, epochs),
        float((answers.labels == parts.truth[parts.asked]).mean()),
        dp.epsilon(aggregator.event, delta=DELTA),
        sanitised.epsilon(DELTA),
        data_dependent_cost(aggregator, counts, answers).epsilon(DELTA),
        time.process_time() - start,
    )


# --- by the number of teachers ----------------------------------------------------------------------------------------


def by_teachers(seed: int = 0, quick: bool = False) -> Array:
    """For each number: how often an answer is right, the gap between the two largest counts, and both costs.

    The noise is the same, so the event is; what changes is how much of the votes it drowns.
    """
    parts, found = split(seed, VOTES.queries), []
    for number in NUMBERS[:3] if quick else NUMBERS:
        counts = votes(parts, number, seed)
        answers = VOTES.release(counts, rng=seed).value
        first, second = np.sort(counts, axis=1)[:, :-3:-1].T
        found.append(
            (
                (answers.labels == parts.truth[parts.asked]).mean(),
                ((first - second) / number).mean(),
                dp.epsilon(VOTES.event, delta=DELTA),
                data_dependent_cost(VOTES, counts, answers).epsilon(DELTA),
            )
        )
    return np.array(found)


def plot(found: Array, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    numbers = NUMBERS[: len(found)]
    left.plot(numbers, found[:, 0], marker="o", label="noisy answers that are right")
    left.plot(numbers, found[:, 1], marker="s", label="gap of the two largest counts, of all")
    left.set(xscale="log", xlabel="teachers", ylim=(0, 1.02))
    left.legend(fontsize=7)
    right.plot(numbers, found[:, 2], marker="o", label="charged")
    right.plot(numbers, found[:, 3], marker="s", label="data-dependent: no guarantee")
    right.set(xscale="log", xlabel="teachers", ylabel=f"epsilon at delta {DELTA:g}", ylim=(0, None))
    right.legend(fontsize=7)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(figure)


def kept(seed: int) -> Result:
    """The result of one split, from its file if it was run before: so a long run goes on where it was stopped."""
    path = cache(f"pate-mnist-{VOTES.queries}-{VOTES.sigma:g}-{SURE}-{EPOCHS}-{seed}.json")
    if not path.exists():
        path.write_text(json.dumps(asdict(run(seed))))
    return Result(**json.loads(path.read_text()))


def choose() -> None:
    """Compare settings of about the same price on the training file alone."""
    for queries, sigma in ((200, 32.5), (308, 40.0), (480, 50.0)):
        found = run(0, GNMax(sigma=sigma, queries=queries), choosing=True)
        print(f"{queries} answers, sigma {sigma:g}: charged {found.charged:.3f}, {found.answers:.2%} of them right, "
              f"student {found.student:.2%}, {found.seconds:.0f} s")  # fmt: skip


def figure(quick: bool = False) -> None:
    """Accuracy, gap and cost by the number of teachers; quickly, of few."""
    path = _results.place_of("images", "pate.png")
    plot(by_teachers(quick=quick), path)
    _results.tell(path)


def main(quick: bool = False) -> None:
    histograms(mnist())
    jobs = 1 if quick else 2  # another process would not know that data may be made up
    runs = joblib.Parallel(n_jobs=jobs)(joblib.delayed(kept)(seed) for seed in range(1 if quick else SPLITS))
    table = Table(title=f"MNIST, {TEACHERS} teachers, delta {DELTA:g}, add-remove, {VOTES.queries} answers a split")
    for header in (
        "split",
        "charged epsilon",
        "student",
        "answers that are right",
        "sanitised epsilon (no guarantee)",
        "data-dependent epsilon (private, no guarantee)",
    ):
        table.add_column(header, justify="right")
    for number, each in enumerate(runs):
        table.add_row(
            str(number),
            f"{each.charged:.3f}",
            f"{each.student:.2%}",
            f"{each.answers:.2%}",
            f"{each.sanitised:.3f}",
            f"{each.private:.3f}",
        )
    console = Console(width=max(120, Console().width))
    console.print(table)
    accuracies = [each.student for each in runs]
    console.print(
        f"charged epsilon {max(each.charged for each in runs):.3f} (owed: at most 2.54); student "
        f"{np.mean(accuracies):.2%} ± {np.std(accuracies):.2%} (owed: 97.0 %, goal 98.0 %); "
        f"{sum(each.seconds for each in runs) / 60:.1f} minutes of one core (owed: 30 of two)"
    )
    figure(quick)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["choose"]:
            choose()
        case ["figure", *_]:
            figure(_results.begin(__doc__))
        case ["split", number]:  # one split, in a process of its own
            kept(int(number))
        case _:
            main(quick=_results.begin(__doc__))
