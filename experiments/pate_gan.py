"""Synthetic Adult by PATE-GAN, G-PATE and marginals at one price: what a classifier learns of real people from it.

Each synthesiser is fitted to the training file at epsilon 1 and 10; a logistic regression learns from as many synthetic
rows and is tested on the test file. Settings were chosen on the training file (26,000 rows against 6,561). Results are
kept in ``build/``, so that a long run resumes; ``--quick`` trains a tenth as long and keeps nothing.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

import discreet as dp
from benchmarks import peers
from discreet.datasets import adult
from discreet.encoding import Encoder
from discreet.pate import GPATE, PATEGAN
from discreet.schema import Declaration, Schema
from discreet.synthesis.coded_table import CodedTable
from discreet.synthesis.train_and_test import correct, features, train_classifier
from experiments import _results

DELTA, EPSILONS, TARGET = 1e-5, (1.0, 10.0), "income"
LEFT_OUT = ("fnlwgt", "education")  # a weight of the survey; the same as education_num
COMMON: dict[str, Any] = {"delta": DELTA, "n_teachers": 300, "teacher_batch": 16}
STUDENT = COMMON | {"teacher_hidden": 8, "batch_size": 64, "lr": 3e-3}
DIRECT = COMMON | {"teacher_hidden": 4, "batch_size": 16, "projections": 16, "lr": 2e-3, "target": TARGET}
STEPS = 400
GENERATORS: dict[str, Any] = {
    "PATE-GAN": lambda epsilon, steps: PATEGAN(epsilon=epsilon, steps=steps // 2, **STUDENT),
    "PATE-GAN, hard votes": lambda epsilon, steps: PATEGAN(epsilon=epsilon, steps=steps // 2, votes="hard", **STUDENT),
    "G-PATE": lambda epsilon, steps: GPATE(epsilon=epsilon, steps=steps, **DIRECT),
    "marginals": lambda epsilon, steps: dp.synthesis.TableSynthesizer(epsilon=epsilon, delta=DELTA),
}


def people() -> tuple[Schema, dict[str, Any], dict[str, Any]]:
    """Public facts, the training file, the test file."""
    found = adult()
    schema = Schema({name: column for name, column in found.schema.items() if name not in LEFT_OUT})
    return schema, {name: found.train[name] for name in schema}, {name: found.test[name] for name in schema}


def scores(schema: Schema, rows: Any, test: Any) -> tuple[float, float]:
    """Accuracy and area under the curve on real rows, of a classifier that learnt from ``rows``."""
    encoder = Encoder(Declaration(schema), one_row_a_unit=False)
    table, real = CodedTable(encoder.read(rows)), CodedTable(encoder.read(test))
    model = train_classifier(table, TARGET)
    if model is None:  # all rows of one class
        return float((real.codes[TARGET] == table.codes[TARGET][0]).mean()), 0.5
    area = roc_auc_score(real.codes[TARGET], model.decision_function(features(real, TARGET)))
    return float(correct(model, real, TARGET).mean()), float(area)


def result(name: str, epsilon: float, steps: int = STEPS) -> dict[str, float]:
    """What one synthesiser makes of Adult."""
    schema, train, test = people()
    start = time.process_time()
    fitted = GENERATORS[name](epsilon, steps).fit(train, schema=schema, rng=0)
    seconds = time.process_time() - start
    accuracy, area = scores(schema, fitted.sample(len(train["age"]), rng=1), test)
    charged = dp.epsilon(fitted.event_, delta=DELTA)
    return {"accuracy": accuracy, "area": area, "charged": charged, "seconds": seconds}


def kept(name: str, epsilon: float) -> dict[str, float]:
    """The same, from its file if it was run before."""
    peers.BUILD.mkdir(exist_ok=True)
    path = peers.BUILD / f"pate-gan-{name.replace(' ', '-')}-{epsilon:g}-{STEPS}.json"
    if not path.exists():
        path.write_text(json.dumps(result(name, epsilon)))
    found: dict[str, float] = json.loads(path.read_text())
    return found


def main(quick: bool = False) -> None:
    import torch

    torch.set_num_threads(1)
    schema, train, test = people()
    table = Table(title=f"Adult, delta {DELTA:g}, add-remove: learnt from synthetic rows, tested on real ones")
    for header in ("synthesiser", "charged epsilon", "accuracy", "area under the curve", "CPU-seconds"):
        table.add_column(header, justify="right")
    accuracy, area = scores(schema, train, test)
    table.add_row("real rows", "none: not private", f"{accuracy:.1%}", f"{area:.3f}", "")
    largest = max(np.mean(test[TARGET] == label) for label in set(test[TARGET]))
    table.add_row("the larger class", "0", f"{largest:.1%}", "0.500", "")
    for epsilon in EPSILONS:
        for name in GENERATORS:
            found = result(name, epsilon, STEPS // 10) if quick else kept(name, epsilon)
            table.add_row(
                name,
                f"{found['charged']:.3f}",
                f"{found['accuracy']:.1%}",
                f"{found['area']:.3f}",
                f"{found['seconds']:.0f}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["one", name, epsilon]:  # in a process of its own
            kept(name, float(epsilon))
        case _:
            main(quick=_results.begin(__doc__))
