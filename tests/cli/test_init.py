"""discreet init drafts a schema from names and types; it asks people, and never the rows."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from discreet import cli
from discreet.schema import Bounded, Categories, Dates, Unlisted, parse_schema, read_schema

SECRET = "Zanzibar-4711"


def run(*words, answers=""):
    return CliRunner().invoke(cli.app(), ["init", *words], input=answers)


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(f'age,sex,"odd ""name""",zip,day\n31,f,1,{SECRET},2024-01-02\n')
    return tmp_path


def test_a_draft_names_every_column_and_holds_no_value(people):
    found = run("people.csv", "--no-ask")
    assert found.exit_code == 0
    text = (people / "schema.toml").read_text()
    assert all(name in text for name in ("# age = ", "# sex = ", "# zip = ", r'# "odd \"name\"" = '))
    assert SECRET not in text + found.output
    assert "declares nothing yet" in found.output
    with pytest.raises(ValueError, match="no \\[columns\\]"):
        parse_schema(text)


def test_what_is_answered_is_a_schema(people):
    said = "none\nnumber\n0\n100\ncategory\nf, m\nnone\nprivate\ndate\n2024-01-01\n2024-12-31\n"
    assert run("people.csv", "--ask", "-o", "known.toml", answers=said).exit_code == 0
    schema = read_schema(people / "known.toml").schema
    assert schema["age"] == Bounded(0, 100)
    assert schema["sex"] == Categories(["f", "m"])
    assert schema["zip"] == Unlisted()
    assert schema["day"] == Dates("2024-01-01", "2024-12-31")
    assert 'odd "name"' not in schema


def test_it_asks_first_whose_rows_these_are_and_writes_what_it_was_told(people):
    """A column that is not there is asked for again; the column of identifiers is asked for nothing else."""
    found = run("people.csv", "--ask", answers="person\nzip\n4\nnumber\n0\n100\nnone\nnone\nnone\n")
    assert found.exit_code == 0
    assert found.output.startswith("Whose rows are these?")
    assert "There is no column 'person'" in found.output
    declared = read_schema(people / "schema.toml")
    assert (declared.unit, declared.max_rows_per_unit) == ("zip", 4)
    assert declared.schema["age"] == Bounded(0, 100)


def test_rows_of_different_people_are_said_to_be(people):
    assert run("people.csv", "--ask", answers="none\nnumber\n0\n100\n" + 4 * "none\n").exit_code == 0
    text = (people / "schema.toml").read_text()
    assert "as was said: each row is somebody else's" in text
    assert read_schema(people / "schema.toml").unit is None


def test_an_answer_that_is_no_declaration_is_asked_for_again(people):
    said = "none\nnubmer\nnumber\n9\n1\nnumber\n1\n9\nnone\nnone\nnone\nnone\n"
    found = run("people.csv", "--ask", answers=said)
    assert found.exit_code == 0
    assert "'nubmer' is none of these" in found.output
    assert "'age': low is 9.0 and high 1.0" in found.output
    assert read_schema(people / "schema.toml").schema["age"] == Bounded(1, 9)


def test_types_of_parquet_suggest_the_form(people):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {"n": pa.array([1.5]), "t": pa.array([SECRET]), "d": pa.array([0], pa.date32())}
    pq.write_table(pa.table(columns), people / "x.parquet")
    assert run("x.parquet", "--no-ask").exit_code == 0
    lines = (people / "schema.toml").read_text().splitlines()[-3:]
    assert [line.split("{ ")[1].split(" ")[0] for line in lines] == ["bounds", "categories", "dates"]


@pytest.mark.parametrize("name", ["none.csv", "rows.jsonl", "notes.txt"])
def test_files_that_declare_no_columns_are_refused(people, name):
    if name != "none.csv":
        (people / name).write_text("{}")
    assert isinstance(run(name, "--no-ask").exception, (ValueError, FileNotFoundError))


def test_a_schema_that_is_there_is_not_overwritten(people):
    (people / "schema.toml").write_text("mine")
    assert isinstance(run("people.csv", "--no-ask").exception, ValueError)
    assert (people / "schema.toml").read_text() == "mine"
