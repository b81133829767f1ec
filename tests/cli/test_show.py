"""What is printed is still a bound: rounding goes to the safe side, and the plot stays in its frame."""

from __future__ import annotations

import contextlib
import io
import json
import os
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.cli import show
from tests.cli.person import Terminal


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


def printed(columns, act, *arguments, **options):
    """What is printed at a width, ends of lines included."""
    with (
        mock.patch.dict(os.environ, {"COLUMNS": str(columns), "NO_COLOR": "1"}),
        contextlib.redirect_stdout(Terminal()) as stream,
    ):
        act(*arguments, **options)
    return stream.getvalue()


WIDTHS = (1, 20, 40, 80, 81, 100, 200)
CELLS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=("C", "Z")), min_size=1, max_size=30
)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(CELLS, min_size=n, max_size=n), st.lists(st.lists(CELLS, min_size=n, max_size=n), max_size=3)
        )
    ),
    st.sampled_from(WIDTHS),
)
def test_every_value_of_a_table_is_printed_in_full_at_every_width(content, width):
    """In one piece, on one line; and no line of a table with borders is wider than the terminal."""
    headers, rows = content
    text = printed(width, show.table, "", headers, rows)
    for cell in [*(headers if rows else []), *(cell for row in rows for cell in row)]:
        assert show.clean(cell) in text
    if "┏" in text.partition("\n")[0]:
        from rich.cells import cell_len

        assert all(cell_len(line) <= width for line in text.splitlines())


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_never_cut(width):
    """The case that was: 1.50184e+12 shown as 1.50184e+1."""
    headers = ["educ", "total", "a_long_name_of_a_column", "another_name_that_is_long", "third"]
    rows = [["1", "1.50184e+12", "5.19278e+09", "316", "5.33203e+09"]]
    text = printed(width, show.table, "", headers, rows)
    assert all(value in text.split() for value in rows[0])


@pytest.mark.parametrize("width", WIDTHS)
def test_prose_is_wrapped_between_words_only(width):
    """A reason may take several lines; read on, it is whole."""
    reason = "The gdp accountant cannot price Laplace: it is not Gaussian."
    text = printed(width, show.table, "title", ["accountant", "why not"], [["gdp", reason]], prose=True)
    words = [word for word in text.replace("│", " ").split() if word in reason.split()]
    assert " ".join(words).endswith(reason)


ACTING = "a\x1b[31mred\x07\u202eevil\u2066\x9b2J\r\n\u2028b\ud800"


def test_nothing_that_acts_on_a_terminal_reaches_it():
    """Escapes, bells, directions of writing, ends of lines inside a cell, lone surrogates: all are shown,
    none are sent.
    """
    for text in (
        printed(200, show.say, ACTING),
        printed(200, show.table, ACTING, [ACTING], [[ACTING]]),
        printed(10, show.table, ACTING, [ACTING], [[ACTING]]),
        printed(80, show.data, ACTING),
    ):
        assert set(text) & set("\x1b\x07\u202e\u2066\x9b\r\u2028\ud800") == set()
        assert "\\x1b[31mred" in text


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_said_on_any_terminal(text):
    """In ASCII and UTF-8; a lone surrogate raises nothing."""
    for encoding in ("ascii", "utf-8", "cp1252"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            show.say(text)
            show.warn(text)
            show.data(text)
            show.as_json({"text": text})
        stream.flush()


def test_json_is_exact():
    """What is escaped for a person is itself in JSON."""
    assert json.loads(printed(80, show.as_json, {"key": ACTING}))["key"] == ACTING


def test_a_long_line_is_cut_between_words_at_a_terminal_and_nowhere_else(capsys, monkeypatch):
    """What goes on stands below what it goes on from; no word is cut."""
    line = "error   " + "count: within six of the truth " * 5 + "head:" + "0" * 90
    shown = printed(80, show.say, line)
    assert shown.split() == line.split()
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    assert all(row.startswith("        ") for row in shown.splitlines()[1:])
    monkeypatch.setenv("COLUMNS", "80")
    show.say(line)
    assert capsys.readouterr().out == line + "\n"
