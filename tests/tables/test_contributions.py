"""What one unit adds: the default is said aloud, caps and bounds may be chosen, totals clipped, tables joined."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.tables import choosing, col
from tests.tables.frames import CONNECTION

SCHEMA = dp.Schema(x=dp.Bounded(0, 10), k=dp.Categories(["a", "b"]))
TYPES = {"who": pl.Int64, "x": pl.Float64, "k": pl.String}
VISITS = [(who, float(x), "ab"[x % 2]) for who in range(300) for x in range(1 + who % 8)]
LONE = [(999, 9.0, "a"), (999, 1e9, "b"), (999, float("nan"), "a"), (999, -3.0, None), *[(999, 5.0, "b")] * 30]


def table(records, schema=SCHEMA, **options):
    frame = pl.DataFrame(records, schema=TYPES, orient="row")
    return dp.table(CONNECTION.from_arrow(frame.to_arrow()), schema=schema, unit="who", **options)


def test_the_default_of_one_row_a_unit_is_said_aloud():
    """By a warning when it is asked, and by explain before: counting visits would count people."""
    visits = table(VISITS)
    with pytest.warns(UserWarning, match="One row of each 'who' counts, because max_rows_per_unit= was not given"):
        answer = visits.count().release(epsilon=100.0, rng=1)
    assert answer.value["count"][0] == 300
    assert "by default, one row of each unit count" in str(visits.count().explain(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table(VISITS, max_rows_per_unit=1).count().release(epsilon=100.0, rng=1)


def test_a_cap_is_chosen_for_a_share_of_the_budget():
    """The price is known before; what is chosen loses fewer rows than the default, and is told with the answer."""
    asked = table(VISITS, max_rows_per_unit="auto").count()
    operation = asked.operation(epsilon=4.0)
    assert dp.epsilon(operation.event, delta=0) <= 4.0 + 1e-9
    released = asked.release(epsilon=4.0, rng=3)
    assert released.event == operation.event
    assert int(released.error["max_rows_per_unit"]) in choosing.MOST_ROWS
    assert abs(released.value["count"][0] - len(VISITS)) < 300


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.3}], ids=str)
def test_whatever_is_chosen_stays_within_what_was_agreed(budget):
    """The answer's own event, for every candidate, costs no more than what the choice left."""
    query = table(VISITS, max_rows_per_unit="auto").group_by("k").count().mean("x")
    operation = query.operation(**budget)
    rest, delta = operation._rest(), budget.get("delta", 1e-6 if "rho" in budget else 0)
    for most in choosing.MOST_ROWS[::5]:
        cost = operation._answering(most, {}).event
        agreed = dp.epsilon(choosing._event_of_budget(rest), delta=delta)
        assert dp.epsilon(cost, delta=delta) <= agreed + 1e-9


def test_bounds_are_found_for_a_share_of_the_budget():
    """Powers of two around the values; an expression on such a column is refused, as its bounds would be private."""
    schema = dp.Schema(x=dp.Bounded("auto"))
    visits = table([(i, 100.0 + i % 50, "a") for i in range(3000)], schema, max_rows_per_unit=1)
    released = visits.mean("x").release(epsilon=2.0, rng=2)  # in one of twenty, noise alone widens them
    assert released.error["bounds of x"] == "64 to 256"
    assert abs(released.value["x_mean"][0] - 124.5) < 2
    with pytest.raises(ValueError, match="used in an expression or filter"):
        visits.filter(col("x") > 3).mean("x").operation(epsilon=1.0)
    with pytest.raises(ValueError, match="which tables alone find"):
        dp.encoding.Encoder(dp.schema.Declaration(schema))


def test_a_units_total_is_clipped_instead_of_its_rows_dropped():
    """All rows count, up to what is declared of a unit."""
    visits = table(VISITS, max_rows_per_unit=1, max_groups_per_unit=2)
    answer = visits.count(unit_most=8).sum("x", unit_bounds=(0, 100)).release(epsilon=1e3, rng=1).value
    assert answer["count"][0] == len(VISITS)
    assert answer["x_sum"][0] == pytest.approx(sum(x for _, x, _ in VISITS), abs=5)
    capped = visits.group_by("k").count(unit_most=2).release(epsilon=1e3, rng=1).value["count"]
    expected = [sum(min(2, sum(w == who and k == key for w, _, k in VISITS)) for who in range(300)) for key in "ab"]
    assert capped.to_list() == expected
    with pytest.raises(ValueError, match="no unit="):
        dp.table(pl.DataFrame(schema=TYPES), schema=SCHEMA).count(unit_most=2)


QUESTIONS = {
    "unit totals": lambda t: t.group_by("k").count(unit_most=3).sum("x", unit_bounds=(-2, 12)),
    "units": lambda t: t.group_by("k").count_distinct("who"),
    "pairs": lambda t: t.derive(y=col("x") % 3).group_by("k").correlation("x", "y"),
    "case": lambda t: t.parse("SELECT CASE WHEN x > 4 THEN 'h' ELSE 'l' END AS c, SUM(x * x) FROM t GROUP BY c"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_unit_with_many_odd_rows_moves_what_its_cap_covers(name):
    """Replay with the unit and without it, in both orders."""
    ask = lambda rows: QUESTIONS[name](table(rows, max_rows_per_unit=3, max_groups_per_unit=2)).release(epsilon=1.0)  # noqa: E731
    replay(ask, VISITS[:40], VISITS[:40] + LONE)
    replay(ask, LONE + VISITS[:40], VISITS[:40])


def test_chosen_caps_and_bounds_pass_replay():
    """A choice that is forced is the same on both sides, and so is all that follows."""
    schema = dp.Schema(x=dp.Bounded("auto"), k=dp.Categories(["a", "b"]))
    ask = lambda rows: table(rows, schema, max_rows_per_unit="auto").group_by("k").sum("x").release(epsilon=1.0)  # noqa: E731
    replay(ask, VISITS[:40] + LONE, VISITS[:40])


# --- joins of two private tables -------------------------------------------------------------------------------------

PEOPLE = [(who, float(who % 10), "ab"[who % 2]) for who in range(300)]


def pairs(visits, people, most=(2, 1)):
    """Visits joined with people."""
    left = table(visits, max_rows_per_unit=most[0])
    frame = pl.DataFrame(people, schema={"who": pl.Int64, "age": pl.Float64, "sex": pl.String}, orient="row")
    schema = dp.Schema(age=dp.Bounded(0, 10), sex=dp.Categories(["a", "b"]))
    right = dp.table(CONNECTION.from_arrow(frame.to_arrow()), schema=schema, unit="who", max_rows_per_unit=most[1])
    return left.join(right)


def test_a_join_pairs_rows_of_one_unit():
    """With caps that drop nothing the answer is that of a join; frames in memory are brought to one connection."""
    joined = pairs(VISITS, PEOPLE, (8, 1))
    assert joined.limit.rows == 8
    counts = joined.group_by("sex").count().release(epsilon=1e3, rng=1).value["count"].to_list()
    assert counts == [sum(who % 2 == odd for who, _, _ in VISITS) for odd in (0, 1)]
    frames = [pl.DataFrame(VISITS, schema=TYPES, orient="row"), pl.DataFrame({"who": range(100)})]
    one = dp.table(frames[0], schema=SCHEMA, unit="who", max_rows_per_unit=8)
    other = dp.table(frames[1], schema={}, unit="who", max_rows_per_unit=1)
    assert one.join(other).count().release(epsilon=1e3, rng=1).value["count"][0] == sum(w < 100 for w, _, _ in VISITS)


def test_a_unit_in_both_tables_moves_what_both_caps_cover(monkeypatch):
    """All its rows on both sides; without the caps on each side replay would say so."""
    twice = [(999, 1.0, "a"), (999, 2.0, "b"), (999, 3.0, "a"), (None, 1.0, "a")]
    ask = lambda sides: pairs(*sides, (2, 2)).group_by("sex").count().sum("x").release(epsilon=1.0)  # noqa: E731
    with_, without = (VISITS[:40] + LONE, PEOPLE[:20] + twice), (VISITS[:40], PEOPLE[:20] + twice[-1:])
    replay(ask, with_, without)
    replay(ask, without, with_)
    from discreet.tables import passes

    monkeypatch.setattr("discreet.tables.joining.kept_rows", lambda engine, frame, *rest: frame)
    monkeypatch.setattr(
        passes, "bound", lambda engine, frame, fields, *rest: engine.project(frame, [f.name for f in fields])
    )
    with pytest.raises(ReplayError, match="differs by"):
        replay(ask, with_, without)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t, u: t.join(dp.table(pl.DataFrame({"y": [1.0]}), schema={"y": dp.Bounded(0, 1)})), "on their unit"),
        (lambda t, u: t.join(u), "declare a column 'x'"),
        (lambda t, u: t.filter(col("x") > 1).join(u), "join first"),
        (lambda t, u: table(VISITS, max_rows_per_unit="auto").join(u), "needs a number on each side"),
        (lambda t, u: table(VISITS, max_rows_per_unit=99_999).join(table([], {}, max_rows_per_unit=999)), "at most"),
        (lambda t, u: t.join(dp.table(pl.DataFrame({"who": ["1"]}), schema={}, unit="who")), "of its own"),
    ],
)
def test_a_join_that_cannot_be_bounded_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make(table(VISITS, max_rows_per_unit=1), table(VISITS, max_rows_per_unit=1))
