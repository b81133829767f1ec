"""One whole release in a process of its own: choose a strategy, measure it, infer."""

from __future__ import annotations

from typing import Any

import numpy as np

import discreet as dp
from benchmarks.timed import answer_once


def answer(question: dict[str, Any]) -> dict[str, Any]:
    w = getattr(dp.workloads, question["workload"])(question["n"])
    asked: dict[str, float] = {"rho": 0.5} if question["noise"] == "gaussian" else {"epsilon": 2**0.5}
    query = dp.workloads.Query(workload=w, **asked)  # type: ignore[arg-type]
    query.release(np.arange(question["n"]))
    assert query.strategy is not None
    return {"strategy": query.strategy.name, "rows": query.strategy.rows, "rmse": query.rmse}


if __name__ == "__main__":
    answer_once(answer)
