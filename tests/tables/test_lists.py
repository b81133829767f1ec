"""Long lists and long chains: planned in milliseconds, or refused in a sentence,
and always before a book is charged.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.tables import col
from discreet.tables.lists import take_out_lists

HUGE = 1e6  # an epsilon without noise
MARKS = ["a'", "b", "c\\d", "e\x1ff", "é", ""]


@pytest.fixture(scope="module")
def people():
    frame = pd.DataFrame({"x": [0.0, -0.0, 1.5, np.nan, 2.0, 3.0] * 100, "s": [*MARKS[:5], None] * 100})
    return dp.table(frame, schema=dp.Schema(x=dp.Bounded(-1, 10), s=dp.Categories(MARKS)))


def counted(table):
    return int(table.count().release(HUGE).value["count"][0])


def test_membership_is_equality_with_one_of_the_values(people):
    """Zeros of both signs are one value; a missing value is neither in a list nor outside it; text is text,
    quotes included.
    """
    assert counted(people.filter(col("x").is_in([0.0, 2.0]))) == 300
    assert counted(people.filter(col("x").is_in([-0.0, 2]))) == 300
    assert counted(people.filter(~col("x").is_in([-0.0, 2.0]))) == 200
    assert counted(people.filter(col("s").is_in(["a'", "c\\d", "e\x1ff", ""]))) == 300
    assert counted(people.filter(~col("s").is_in(["a'", "c\\d", "é"]))) == 200


def test_a_list_of_ten_to_the_five_values_is_one_constant_for_parser_and_engine(people):
    """The parser sees one constant, the engine one string: the size of their trees does not depend on the list."""
    values = ",".join(str(number) for number in range(100_000))
    sql = f"SELECT COUNT(*) FROM people WHERE x IN ({values}) OR NOT x IN ({values})"
    text, lists = take_out_lists(sql)
    assert len(text) < 200
    assert [len(values) for values in lists.values()] == [100_000, 100_000]
    assert int(people.sql(sql, HUGE).value["count"][0]) == 500
    assert int(people.sql(f"SELECT COUNT(*) FROM people WHERE x IN ({values})", HUGE).value["count"][0]) == 400


def test_a_long_chain_of_or_is_not_nested(people):
    """365 values used to end in a RecursionError after the charge. Most are outside the bounds: said in few lines."""
    chain = " OR ".join(f"x = {number}" for number in range(365))
    with pytest.warns(UserWarning, match="A condition is met by no declared value") as said:
        answer = people.sql(f"SELECT COUNT(*) FROM people WHERE {chain}", HUGE).value
    assert int(answer["count"][0]) == 400
    assert len(said) == 6
    assert "... and 349 more conditions" in str(said[-1].message)


@pytest.mark.parametrize(
    "condition",
    [
        "x = " + "(" * 500 + "1" + ")" * 500,
        "NOT " * 3000 + "x = 1",
        "x > " + "+".join(["x"] * 3000),
        "x > x" + " - x" * 150,
        " OR ".join(["x = 1"] * 2000),
    ],
)
def test_what_is_nested_too_deeply_is_refused_before_the_charge(people, condition):
    """One sentence, and the book stays as it was."""
    book = dp.Ledger("sqlite://").open("b", epsilon=1.0)
    with pytest.raises(ValueError, match="nested"):
        people.sql(f"SELECT COUNT(*) FROM people WHERE {condition}", 0.1, book=book)
    assert book.spent().epsilon == 0


def test_what_the_engine_cannot_plan_is_not_charged(people, monkeypatch):
    """The scan is planned before the charge, so an engine that refuses it costs nothing."""
    book = dp.Ledger("sqlite://").open("b", epsilon=1.0)
    asked = people.count()
    monkeypatch.setattr(type(asked.rows), "_totals", lambda *_: 1 / 0)
    with pytest.raises(dp.DiscreetError, match="cannot plan"):
        asked.release(0.1, book=book)
    assert book.spent().epsilon == 0


QUOTED = st.text("ab', ()1", max_size=5)
CONSTANTS = st.lists(
    st.one_of(st.integers(-99, 99).map(str), QUOTED.map(lambda text: "'" + text.replace("'", "''") + "'")),
    min_size=1,
    max_size=5,
)


@given(CONSTANTS, QUOTED)
def test_only_lists_are_taken_out_and_what_stands_elsewhere_stays(constants, other):
    """Values are those written; a list inside a string or a name is part of that string or name."""
    inside = f"IN ({', '.join(constants)})".replace("'", "''").replace('"', "")
    kept = f"SELECT \"{inside}\" FROM p WHERE a = '{inside}' AND b IN (c, 1)"
    assert take_out_lists(kept, least=1) == (kept, {})
    text, lists = take_out_lists(f"{kept} AND d IN ({', '.join(constants)})", least=1)
    assert text.startswith(kept)
    expected = [c[1:-1].replace("''", "'") if c.startswith("'") else float(c) for c in constants]
    assert list(lists.values()) == [expected]
    assert re.search(r"IN \('list 0 of 1\x00'\)$", text)
