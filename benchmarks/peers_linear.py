"""Runs in the peers' environment: diffprivlib's logistic regression on one data set, accuracy and time."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def answer(question: dict[str, Any]) -> dict[str, Any]:
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    with np.load(question["data"]) as parts:
        x, y, test, labels = (parts[name] for name in ("x", "y", "test", "labels"))
    found, seconds = [], []
    for seed in range(question["seeds"]):
        model = LogisticRegression(epsilon=question["epsilon"], data_norm=1.0, random_state=seed)
        start = time.perf_counter()
        model.fit(x, y)
        seconds.append(time.perf_counter() - start)
        found.append(float(model.score(test, labels)) if len(labels) else 0.0)
    return {"accuracy": float(np.mean(found)), "seconds": min(seconds)}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
