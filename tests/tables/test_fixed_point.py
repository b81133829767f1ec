"""Steps of the grid: monotone, bounded, the same in Python and in the engine, whatever doubles do."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.auditing.strategies import awkward_floats
from discreet.tables.fixed_point import COARSE, FINE, FixedPoint
from discreet.tables.passes import ScanPass

ends = st.floats(-1e150, 1e150)
grids = (
    st.builds(lambda a, b, steps: (min(a, b), max(a, b), steps), ends, ends, st.sampled_from([FINE, COARSE]))
    .filter(lambda made: made[1] - made[0] >= 1e-290)
    .map(lambda made: FixedPoint(dp.Bounded(made[0], made[1]), made[2]))
)


@given(grid=grids, x=st.floats(allow_nan=False), y=st.floats(allow_nan=False))
def test_steps_are_monotone_and_lie_between_zero_and_the_top(grid, x, y):
    """The whole proof of the sensitivity, for any doubles."""
    low, high = sorted([grid.steps_of(x), grid.steps_of(y)]) if x <= y else sorted([grid.steps_of(y), grid.steps_of(x)])
    assert 0 <= low <= high <= grid.top
    assert (grid.steps_of(x) <= grid.steps_of(y)) or x > y
    assert grid.steps // 4 <= grid.top <= grid.steps


@given(grid=grids, x=st.floats(allow_nan=False))
def test_a_value_is_read_to_half_a_step(grid, x):
    """And the rounding of the subtraction, which is a few units in the last place of the larger bound."""
    clipped = max(min(x, grid.bounds.high), grid.bounds.low)
    slack = max(abs(grid.bounds.low), abs(grid.bounds.high)) * 2.0**-50
    assert abs(float(grid.low + grid.steps_of(x) * grid.step) - clipped) <= float(grid.step) / 2 + slack


def test_whole_numbers_are_read_exactly():
    """Incomes, ages, counts: nothing is lost."""
    grid = FixedPoint(dp.Bounded(-3, 200_000))
    assert all(grid.low + grid.steps_of(x) * grid.step == x for x in range(-3, 200_001, 997))


@settings(max_examples=15)
@given(
    values=st.lists(awkward_floats(), min_size=1, max_size=20),
    ends=st.tuples(ends, ends).filter(lambda pair: abs(pair[0] - pair[1]) >= 1e-290),
)
def test_the_engine_computes_the_same_steps(values, ends):
    """Bit for bit what Python computes, for both grids."""
    bounds = dp.Bounded(min(ends), max(ends))
    table = dp.table(pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}), schema=dp.Schema(x=bounds), threads=1)
    rows = table.mean("x").rows
    from discreet.random import seeded
    from discreet.tables.bounding import SecretKey

    found = rows.run(ScanPass(sums=(("x", FINE), ("x", COARSE))), SecretKey.draw(seeded(1))).stats
    real = [x for x in values if x == x]
    for steps in (FINE, COARSE):
        grid = FixedPoint(bounds, steps)
        assert found.count_of("x", steps) == len(real)
        assert found.total("x", steps) == sum(map(grid.steps_of, real))
    assert found.squares("x") == sum(FixedPoint(bounds, COARSE).steps_of(x) ** 2 for x in real)
