"""discreet init drafts a schema from names and types; it asks people, and never the rows."""

from __future__ import annotations

import tomllib

import pytest
from typer.testing import CliRunner

from discreet import cli
from discreet.schema import Bounded, Categories, Dates, Times, Unlisted, parse_schema, read_schema

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


def test_a_file_that_is_not_there_is_said_to_be_missing(people, capsys):
    with pytest.raises(SystemExit):
        cli.main(["init", "peple.csv"])
    assert "There is no file 'peple.csv'." in capsys.readouterr().err


def test_what_is_answered_is_a_schema(people):
    said = "none\nnumber\n0\n100\ncategory\nf, m\nnone\nprivate\ndate\n2024-01-01\n2024-12-31\n\n"
    assert run("people.csv", "--ask", "-o", "known.toml", answers=said).exit_code == 0
    schema = read_schema(people / "known.toml").schema
    assert schema["age"] == Bounded(0, 100)
    assert schema["sex"] == Categories(["f", "m"])
    assert schema["zip"] == Unlisted()
    assert schema["day"] == Dates("2024-01-01", "2024-12-31")
    assert 'odd "name"' not in schema


def test_a_column_of_times_is_one_of_the_answers(people):
    """Its hours and minutes are there for queries, which days do not have; the draft names the form."""
    said = "none\nnone\nnone\nnone\nnone\ntime\n2024-01-01\n2024-12-31\n\n"
    assert run("people.csv", "--ask", "-o", "known.toml", answers=said).exit_code == 0
    assert read_schema(people / "known.toml").schema["day"] == Times("2024-01-01", "2024-12-31")
    assert '{ times = ["2023-01-01", "2024-12-31"] }' in (people / "known.toml").read_text()


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
    columns |= {"at": pa.array([0], pa.timestamp("us"))}
    pq.write_table(pa.table(columns), people / "x.parquet")
    assert run("x.parquet", "--no-ask").exit_code == 0
    lines = (people / "schema.toml").read_text().splitlines()[-4:]
    assert [line.split("{ ")[1].split(" ")[0] for line in lines] == ["bounds", "categories", "dates", "times"]


@pytest.mark.parametrize("name", ["none.csv", "rows.jsonl", "notes.txt"])
def test_files_that_declare_no_columns_are_refused(people, name):
    if name != "none.csv":
        (people / name).write_text("{}")
    assert isinstance(run(name, "--no-ask").exception, (ValueError, FileNotFoundError))


def test_a_schema_that_is_there_is_not_overwritten(people):
    (people / "schema.toml").write_text("mine")
    assert isinstance(run("people.csv", "--no-ask").exception, ValueError)
    assert (people / "schema.toml").read_text() == "mine"


WRITTEN = {
    "semicolons": ("t.csv", "age;sex;day\n", ";"),
    "tabs": ("t.csv", "age\tsex\tday\n", "\t"),
    "bars": ("t.csv", "age|sex|day\n", "|"),
    "commas in tabs": ("t.tsv", "age,sex,day\n", ","),
    "a comma in a name": ("t.csv", "age, in years;sex;day\n", ";"),
    "Excel": ("t.csv", "\ufeffage;sex;day\r\n", ";"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_first_line_tells_the_separator_and_the_schema_says_it(people, name):
    path, line, sign = WRITTEN[name]
    (people / path).write_bytes((line + f"{SECRET}\n").encode())
    found = run(path, "--no-ask")
    assert f"3 columns, separated by {sign!r}" in found.output
    text = (people / "schema.toml").read_text()
    assert tomllib.loads(text)["separator"] == sign
    assert "# sex = { ... }\n# day = { ... }\n" in text
    assert '# decimal = ","' in text
    assert SECRET not in text + found.output


def test_an_ordinary_file_needs_no_separator(people):
    assert run("people.csv", "--no-ask").output.startswith("wrote schema.toml: 5 columns; ")
    assert "separator" not in tomllib.loads((people / "schema.toml").read_text())


def test_what_options_say_is_written(people):
    (people / "t.csv").write_text("a;b,c\n")
    refused = run("t.csv", "--no-ask").exception
    assert "may be separated by ';' or ','" in str(refused)
    assert not (people / "schema.toml").exists()
    assert run("t.csv", "--no-ask", "--separator", ";", "--decimal", ",", "--date-format", "%d.%m.%Y").exit_code == 0
    facts = tomllib.loads((people / "schema.toml").read_text())
    assert {name: facts[name] for name in ("separator", "decimal", "date_format")} == {
        "separator": ";",
        "decimal": ",",
        "date_format": "%d.%m.%Y",
    }


def test_how_numbers_and_days_are_written_is_asked_where_any_are_declared(people):
    """By a day whose parts cannot be mistaken for each other."""
    (people / "t.csv").write_text("age;day\n")
    said = "none\nnumber\n0\n100\ndate\n2024-01-01\n2024-12-31\n12,5\n1.1.24\n31.12.24\n"
    found = run("t.csv", "--ask", answers=said)
    assert found.exit_code == 0
    assert "That is not the 31st of the 12th month of 2024" in found.output
    form = read_schema(people / "schema.toml").text
    assert (form.separator, form.decimal, form.date_format) == (";", ",", "%d.%m.%y")


@pytest.mark.parametrize(
    ("answer", "decimal", "thousands"),
    [("1234.5", ".", None), ("1,234.5", ".", ","), ("1234,5", ",", None), ("1.234,5", ",", None), ("12", ".", None)],
)
def test_thousands_are_asked_with_the_decimal_sign(people, answer, decimal, thousands):
    (people / "t.csv").write_text("age;day\n")
    assert run("t.csv", "--ask", answers=f"none\nnumber\n0\n100\nnone\n{answer}\n").exit_code == 0
    form = read_schema(people / "schema.toml").text
    assert (form.decimal, form.thousands) == (decimal, thousands)
    assert run("t.csv", "--no-ask", "--thousands", "'", "--force").exit_code == 0
    assert tomllib.loads((people / "schema.toml").read_text())["thousands"] == "'"


def test_a_line_for_excel_is_no_line_of_names(people):
    for sign in ",;":
        (people / "t.csv").write_text(f"sep={sign}\na{sign}b\n")
        assert "a word for Excel" in str(run("t.csv", "--no-ask").exception)


def test_the_form_of_text_is_for_text_files(people):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": [1.5]}), people / "x.parquet")
    assert "is for text files" in str(run("x.parquet", "--no-ask", "--decimal", ",").exception)


def test_a_space_after_each_comma_is_seen_and_a_comma_is_no_decimal_sign_then(people):
    (people / "t.csv").write_text(f"age, sex, day\n{SECRET}\n")
    assert "3 columns, separated by ', '" in run("t.csv", "--no-ask").output
    text = (people / "schema.toml").read_text()
    assert tomllib.loads(text)["separator"] == ", "
    assert "# sex = { ... }\n# day = { ... }\n" in text
    assert "decimal" not in text


def test_a_first_line_that_seems_to_be_a_row_is_noticed(people):
    (people / "row.csv").write_text("39, State-gov, 77516, 13\n50, Private, 83311, 9\n")
    assert "3 of the 4 names in the first line are numbers" in run("row.csv", "--no-ask").output
    (people / "years.csv").write_text("land,2019,2020,2021\n")
    assert "are numbers" not in run("years.csv", "--no-ask", "--force").output
