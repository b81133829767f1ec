"""Asking: what is free says everything, what costs is charged once, and an answer is read again for nothing."""

from __future__ import annotations

import csv
import io
import json
import re

import polars as pl
import pytest

from discreet.desk.pages.answer_views import AnswerView
from discreet.desk.pages.builder import BuiltQuestion
from discreet.desk.pages.downloads import inert
from discreet.desk.pages.public_words import ColumnWords
from tests.desk.pages.conftest import Hospital
from tests.desk.pages.test_signing_in import signed_in
from tests.desk.pages.visitor import Visitor

COUNTS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def told(visitor: Visitor, text: str, selector: str = "#panel") -> None:
    visitor.until(f"document.querySelector({json.dumps(selector)}).innerText.includes({json.dumps(text)})")
    visitor.until("!document.querySelector('.htmx-request, .htmx-settling, .htmx-added')")


def test_an_analyst_asks_and_is_answered_once(visitor: Visitor, hospital: Hospital) -> None:
    """From the first page to a figure with error bars; what is free beside it follows every letter."""
    name, token = hospital.person(epsilon=2.0)
    visitor.sign_in(token)
    visitor.click("a.primary")
    assert "it would cost" in visitor.text("#panel")
    told(visitor, "Made-up rows")  # the first rehearsal of a server comes after the first paint
    visitor.write("#sql", "SELECT ward, COUNT(*) AS n FROM visits WHERE sexx = 'f' GROUP BY ward")
    told(visitor, "did you mean 'sex'?")
    assert re.search(r"sexx = .*\n +\^", visitor.text("pre.where"))
    visitor.write("#sql", COUNTS)
    told(visitor, "n by ward")
    visitor.write("#epsilon", "0.5")
    told(visitor, "ε = 1.5")
    told(visitor, "±12")
    assert hospital.spent(name) == 0
    visitor.click("#panel .primary")
    assert "is spent, once" in visitor.text()
    assert hospital.spent(name) == 0
    visitor.click(".middle .primary")
    assert visitor.address().startswith("/answers/")
    assert hospital.spent(name) == 1
    bars = visitor.evaluate("document.querySelectorAll('.plot svg .whisker').length")
    assert bars == 5
    assert "95 % interval" in visitor.text()
    assert "In visits, n by ward is cardiology" in visitor.text("#sentence")
    before = visitor.text("table")
    visitor.open(visitor.address())
    assert visitor.text("table") == before
    assert hospital.spent(name) == 1


@pytest.mark.slow(sibling="test_an_analyst_asks_and_is_answered_once")
def test_the_slider_and_a_wanted_error_set_epsilon(visitor: Visitor, hospital: Hospital) -> None:
    visitor.sign_in(hospital.person()[1], "/data/visits/ask")
    visitor.write("#sql", COUNTS)
    visitor.write("#error", "12")
    visitor.click("button[value=error]", loads=False)
    visitor.until("Number(document.querySelector('#epsilon').value) > 0.4")
    told(visitor, "±12")
    wanted = float(visitor.evaluate("document.querySelector('#epsilon').value"))
    visitor.evaluate("""(() => { const slider = document.querySelector('input[type=range]'); slider.value = 800;
        slider.dispatchEvent(new Event('input', {bubbles: true})); })()""")
    visitor.until(f"Number(document.querySelector('#epsilon').value) < {wanted}")
    epsilon = visitor.evaluate("document.querySelector('#epsilon').value")
    told(visitor, f"ask for ε = {epsilon}")


def test_names_complete_and_colours_follow(visitor: Visitor, hospital: Hospital) -> None:
    visitor.sign_in(hospital.person()[1], "/data/visits/ask")
    visitor.write("#sql", "SELECT COUNT(*) AS n FROM visits WHERE ward = car")
    assert "cardiology" in visitor.text("#names")
    visitor.press("Enter")
    assert visitor.evaluate("document.querySelector('#sql').value").endswith("ward = 'cardiology'")
    assert visitor.evaluate("document.querySelector('.editor .s').textContent") == "'cardiology'"
    told(visitor, "it would cost")


def test_without_scripts_everything_works(visitor: Visitor, hospital: Hospital) -> None:
    visitor.scripts(False)
    name, token = hospital.person(epsilon=2.0)
    visitor.sign_in(token, "/data/visits/ask")
    assert not visitor.evaluate("document.querySelector('.editor').classList.contains('lit')")
    visitor.evaluate("document.querySelector('select[name=what]').value = 'mean'")
    visitor.evaluate("document.querySelector('select[name=column]').value = 'days'")
    visitor.click("input[value=sex]", loads=False)
    visitor.click("button[value=write]")
    assert visitor.evaluate("document.querySelector('#sql').value").startswith("SELECT sex, AVG(days) AS mean")
    visitor.write("#error", "1")
    visitor.write("#rows", "1000")
    visitor.click("button[value=error]")
    epsilon = float(visitor.evaluate("document.querySelector('#epsilon').value"))
    assert 0.05 < epsilon < 0.6
    visitor.click("#panel .primary")
    visitor.click(".middle .primary")
    assert visitor.evaluate("document.querySelectorAll('.plot svg .whisker').length") == 2
    assert hospital.spent(name) == 1


def test_with_the_keyboard_alone(visitor: Visitor, hospital: Hospital) -> None:
    name, token = hospital.person(epsilon=2.0)
    visitor.open("/")
    visitor.until("document.activeElement.id === 'token'")
    visitor.call("Input.insertText", text=token)  # the field has the focus
    visitor.press("Enter", loads=True)
    visitor.press("Tab")
    assert visitor.text("a:focus") == "Skip to the page"
    visitor.tab_to("a.primary")
    visitor.press("Enter", loads=True)
    visitor.tab_to("#panel .primary")
    visitor.press("Enter", loads=True)
    visitor.tab_to(".middle .primary")
    visitor.press("Enter", loads=True)
    assert visitor.address().startswith("/answers/")
    assert hospital.spent(name) == 1


@pytest.mark.slow(sibling="test_a_form_that_is_sent_twice_is_charged_once")
def test_two_browsers_on_one_budget(visitor: Visitor, another: Visitor, hospital: Hospital) -> None:
    """Both see that it fits; one is answered, the other is told, and nothing of theirs is spent."""
    name, token = hospital.person(epsilon=0.5)
    for one in (visitor, another):
        one.sign_in(token, "/data/visits/ask")
        one.write("#sql", COUNTS)
        told(one, "n by ward")
        one.write("#epsilon", "0.4")
        told(one, "ask for ε = 0.4")
        one.click("#panel .primary")
    for one in (visitor, another):
        one.click(".middle .primary")
    assert "To quote" in visitor.text()
    assert "This does not fit the budget" in another.text()
    assert "Nothing was charged." in another.text()
    assert another.missed()
    assert hospital.spent(name) == 1


def test_a_form_that_is_sent_twice_is_charged_once(hospital: Hospital) -> None:
    name, client = signed_in(hospital)
    form = {"sql": COUNTS, "epsilon": "0.1", "key": "twice", "label": "n"}
    replies = [client.post("/data/visits/release", data=form) for _ in range(2)]
    assert [reply.headers["location"] for reply in replies] == ["/answers/twice"] * 2
    assert hospital.spent(name) == 1
    other = client.post("/data/visits/release", data=form | {"epsilon": "0.2"})
    assert other.status_code == 409
    assert "Nothing was charged." in other.text
    assert hospital.spent(name) == 1


def test_a_repeated_question_shows_the_old_answer_first(hospital: Hospital) -> None:
    name, client = signed_in(hospital)
    client.post("/data/visits/release", data={"sql": COUNTS, "epsilon": "0.1", "key": "first", "label": "beds"})
    page = client.post("/data/visits/confirm", data={"sql": COUNTS, "epsilon": "0.3"}).text
    assert "You have this answer already" in page
    assert 'href="/answers/first"' in page
    assert "beds" in page
    _, stranger = signed_in(hospital)
    assert "already" not in stranger.post("/data/visits/confirm", data={"sql": COUNTS, "epsilon": "0.3"}).text
    assert stranger.get("/answers/first").status_code == 404
    assert hospital.spent(name) == 1


def test_files_hold_what_the_page_shows(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    client.post("/data/visits/release", data={"sql": COUNTS, "epsilon": "0.1", "key": "files", "label": "n"})
    answer = hospital.desk.service.state.questions(state="answered")[0].answer
    rows = list(csv.reader(io.StringIO(client.get("/answers/files/csv").text)))
    assert rows[0] == ["ward", "n", "n_low", "n_high"]
    assert [int(row[1]) for row in rows[1:]] == answer["columns"][1]["values"]
    frame = pl.read_parquet(io.BytesIO(client.get("/answers/files/parquet").content))
    assert frame["n"].to_list() == answer["columns"][1]["values"]
    sent = client.get("/answers/files/json").json()
    assert (sent["entry"], sent["question"]["operation"]["sql"]) == (answer["entry"], COUNTS)
    cell = client.get("/answers/files/py").text
    assert "desk.release_of('files')" in cell
    compile(cell, "cell", "exec")
    assert client.get("/answers/files/exe").status_code == 404


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_cell_is_run_as_a_formula(text: str) -> None:
    assert inert(text) == f"'{text}"
    assert inert(-1.5) == -1.5


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 191 }}"])
def test_what_people_write_is_escaped_everywhere(hospital: Hospital, text: str) -> None:
    _, client = signed_in(hospital, "owner")
    pages = [
        client.get("/data/visits/ask", params={"sql": text}),
        client.post("/data/visits/ask", data={"sql": text, "epsilon": text, "label": text, "value": text}),
        client.post("/data/visits/confirm", data={"sql": COUNTS, "epsilon": "0.1", "label": text}),
    ]
    client.post("/data/visits/release", data={"sql": COUNTS, "epsilon": "0.1", "key": "odd", "label": text})
    client.post("/answers/odd", data={"do": "note", "note": text})
    pages += [client.get(path) for path in ("/answers/odd", "/", "/answers/odd?x=" + text)]
    for page in pages:
        assert page.status_code < 500
        assert "<script>alert" not in page.text
        assert "<img" not in page.text.replace('<img src="/static/', "")
        assert "1337" not in page.text


@pytest.mark.parametrize("rows", ["inf", "-inf", "nan", "1e400", "-5", "0", "1e300"])
def test_an_error_in_groups_of_no_size_is_a_mistake_in_words(hospital: Hospital, rows: str) -> None:
    _, client = signed_in(hospital)
    form = {"sql": COUNTS, "epsilon": "0.1", "do": "error", "error": "20", "rows": rows}
    page = client.post("/data/visits/ask", data=form)
    assert page.status_code == 200
    assert "Something unexpected" not in page.text


def test_what_cannot_be_seen_is_shown_to_who_approves_it(hospital: Hospital) -> None:
    """Signs that turn the direction of writing make a question look like another one."""
    _, client = signed_in(hospital)
    _, owner = signed_in(hospital, "owner")
    sql = "SELECT COUNT(*) AS n FROM visits -- \u202e05 < syad EREHW\u2066"
    client.post("/data/visits/release", data={"sql": sql, "epsilon": "0.9", "key": "turned", "label": "turned"})
    for page in (owner.get("/requests").text, client.get("/answers/turned").text):
        assert "FROM visits -- \\u202e05 &lt; syad EREHW\\u2066" in page
    assert client.post("/answers/turned", data={"do": "cancel"}).status_code == 303


def test_the_form_writes_the_question_that_was_chosen() -> None:
    columns = [
        ColumnWords("ward name", "category", "", ("a", "b"), False, True),
        ColumnWords("days", "number", "", (), True),
    ]
    asked = BuiltQuestion("mean", "days", ("ward name", "none"), "ward name", "is", "o'b")
    assert asked.sql("visits", columns) == (
        'SELECT "ward name", AVG(days) AS mean\nFROM visits\nWHERE "ward name" = \'o\'\'b\'\nGROUP BY "ward name"'
    )
    assert (
        BuiltQuestion(where="days", comparison="at least", value="2,5").sql("v", columns).endswith("WHERE days >= 2.5")
    )
    with pytest.raises(ValueError, match="Choose a column"):
        BuiltQuestion("sum", "").sql("visits", columns)
    with pytest.raises(ValueError, match="comparison"):
        BuiltQuestion(where="days", comparison="; DROP", value="1").sql("visits", columns)


def test_an_answer_of_lists_and_gaps_is_shown() -> None:
    columns = [{"name": "ward", "type": "text", "values": ["a", None]},
               {"name": "h", "type": "whole list", "values": [[1, 2, -3], [0, 0, 0]]},
               {"name": "m", "type": "number", "values": [1.5, "nan"]}]  # fmt: skip
    view = AnswerView.of(columns, {"h": "±24 in each of 3 bins", "m": "depends"})
    assert view.keys == ("ward",)
    assert view.lines[1][0] == "–"
    assert view.lines[1][2] == "–"
    assert [name for name, _ in view.figures] == ["m", "h, a", "h, –"]
