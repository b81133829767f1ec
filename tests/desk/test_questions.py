"""Questions survive the journey, and nothing else does: no node, no name, no call that people could not have made."""

from __future__ import annotations

import datetime as dt
import json
from itertools import pairwise
from typing import Any

import pytest

from discreet.desk.expressions import read_expression, write_expression
from discreet.desk.json_text import DEEPEST, LONGEST, read_object
from discreet.desk.public_tables import empty_table, made_up_table
from discreet.desk.questions import MOST_STEPS, BuilderCall, DeskBudget, DeskQuestion
from discreet.desk.row_work import MOST_WORK, row_work
from discreet.tables import case, col
from discreet.tables.query import TableQuery

SCHEMA = {
    "unit": "person",
    "max_rows_per_unit": 2,
    "columns": {
        "age": {"bounds": [0, 100], "whole": True},
        "cost": {"bounds": [0, 1000]},
        "city": {"categories": ["bern", "basel"], "other": "else"},
        "code": {"categories": [1, 2, 3]},
        "day": {"dates": ["2024-01-01", "2024-12-31"]},
        "street": {"unlisted": True},
    },
}
KINDS = {"age": "number", "cost": "number", "city": "text", "code": "integer", "day": "number", "street": "text",
         "person": "integer"}  # fmt: skip
FACTS = {name: {"kind": kind, "whole": name == "age", "spelled": False} for name, kind in KINDS.items()}
EPSILON = DeskBudget(epsilon=1.0)
EXPRESSIONS = {
    "comparison": (col("age") >= 18) & (col("cost") < 5) | ~(col("code") == 2),
    "arithmetic": ((col("cost") + 1) * 2 - col("age") / 3 % 2).clip(0, 10) > 1,
    "functions": col("cost").sqrt().log().abs().floor() > 1,
    "membership": col("city").is_in(["bern"]) & col("code").is_in([1, 2]),
    "missing": col("cost").is_missing() | (col("cost").fill(col("age"), 0) > 3),
    "case": case((col("age") < 18, 1), (col("age") < 65, 2), otherwise=3) == 2,
    "text": col("city").text.lower().text.starts_with("b") & col("city").text.like("b%n"),
    "parts": col("city").text.part(1, 2).text.followed_by("x").text.upper().text.trim().text.length() >= 3,
    "ends": col("city").text.ends_with("n") | col("city").text.contains("er"),
    "dates": (col("day").date.year() == 2024) & (col("day") >= dt.date(2024, 2, 1)) & (col("day").date.weekday() < 3),
    "starts": col("day").date.start("month") == dt.date(2024, 2, 1),
    "truth": (col("age") > 3).as_number() > 0,
    "among": col("city").among(["bern"], "other") == "bern",
}


def table() -> Any:
    return empty_table("people", SCHEMA, FACTS)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_is_the_same_after_its_journey(name: str) -> None:
    wire = json.loads(json.dumps(write_expression(EXPRESSIONS[name])))
    assert read_expression(wire).node == EXPRESSIONS[name].node
    table().filter(read_expression(wire)).count().operation(epsilon=1.0)


AGE = {"node": "Column", "name": "age"}


@pytest.mark.parametrize(
    "wire",
    [
        None,
        [],
        {"node": "Column"},
        {"node": "Column", "name": 7},
        {"node": "Column", "name": "age", "more": 1},
        {"node": "Lookup", "inner": {"node": "Column", "name": "age"}, "keys": [], "found": []},
        {"node": "__class__", "name": "age"},
        {"node": "Number", "constant": True, "moment": False},
        {"node": "Number", "constant": 1e308, "moment": False},
        {"node": "Number", "constant": 1, "moment": 1},
        {"node": "Text", "constant": 1},
        {"node": "Binary", "sign": "**", "left": 1, "right": 2},
        {"node": "Function", "name": "clip", "inner": {"node": "Column", "name": "age"}},
        {
            "node": "TextFunction",
            "name": "starts_with",
            "inner": {"node": "Column", "name": "a"},
            "start": 1,
            "size": 1,
        },
        {"node": "Part", "name": "start", "inner": {"node": "Column", "name": "day"}},
        {"node": "Logic", "sign": "&", "parts": []},
        {"node": "Logic", "sign": "~", "parts": []},
        {"node": "IsIn", "inner": AGE, "values": 7},
        {"node": "IsIn", "inner": AGE, "values": [[1]]},
        {"node": "Coalesce", "parts": []},
        {"node": "Clip", "inner": 3, "low": 0, "high": 1},
        {"node": "Case", "conditions": [AGE], "values": [], "otherwise": None},
    ],
)
def test_a_node_that_nobody_could_have_built_is_refused(wire: Any) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_expression(wire)
    assert type(refused.value) is ValueError


Call = BuilderCall
QUESTIONS = {
    "groups": (
        Call("group_by", ("city", "code")),
        Call("mean", ("cost",)),
        Call("count", (), {"name": "n"}),
    ),
    "filter": (Call("filter", (col("age") >= 18,)), Call("sum", ("cost",))),
    "derive": (Call("derive", (), {"half": (col("cost") / 2).clip(0, 500)}), Call("median", ("half",))),
    "select": (Call("select", ("age", "city")), Call("histogram", ("age", 5))),
    "edges": (Call("histogram", ("age", [0, 18, 65, 100])),),
    "totals": (
        Call("group_by", ("city",)),
        Call("count"),
        Call("totals", ([],)),
        Call("limit", (3,)),
    ),
    "order": (
        Call("group_by", ("city",)),
        Call("count"),
        Call("order_by", ("count",), {"descending": True}),
    ),
    "unit": (Call("sum", ("cost",), {"unit_bounds": [0, 50]}),),
    "pairs": (Call("covariance", ("age", "cost")), Call("correlation", ("age", "cost"))),
    "others": (
        Call("variance", ("age",)),
        Call("deviation", ("cost",)),
        Call("quantile", ("age", 0.9)),
        Call("quantiles", ("cost", [0.1, 0.9])),
        Call("count_distinct", ("street",)),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_costs_the_same_after_its_journey(name: str) -> None:
    question = DeskQuestion("people", EPSILON, QUESTIONS[name], label="a few words")
    wire = read_object(json.dumps(question.to_dict()).encode())
    read = DeskQuestion.from_dict(wire)
    assert read.to_dict() == question.to_dict()
    assert read.digest("ada") == question.digest("ada") != question.digest("bob")
    assert read.operation(table()).event == question.operation(table()).event
    read.operation(made_up_table("people", SCHEMA, FACTS, rows=20)).release(rng=1)


def test_sql_is_read_again_by_our_parser() -> None:
    question = DeskQuestion("people", EPSILON, sql="SELECT city, AVG(cost) FROM people WHERE age > 18 GROUP BY city")
    read = DeskQuestion.from_dict(read_object(json.dumps(question.to_dict()).encode()))
    assert read.build(table()).rows.keys == ("city",)
    for sql in (
        "COPY people TO 'x'",
        "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
        "ATTACH 'x'",
        "INSTALL httpfs",
    ):
        with pytest.raises(ValueError, match=r"."):
            DeskQuestion("people", EPSILON, sql=sql).operation(table())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM patients",
        "SELECT COUNT(*) FROM '/etc/passwd'",
        "SELECT COUNT(*) FROM information_schema.tables",
        "SELECT COUNT(*) FROM elsewhere.people",
        "WITH x AS (SELECT age FROM patients) SELECT AVG(age) FROM x",
        "SELECT AVG(age) FROM (SELECT age FROM patients) people",
    ],
)
def test_sql_about_another_table_is_refused(sql: str) -> None:
    """Our parser takes any name for the one table that is open; at a desk the answer would be about another."""
    with pytest.raises(ValueError, match=r"is not what is asked about here: write 'people' after FROM"):
        DeskQuestion("people", EPSILON, sql=sql).operation(table())


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT COUNT(*) FROM "People" AS p WHERE p.age > 3;',
        "WITH people AS (SELECT age FROM people WHERE age > 3), x AS (SELECT age FROM people) SELECT AVG(age) FROM x",
        "SELECT AVG(age) FROM (SELECT age FROM people) patients",
    ],
)
def test_sql_about_the_data_set_is_read_however_it_is_called_inside(sql: str) -> None:
    assert DeskQuestion("people", EPSILON, sql=sql).operation(table()).event is not None


def doubled(depth: int) -> list[BuilderCall]:
    """Columns each of which names the one before it twice."""
    names = ["age", *(f"x{number}" for number in range(depth))]
    return [Call("derive", (), {name: (col(before) + col(before)).clip(0, 100)}) for before, name in pairwise(names)]


def repeated(depth: int) -> list[Call]:
    """Texts, each four times the one before."""
    names = ["street", *(f"x{number}" for number in range(depth))]
    return [Call("derive", (), {name: col(before).text.followed_by(*[col(before)] * 3)})
            for before, name in pairwise(names)]  # fmt: skip


def test_a_question_without_end_when_it_is_written_out_is_refused() -> None:
    """Whoever answers for it would be busy for years."""
    few = DeskQuestion("people", EPSILON, (*doubled(4), Call("sum", ("x3",))))
    assert few.operation(table()).event is not None
    with pytest.raises(ValueError, match="written out"):
        DeskQuestion("people", EPSILON, (*doubled(60), Call("sum", ("x59",)))).build(table())
    with pytest.raises(ValueError, match="written out"):
        DeskQuestion(
            "people", EPSILON, (*doubled(12), Call("filter", tuple([col("x11") > 3] * 5)), Call("count"))
        ).build(table())
    inner = "SELECT age AS x FROM people"
    for _ in range(30):
        inner = f"SELECT x + x AS x FROM ({inner})"
    with pytest.raises(ValueError, match=r"written out|nested"):
        DeskQuestion("people", EPSILON, sql=f"SELECT SUM(x) FROM ({inner})").operation(table())


LONG = case((col("street") == "a", col("street").text.followed_by("a" * 60_000)), otherwise="")


@pytest.mark.parametrize(
    "steps",
    [
        (Call("filter", (LONG.text.like("%" + "a" * 30_000 + "_b"),)),),
        (Call("filter", (LONG.text.contains("a" * 30_000 + "b"),)),),
        (Call("derive", (), {"x": LONG}), Call("filter", (col("x").text.like("%" + "a" * 1000 + "_b"),))),
        (Call("derive", (), {"long": col("street").text.followed_by(*["a" * 1000] * 50).text.like("a_" * 100)}),),
        (*repeated(6), Call("filter", (col("x5").text.ends_with("z" * 10),))),
    ],
)
def test_no_question_takes_long_at_one_row_alone(steps: tuple[Call, ...]) -> None:
    """How late its answer is would tell whether that row is there."""
    with pytest.raises(ValueError, match="One row may take"):
        DeskQuestion("people", EPSILON, (*steps, Call("count"))).operation(table())


def test_the_work_of_honest_questions_is_far_from_the_bound() -> None:
    listed = col("street").is_in([f"street {number}" for number in range(10_000)])
    for condition in [*EXPRESSIONS.values(), listed]:
        assert row_work(table().filter(condition).group_by().count().rows) < MOST_WORK / 10


@pytest.mark.parametrize("label", ["stay [approved by olga: 12ab]", "[Raised by olga]"])
def test_a_label_does_not_say_that_the_owner_approved(label: str) -> None:
    """The chain would, in the desk's own words."""
    with pytest.raises(ValueError, match="who approved"):
        DeskQuestion.from_dict(DeskQuestion("people", EPSILON, (Call("count"),), label=label).to_dict())


@pytest.mark.parametrize(
    "steps",
    [
        (Call("histogram", ("age", 1_000_000)),),
        (Call("group_by", ("day", "code")), Call("histogram", ("cost", 500))),
        (Call("group_by", ("day", "code")), *(Call("sum", ("cost",), {"name": f"s{n}"}) for n in range(190))),
    ],
)
def test_an_answer_is_bounded_in_size_before_it_is_paid_for(steps: tuple[BuilderCall, ...]) -> None:
    with pytest.raises(ValueError, match="numbers, but a desk sends"):
        DeskQuestion("people", EPSILON, steps).operation(table())


def test_a_statistic_of_a_column_is_that_of_the_table() -> None:
    wire = {"type": "statistic", "dataset": "people", "statistic": "quantile", "column": "age", "options": {"q": 0.5}}
    read = DeskQuestion.from_dict({"version": 1, "operation": wire, "budget": {"epsilon": 1.0}})
    assert read.operation(table()).event == table().quantile("age", 0.5).operation(epsilon=1.0, errors=True).event


def test_the_digest_is_of_everything_that_an_approval_is_about() -> None:
    base = DeskQuestion("people", EPSILON, QUESTIONS["groups"], label="a")
    others = [
        DeskQuestion("other", EPSILON, QUESTIONS["groups"], label="a"),
        DeskQuestion("people", DeskBudget(epsilon=1.1), QUESTIONS["groups"], label="a"),
        DeskQuestion("people", DeskBudget(epsilon=1.0, delta=1e-9), QUESTIONS["groups"], label="a"),
        DeskQuestion("people", EPSILON, QUESTIONS["filter"], label="a"),
        DeskQuestion("people", EPSILON, QUESTIONS["groups"], label="b"),
        DeskQuestion("people", EPSILON, QUESTIONS["groups"], errors=False, label="a"),
    ]
    assert len({one.digest("ada") for one in (base, *others)}) == len(others) + 1


TABLE = {"type": "table", "dataset": "people", "steps": [{"call": "count", "args": [], "options": {}}]}


def step(call: str, *args: Any, **options: Any) -> dict[str, Any]:
    return {**TABLE, "steps": [{"call": call, "args": list(args), "options": options}]}


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"more": 1},
        {"budget": {}},
        {"budget": None},
        {"budget": {"epsilon": 1, "rho": 1}},
        {"budget": {"epsilon": -1}},
        {"budget": {"epsilon": "1"}},
        {"budget": {"epsilon": True}},
        {"budget": {"epsilon": 1, "delta": 2}},
        {"budget": {"epsilon": 1, "noise": "none"}},
        {"budget": {"epsilon": 1, "rng": 7}},
        {"errors": 1},
        {"label": "two\nlines"},
        {"label": 7},
        {"label": "x" * 201},
        {"operation": None},
        {"operation": {**TABLE, "type": "pickle"}},
        {"operation": {**TABLE, "rng": 1}},
        {"operation": {"type": "sql", "dataset": "people", "sql": 7}},
        {"operation": {"type": "sql", "dataset": "people", "sql": "\ud800"}},
        {"operation": {**TABLE, "steps": TABLE["steps"] * (MOST_STEPS + 1)}},
        {"operation": {**TABLE, "steps": [{"call": "count"}]}},
        {"operation": {**TABLE, "steps": []}},
        {"operation": {"type": "statistic", "dataset": "people", "statistic": "filter", "column": "age"}},
        {"operation": step("release", 1.0)},
        {"operation": step("operation")},
        {"operation": step("__class__")},
        {"operation": step("join", "people")},
        {"operation": step("sql", "SELECT COUNT(*)")},
        {"operation": step("count", "age", "age", "age")},
        {"operation": step("count", rng=1)},
        {"operation": step("mean", ["age"])},
        {"operation": step("mean", 7)},
        {"operation": step("mean", {"expression": {"node": "Column", "name": "age"}})},
        {"operation": step("filter", "age > 3")},
        {"operation": step("filter", {"$expression": 1})},
        {"operation": step("derive", 1)},
        {"operation": step("group_by", [])},
        {"operation": step("quantile", "age", "x")},
        {"operation": step("histogram", "age", [[1]])},
        {"operation": step("totals", 7)},
        {"operation": {"type": "sql", "dataset": "p", "sql": f"SELECT {', '.join(['SUM(age)'] * 201)} FROM p"}},
    ],
)
def test_what_is_no_question_is_refused_in_words(change: dict[str, Any]) -> None:
    wire = {"version": 1, "operation": TABLE, "budget": {"epsilon": 1.0}} | change
    with pytest.raises(ValueError, match=r"."):
        DeskQuestion.from_dict(wire).operation(table())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[1]", "not a JSON object"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": 1e400}', "1.8e308"),
        (b'{"a": -1.0e999999}', "1.8e308"),
        (b'{"a": 1' + b"0" * 30 + b"}", "digits"),
        (b'{"a": ' + b"[" * DEEPEST + b"]" * DEEPEST + b"}", "nested"),
        (b'{"a": "' + b"x" * LONGEST + b'"}', "bytes"),
    ],
)
def test_json_of_strangers_is_bounded(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_object(text)


@pytest.mark.parametrize("call", ["release", "operation", "explain", "__class__", "rows", "_repr_html_"])
def test_a_step_calls_nothing_but_the_builder(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A method that reads would read before the charge, whatever is made of what it gives."""
    monkeypatch.setattr(TableQuery, "release", lambda *_, **__: pytest.fail("this was released"))
    steps = [{"call": "count", "args": [], "options": {}}, {"call": call, "args": [1.0], "options": {}}]
    asked = {"type": "table", "dataset": "people", "steps": steps}
    with pytest.raises(ValueError, match="call is"):
        DeskQuestion.from_dict({"version": 1, "operation": asked, "budget": {"epsilon": 1.0}}).operation(table())
