"""Runs in the peers' environment: diffprivlib's and InterpretML's estimators, one fit a question, scored on test rows.

A question names a file of arrays (train, test, their targets, bounds), an estimator, epsilon, delta and a seed; or a
data set of statsmodels to export. diffprivlib is pure; DP-EBM takes the delta. A fit that takes more than ``LIMIT``
seconds of a processor has failed: some of them draw until a draw is accepted, which may be never.
"""

from __future__ import annotations

import json
import signal
import sys
import warnings
from typing import Any

import numpy as np

DATASETS, LIMIT = ("fair", "randhie"), 30


def exported(question: dict[str, Any]) -> dict[str, Any]:
    """A data set of statsmodels as an array file."""
    import importlib

    assert question["dataset"] in DATASETS
    frame = importlib.import_module(f"statsmodels.datasets.{question['dataset']}").load_pandas().data
    np.savez(question["to"], **{name: frame[name].to_numpy(np.float64) for name in frame})
    return {"rows": len(frame)}


def made(question: dict[str, Any], data: Any) -> Any:
    """The peer's estimator, told the same public facts as ours."""
    from diffprivlib import models

    low, high = data["low"], data["high"]
    seed, epsilon = question["seed"], question["epsilon"]
    public: dict[str, Any] = {"epsilon": epsilon, "random_state": seed}
    name, norm = question["estimator"], float(data["norm"])
    if name == "additive":
        return _boosted(question, low, high)
    return {
        "logistic": lambda: models.LogisticRegression(data_norm=norm, **public),
        "naive Bayes": lambda: models.GaussianNB(bounds=(low, high), **public),
        "forest": lambda: models.RandomForestClassifier(bounds=(low, high), classes=list(data["classes"]), **public),
        "tree": lambda: models.DecisionTreeClassifier(bounds=(low, high), classes=list(data["classes"]), **public),
        "least squares": lambda: models.LinearRegression(
            bounds_X=(low, high), bounds_y=tuple(map(float, data["target"])), **public
        ),
        "k-means": lambda: models.KMeans(n_clusters=question["components"], bounds=(low, high), **public),
        "components": lambda: models.PCA(
            n_components=question["components"], bounds=(low, high), data_norm=norm, **public
        ),
    }[name]()


def _boosted(question: dict[str, Any], low: Any, high: Any) -> Any:
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    public: dict[str, Any] = {
        "epsilon": question["epsilon"],
        "delta": question["delta"],
        "random_state": question["seed"],
        "n_jobs": 1,
        "feature_types": ["nominal" if j in question["nominal"] else "continuous" for j in range(len(low))],
        "privacy_bounds": {j: (float(low[j]), float(high[j])) for j in range(len(low))},
    }
    if question["target"] is not None:
        lowest, highest = question["target"]
        return DPExplainableBoostingRegressor(privacy_target_min=lowest, privacy_target_max=highest, **public)
    return DPExplainableBoostingClassifier(**public)


def scored(model: Any, question: dict[str, Any], data: Any) -> float:
    """Accuracy or R²; the share of variance that components keep; minus the mean squared distance to a centre."""
    x, test = data["x"], data["test"]
    if question["estimator"] == "components":
        model.fit(x)
        return kept(model.components_, test)
    if question["estimator"] == "k-means":
        model.fit(x)
        return -nearest(model.cluster_centers_, test)
    model.fit(x, data["y"])
    return float(model.score(test, data["labels"]))


def kept(components: Any, rows: Any) -> float:
    """The share of the variance of rows that lies in the span of components."""
    centred = rows - rows.mean(axis=0)
    return float(((centred @ np.linalg.qr(components.T)[0]) ** 2).sum() / (centred**2).sum())


def nearest(centres: Any, rows: Any) -> float:
    """The mean squared distance to the nearest centre."""
    return float(((rows[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).mean())


def answer(question: dict[str, Any]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    if "dataset" in question:
        return exported(question)
    with np.load(question["data"]) as data:
        return {"score": scored(made(question, data), question, data)}


def out_of_time(*_: Any) -> None:
    raise TimeoutError(f"no answer in {LIMIT} processor seconds")


def main() -> None:
    signal.signal(signal.SIGPROF, out_of_time)
    if "--stream" not in sys.argv:
        print(json.dumps(answer(json.load(sys.stdin))))
        return
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            found = answer(json.loads(line))
        except Exception as error:  # a peer that fails on a data set has no score there
            found = {"failure": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
