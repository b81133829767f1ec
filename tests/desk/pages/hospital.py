"""A desk that looks like one that people have: a hospital's visits, an analyst, an owner, an officer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl

ROWS = 4000
WARDS = ("cardiology", "geriatrics", "maternity", "oncology", "surgery")
SCHEMA = """\
unit = "patient"
max_rows_per_unit = 2

[columns]
ward = { categories = ["cardiology", "geriatrics", "maternity", "oncology", "surgery"] }
sex = { categories = ["f", "m"] }
age = { bounds = [0, 100], whole = true }
days = { bounds = [0, 30] }
cost = { bounds = [0, 20000] }
"""
DESK = """\
[desk]
workers = 1
tick = {tick}
deadline = 300.0

[datasets.visits]
source = "visits.parquet"
schema = "visits.toml"
epsilon = {epsilon}
delta = 1e-6
largest_epsilon = 1.0
approval_above = 0.6
rate = 1000000
"""


def write_hospital(folder: Path, *, tick: float = 0.05, epsilon: float = 6.0) -> Path:
    """The files of the desk; the visits are drawn with a seed, of nobody."""
    draw = random.Random(7)
    rows: dict[str, list[Any]] = {"patient": [], "ward": [], "sex": [], "age": [], "days": [], "cost": []}
    stays = dict(zip(WARDS, (6.0, 11.0, 3.5, 8.0, 5.0), strict=True))
    for number in range(ROWS):
        ward = draw.choices(WARDS, (5, 3, 4, 2, 6))[0]
        rows["patient"].append(f"p{number // 2 if draw.random() < 0.3 else number}")
        rows["ward"].append(ward)
        rows["sex"].append("f" if ward == "maternity" else draw.choice("fm"))
        rows["age"].append(draw.randint(18, 45) if ward == "maternity" else draw.randint(20, 95))
        rows["days"].append(round(min(30.0, draw.expovariate(1 / stays[ward])), 1))
        rows["cost"].append(round(min(20000.0, draw.lognormvariate(8.0, 0.6)), 2))
    pl.DataFrame(rows).write_parquet(folder / "visits.parquet")
    (folder / "visits.toml").write_text(SCHEMA, encoding="utf-8")
    (folder / "desk.toml").write_text(DESK.format(tick=tick, epsilon=epsilon), encoding="utf-8")
    return folder / "desk.toml"
