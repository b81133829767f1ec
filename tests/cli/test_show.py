"""What is printed is still a bound: rounding goes to the safe side, and the plot stays in its frame."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from discreet.cli import show


@given(st.floats(min_value=0, allow_infinity=False))
def test_printed_bounds_never_cross_the_number(value):
    """An upper bound reads no lower, a lower bound no higher, and both within the digits shown."""
    assert float(show.floor(value, 6)) <= value
    assert float(show.ceiling(value, 6)) >= value
    assert float(show.ceiling(value, 6)) <= value * (1 + 1e-5) + 1e-323


@given(st.integers(min_value=2, max_value=40))
def test_a_plot_has_the_size_of_its_frame(points):
    """Rows and columns do not depend on the curve."""
    xs = [i / (points - 1) for i in range(points)]
    lines = show.curve(xs, [1 - x for x in xs], below="x", beside="y")
    assert len(lines) == show.ROWS + 3
    assert {len(line) for line in lines[1:-2]} == {show.COLUMNS + 3}
