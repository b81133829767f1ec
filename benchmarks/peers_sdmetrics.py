"""Runs in SDMetrics' environment: its two scores for two tables in files, with the columns of numbers named."""

from __future__ import annotations

import json
import sys
from typing import Any


def answer(question: dict[str, Any]) -> dict[str, float]:
    import pandas as pd
    from sdmetrics.reports.single_table._properties import ColumnPairTrends, ColumnShapes

    real, synthetic = (pd.read_csv(question[name], keep_default_na=False, na_values=[""]) for name in ("real", "other"))
    numbers = set(question["numbers"])
    kinds = {name: {"sdtype": "numerical" if name in numbers else "categorical"} for name in real.columns}
    scores = [kind().get_score(real, synthetic, {"columns": kinds}) for kind in (ColumnShapes, ColumnPairTrends)]
    return {"shapes": float(scores[0]), "pair_trends": float(scores[1])}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
