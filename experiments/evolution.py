"""Private Evolution: digits drawn with strokes that records vote for, and a table whose order no marginal shows.

MNIST, 14 × 14 pixels (means of four), as for G-PATE (``pate_digits``): a logistic regression that learns from generated
digits is tested on the real test file. No public image is used: candidates are curves of a pen. Strokes, rounds and
candidates were chosen on 50,000 and 10,000 digits of the training file. The table has five fair bits, the sixth is
their parity: no five columns of it tell anything, so marginals of three do not show it. ``--quick``: fewer rounds.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import discreet as dp
from discreet.schema import Categories, Schema
from discreet.synthesis import CellVariations, Evolve, Images, StrokeVariations, TableSynthesizer
from experiments import _results
from experiments._data import cache, mnist
from experiments.pate_digits import halved, picture

DELTA, EPSILONS, SHOWN, SEEDS, ROWS = 1e-5, (0.5, 1.0, 10.0), 1.0, (0, 1, 2), 20_000
FACTS = Images(shape=(14, 14), bounds=(0, 255), labels=range(10))
SETTINGS: dict[str, Any] = {"rounds": 20, "candidates": 3000}
STROKES: dict[str, Any] = {"strokes": 2, "pen": 0.6}
BITS = [f"bit{place}" for place in range(1, 7)]
Array = NDArray[Any]


def digits(epsilon: float, seed: int, rounds: int) -> tuple[Evolve, dict[str, float]]:
    """Evolved digits, and what a classifier of them is worth."""
    data, start = mnist(), time.process_time()
    settings = SETTINGS | {"rounds": rounds}
    evolved = Evolve(StrokeVariations(FACTS, **STROKES), epsilon=epsilon, delta=DELTA, **settings)
    evolved.fit((halved(data.X_train), data.y_train.astype(int)), rng=seed)
    images, labels = evolved.sample(5000, rng=seed + 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # close enough for a yardstick
        model = LogisticRegression(max_iter=100).fit(images.reshape(len(images), -1) / 255, labels)
    accuracy = float(model.score(halved(data.X_test).reshape(-1, 196) / 255, data.y_test))
    return evolved, {"accuracy": accuracy, "seconds": time.process_time() - start}


def parity_table(n: int, seed: int) -> dict[str, Array]:
    """Five fair bits and their parity."""
    bits = np.random.default_rng(seed).integers(0, 2, (n, 5))
    return dict(zip(BITS, [*bits.T, bits.sum(axis=1) % 2], strict=True))


def keeps_parity(rows: Any) -> float:
    """The share of rows whose last bit is the parity of the others: one half by luck."""
    return float(np.mean(sum(np.asarray(rows[name], int) for name in BITS) % 2 == 0))


def tables(epsilon: float, seed: int) -> tuple[float, float]:
    """That share, of evolved rows and of rows by all marginals of three columns."""
    schema, rows = Schema({name: Categories([0, 1]) for name in BITS}), parity_table(ROWS, seed)
    evolved = Evolve(CellVariations(schema), epsilon=epsilon, delta=DELTA, candidates=300, rounds=5).fit(rows, rng=seed)
    marginals = TableSynthesizer(epsilon, DELTA, workload=3).fit(rows, schema=schema, rng=seed)
    return keeps_parity(evolved.sample(ROWS, rng=seed)), keeps_parity(marginals.sample(ROWS, rng=seed))


def main(quick: bool = False) -> None:
    rounds, seeds = (3, SEEDS[:1]) if quick else (SETTINGS["rounds"], SEEDS)
    results: dict[str, Any] = {"digits": {}, "tables": {}}
    for epsilon in EPSILONS:
        runs = [digits(epsilon, seed, rounds) for seed in seeds]
        results["digits"][str(epsilon)] = [run for _, run in runs]
        if epsilon == SHOWN:
            path: Path = _results.place_of("images", f"evolution-digits-{epsilon:g}.png")
            picture(*runs[0][0].sample(400, rng=2), path)
            _results.tell(path)
        accuracies = [run["accuracy"] for _, run in runs]
        seconds = np.mean([run["seconds"] for _, run in runs])
        charged = dp.epsilon(runs[0][0].event_, delta=DELTA)
        print(
            f"charged epsilon {charged:.3f}: a classifier of evolved digits is right on {np.mean(accuracies):.1%} of "
            f"real ones ({min(accuracies):.1%} to {max(accuracies):.1%}, {len(seeds)} seeds); {seconds:.0f} CPU-seconds"
        )
        pairs = [tables(epsilon, seed) for seed in seeds]
        results["tables"][str(epsilon)] = pairs
        evolved, marginals = np.mean(pairs, axis=0)
        print(f"  parity of six bits kept: {evolved:.1%} of evolved rows, {marginals:.1%} by marginals of three")
    cache("evolution.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
