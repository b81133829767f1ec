"""Ours against what others prove: tests/accounting/oracle.json, made by ``python -m benchmarks.make_oracle``."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import discreet as dp

RECORDS = json.loads(Path(__file__).with_name("oracle.json").read_text())["records"]
# peers compute in double precision and say nothing of rounding; an exact value is right to the last bit
ROUNDING = 1e-9
SLACK = 1.001  # of a peer's upper bound: ours may be no looser than that


def name(record: dict) -> str:
    return f"{json.dumps(record['event'], sort_keys=True)} at delta={record['delta']:g}"


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_certified_bounds_agree_with_what_others_prove(record):
    """Never below a certified lower bound, never above another's upper bound by more than a thousandth."""
    lower, upper = dp.epsilon_bounds(
        dp.Event.from_dict(record["event"]), delta=record["delta"], adjacency=record["adjacency"]
    )
    assert 0 <= lower <= upper
    for bound in record["bounds"]:
        exact = float(bound["value"]) if "value" in bound else None
        at_least = exact if exact is not None else bound.get("lower", 0.0)
        at_most = exact if exact is not None else bound.get("upper", math.inf)
        rounding = 4e-16 * exact if exact is not None and math.isfinite(exact) else ROUNDING
        assert upper >= at_least - rounding, f"upper {upper!r} is below {at_least!r}, proved by {bound['source']}"
        assert lower <= at_most + rounding, f"lower {lower!r} is above {at_most!r}, proved by {bound['source']}"
        assert upper <= at_most * SLACK + ROUNDING, f"upper {upper!r} is loose: {bound['source']} proves {at_most!r}"


def test_the_oracle_is_wide_enough():
    """A few hundred events, every family, deltas down to 1e-300."""
    assert len(RECORDS) >= 300
    assert min(record["delta"] for record in RECORDS) < 1e-200
    sources = {bound["source"] for record in RECORDS for bound in record["bounds"]}
    assert sources == {"dp-accounting pld", "dp-accounting rdp", "prv-accountant", "exact"}
