"""An expression means one thing: what the engine makes of a row is what Python makes of it, within the stated bounds
and categories; nothing fails because of a row.
"""

from __future__ import annotations

import datetime as dt
import math
import os

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.auditing import replay
from discreet.dates import moment, seconds
from discreet.tables import case, col
from discreet.tables.calendar import PARTS, STEPS, Part, Truncated
from discreet.tables.derived import declaration_of
from discreet.tables.expressions import Expression
from discreet.tables.nodes import Column
from discreet.tables.resolve import resolve_constants
from tests.tables.frames import CONNECTION

SCHEMA = dp.Schema(
    x=dp.Bounded(-50, 100),
    y=dp.Bounded(0, 8, missing=2),
    k=dp.Categories(["a", "B ", " c"]),
    word=dp.Unlisted(),
    day=dp.Dates("1890-01-01", "2110-12-31"),
    at=dp.Times("1999-12-31", "2024-03-01"),
)
OF_DAYS = [part for part in PARTS if part not in ("hour", "minute")]  # which days do not have
EXPRESSIONS = {
    "sum": col("x") + col("y") * 3 - 1,
    "quotient": (col("x") / col("y")).clip(-1e3, 1e3),
    "rest": col("x") % 7,
    "rest of anything": (col("x") % col("y")).fill(-1),
    "rounded": (col("x") / 20).round(),
    "rounded to decimals": (col("x") / 40).round(1) - col("x").round(-1),
    "whole quotient": col("x") // 7 + 1000 // (col("y") + 3),
    "roots": (col("x").sqrt() + col("x").log().clip(0, 9).floor()).fill(0.5),
    "case": case((col("x") > 50, 1), (col("y") >= col("x"), col("y")), otherwise=col("x") * 0 + 7),
    "case without else": case((col("x") > 50, "high"), (col("k") == "a", col("k"))),
    "filled": col("x").fill(col("y"), 3),
    "logic": (col("x") > 1) | ~(col("y") < 4) & (col("word") == "Paris"),
    "as a number": (col("x") > col("y")).as_number() * 2 + 1,
    "text": col("word").text.trim().text.lower(),
    "part of a text": col("word").text.upper().text.part(2, 3),
    "category": col("k").text.trim().text.lower(),
    "among": col("word").among(["Paris", "é"], other="?"),
    "starts": col("word").text.starts_with("'; "),
    "ends": col("word").text.ends_with("\\"),
    "contains": col("word").text.contains("é"),
    "like": col("word").text.like("_"),
    "like, with parts": col("word").text.like("%a_i%"),
    "like, with what escapes elsewhere": col("word").text.like("_%\\"),
    "one after another": col("word").text.followed_by("-", col("k")),
    "categories one after another": col("k").text.followed_by(col("k").text.lower()),
    "length": col("word").text.length().clip(0, 3),
    "length of a category": col("k").text.length(),
    "listed": col("word").is_in(["Paris", "ß", ""]),
    "days between": col("at") - col("day"),
    "whole days between": col("at").date.start("week") - (col("day") + 30),
    "as many days apart": (col("day") + col("x").floor()) - col("day"),
    "as many days later": (col("at") + col("y")).date.start("day"),
    "after a week": (col("day") + 7).date.day(),
    "date compared": (col("day") >= "1970-01-01") & (col("at") < dt.datetime(2020, 2, 29, 12)),
    **{f"{part} of a day": Expression(Part(part, Column("day"))) for part in OF_DAYS},
    **{f"{part} of a time": Expression(Part(part, Column("at"))) for part in PARTS},
    **{f"start of the {step}": Expression(Truncated(step, Column("at"))) for step in STEPS},
    **{f"start of the {step} of a day": Expression(Truncated(step, Column("day"))) for step in STEPS[:5]},
}
EXAMPLES = int(os.environ.get("DISCREET_EXAMPLES", "5"))  # raise it to look harder
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 49.9, 100.0, 1e300, math.inf, -math.inf, math.nan]), st.none()
)
words = st.one_of(
    st.sampled_from(["Paris", " PARIS ", "'; drop", "\\", "é", "É", "", "  ", "ß", "a\nb", "İ"]), st.none()
)
days = st.one_of(st.dates(dt.date(1880, 1, 1), dt.date(2120, 1, 1)), st.none())
times = st.one_of(st.datetimes(dt.datetime(1999, 1, 1), dt.datetime(2025, 1, 1)), st.none())
records = st.tuples(numbers, numbers, st.sampled_from(["a", "B ", " c", "d", None]), words, days, times)
TYPES = {"x": pl.Float64, "y": pl.Float64, "k": pl.String, "word": pl.String, "day": pl.Date, "at": pl.Datetime("us")}


def read(record):
    """A record as the schema reads it."""
    x, y, k, word, day, at = record
    clip = lambda value, low, high: None if value is None or value != value else max(low, min(high, value))  # noqa: E731
    within = lambda value, low, high: value if value is not None and low <= value <= high else None  # noqa: E731
    return {
        "x": clip(x, -50.0, 100.0),
        "y": 2.0 if clip(y, 0.0, 8.0) is None else clip(y, 0.0, 8.0),
        "k": k if k in ("a", "B ", " c") else None,
        "word": word,
        "day": within(seconds(day), SCHEMA["day"].low, SCHEMA["day"].high),
        "at": within(seconds(at), SCHEMA["at"].low, SCHEMA["at"].high),
    }


@settings(max_examples=EXAMPLES)
@given(rows=st.lists(records, min_size=1, max_size=12), titles=st.sets(st.sampled_from(list(EXPRESSIONS)), max_size=3))
def test_engine_and_python_agree_on_every_row(rows, titles):
    """Some expressions of the list, on hostile rows."""
    table = dp.table(CONNECTION.from_arrow(pl.DataFrame(rows, schema=TYPES, orient="row").to_arrow()), schema=SCHEMA)
    asked = {f"e{i}": title for i, title in enumerate(sorted(titles))}
    wide = table.derive(**{name: EXPRESSIONS[title] for name, title in asked.items()}).group_by().rows.columns
    own = {name: wide.raw(name) for name in asked}
    made = wide.compute(set(asked)).frame.with_columns(**own).select(*asked).to_native().fetchall() if asked else []
    for record, line in zip(rows, made, strict=False):
        for title, value in zip(asked.values(), line, strict=True):
            agrees(resolve_constants(EXPRESSIONS[title], SCHEMA, {"word", "k"}).node, read(record), value)


def agrees(node, record, value):
    """The engine's value is Python's, and one of those that were foretold."""
    expected, domain = node.value(record), node.domain(SCHEMA)
    if expected is None or isinstance(expected, str):
        assert value == expected
    else:
        assert value == pytest.approx(float(expected), rel=1e-12, abs=1e-12)
        low, high = node.bounds(SCHEMA)
        assert low <= expected <= high
    assert expected is None or domain is None or expected in domain


def test_parts_and_starts_are_pythons_own():
    """Every day over four centuries, by datetime."""
    for number in range(0, 146_097, 371):
        at = moment(seconds(dt.date(1601, 1, 1)) + number * 86_400.0)
        for name in ("year", "month", "day"):
            assert Part(name, Column("d")).apply(seconds(at)) == getattr(at, name)


def test_the_engines_calendar_is_pythons_for_all_years():
    """A day in every 371 from the year 100 to 9800: parts and starts."""
    schema = dp.Schema(d=dp.Dates("0100-01-01", "9800-12-31"))
    days = [dt.date.fromordinal(number) for number in range(dt.date(100, 1, 1).toordinal(), 3_579_000, 371)]
    frame = pl.DataFrame({"d": days}, schema={"d": pl.Date})
    nodes = [Part(name, Column("d")) for name in OF_DAYS] + [Truncated(step, Column("d")) for step in STEPS[:5]]
    table = dp.table(CONNECTION.from_arrow(frame.to_arrow()), schema=schema)
    asked = {f"e{number}": Expression(node) for number, node in enumerate(nodes)}
    wide = table.derive(**asked).group_by().rows.columns
    own = {name: wide.raw(name) for name in asked}
    made = wide.compute(set(asked)).frame.with_columns(**own).select(*asked).to_native().fetchall()
    assert made == [tuple(node.value({"d": seconds(day)}) for node in nodes) for day in days]


@pytest.mark.parametrize(
    ("expression", "categories"),
    [
        (case((col("x") > 0, "p"), otherwise="n"), ("p", "n")),
        (col("k").text.trim().text.upper(), ("A", "B", "C")),
        (col("word").among(["u", "v"], other="w"), ("u", "v", "w")),
        (col("k").text.part(1, 1).text.followed_by("!"), ("a!", "B!", " !")),
    ],
)
def test_categories_follow_from_an_expression(expression, categories):
    assert declaration_of("z", resolve_constants(expression, SCHEMA, {"word", "k"}), SCHEMA) == dp.Categories(
        categories
    )


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (col("x").round(), "ROUND(x)"),
        (col("x").round(1), "ROUND(x, 1)"),
        (col("x").round(-1), "ROUND(x, -1)"),
        (col("x") % 4, "x % 4"),
        (col("x") // 4, "CAST(x AS INTEGER) // 4"),
    ],
)
def test_numbers_are_cut_and_rounded_as_in_sql(expression, sql):
    values = [-45.0, -7.0] if "//" in sql else [-45.0, -7.0, -1.5, -0.75, -0.5, 0.5, 2.5, 35.0]
    rows = ", ".join(f"({value}::DOUBLE)" for value in values)
    expected = [answer for (answer,) in CONNECTION.execute(f"SELECT {sql} FROM (VALUES {rows}) t(x)").fetchall()]
    assert [expression.node.value({"x": value}) for value in values] == expected


@pytest.mark.parametrize(
    ("key", "labels"),
    [
        ((col("x") / 50).floor(), [-1, 0, 1, 2]),
        (col("x") > 3, [False, True]),
        ((col("x").round() % 3), [-2, -1, 0, 1, 2]),
        (col("at").date.year(), list(range(1999, 2025))),
        (col("at").date.start("quarter"), 98),
    ],
)
def test_a_key_may_be_computed(key, labels):
    """Its groups are all that may come out, in order, whether or not rows are there."""
    table = dp.table(pl.DataFrame(schema=TYPES), schema=SCHEMA).derive(z=key)
    found = table.group_by("z").count().release(epsilon=1.0, rng=1).value["z"].to_list()
    assert found == labels if isinstance(labels, list) else len(found) == labels


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.group_by("x"), "keys are Categories or Unlisted"),
        (lambda t: t.group_by("at"), "date.start"),
        (lambda t: t.filter(col("day") > "someday"), "spells none"),
        (lambda t: t.filter(col("day") > 3), "different kinds"),
        (lambda t: t.derive(z=col("day") * 2), "A date or a time stands where a number"),
        (lambda t: t.derive(z=col("word") + 1), "is Unlisted"),
        (lambda t: t.derive(z=col("x").text.lower()), "where a text is needed"),
        (lambda t: t.derive(z=col("x").date.year()), "A date or a time is needed"),
        (lambda t: t.derive(z=case((col("x") > 1, "a"), otherwise=1)), "different kinds"),
        (lambda t: t.derive(z=case((col("x"), "a"))), "A value stands where a condition"),
        (lambda t: t.derive(z=col("word").among([1, 2])), "not of the kind"),
        (lambda t: t.mean("day"), "Bounded"),
        (lambda t: t.derive(z=col("day").date.start("decade")), "must be one of"),
    ],
)
def test_what_makes_no_sense_is_refused_before_data_is_read(make, message):
    table = dp.table(pl.DataFrame(schema=TYPES), schema=SCHEMA)
    with pytest.raises(ValueError, match=message):
        make(table)


def test_numbers_are_no_dates():
    """A typed column of numbers is refused; in pandas, where one record decides the type, its entries are missing."""
    schema = dp.Schema(day=dp.Dates("2020-01-01", "2020-12-31"))
    with pytest.raises(ValueError, match="must hold dates"):
        dp.table(pl.DataFrame({"day": [1.0]}), schema=schema)
    held = dp.table(pl.DataFrame({"day": [1.0]}).to_pandas(), schema=schema).filter(~col("day").is_missing())
    assert held.count().release(epsilon=100.0, rng=1).value["count"][0] == 0


def test_declared_ends_are_checked():
    for make, message in [
        (lambda: dp.Dates("2020-02-30", "2020-03-01"), "must be a date"),
        (lambda: dp.Dates("2021-01-01", "2020-01-01"), "must not come after"),
        (lambda: dp.Times("2020-01-01 12:00", "2020-01-01 11:00"), "must come before"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()


DATED = [
    "SELECT FLOOR((day - DATE '1999-12-31') / 3650) AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT AVG(day + INTERVAL (y) DAY - DATE '1999-12-31') AS m, SUM(at - day) AS s FROM t",
    "SELECT date_diff('quarter', at, day) > 0 AS k, COUNT(*), AVG(date_diff('month', day, at)) AS m FROM t GROUP BY k",
    "SELECT COUNT(*) FROM t WHERE at < DATE '2000-01-31' + INTERVAL 1 MONTH OR INTERVAL '36 hours' + day > at",
]
EXTREME = [None, dt.date(9999, 12, 31), dt.date(1890, 1, 1), dt.date(2000, 2, 29)]


@pytest.mark.parametrize("query", DATED)
def test_intervals_and_differences_pass_replay_on_hostile_rows(query):
    """A row at the end of the calendar, of the declarations, or without a date moves what is noised as any other."""

    def operation(rows):
        held = {
            "x": [1.0] * len(rows),
            "y": [8.0] * len(rows),
            "day": list(rows),
            "at": [None if row is None else dt.datetime(row.year, row.month, row.day, 23, 59, 59) for row in rows],
        }
        kinds = {name: TYPES[name] for name in held}
        schema = dp.Schema({name: SCHEMA[name] for name in held})
        return dp.table(pl.DataFrame(held, schema=kinds), schema=schema, threads=1).sql(query, epsilon=1.0)

    for row in EXTREME[:3]:
        replay(operation, EXTREME, [one for one in EXTREME if one is not row])
