"""Tables of databases are sources like files: the same prices, the same answers, one budget by whatever name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from discreet.desk.configuration import read_configuration
from discreet.desk.public_tables import empty_table, public_facts, read_declaration
from discreet.desk.questions import DeskQuestion
from discreet.desk.service import Service
from discreet.desk.worker import _open
from discreet.errors import DiscreetError
from tests.desk.desks import BY_WARD, COUNT, ask, running, write_desk

QUESTIONS = ("COUNT(*)", "SUM(days)", "AVG(days)", "MEDIAN(days)")


def write_duckdb(folder: Path) -> Path:
    """The visits in a table of a DuckDB file."""
    write_desk(folder)
    with duckdb.connect(str(folder / "visits.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT ward, days::INTEGER AS days FROM read_parquet($1)",
                           [str(folder / "visits.parquet")])  # fmt: skip
        connection.execute("CREATE TABLE others AS SELECT * FROM visits")
    return folder / "visits.duckdb"


def write_postgres(url: str) -> None:
    """The visits in a table of PostgreSQL, with entries that no other type of the world has."""
    with connected(url) as connection:
        connection.execute("DROP TABLE IF EXISTS visits; DROP TABLE IF EXISTS odd")
        connection.execute("CREATE TABLE visits (ward text, days integer, note jsonb)")
        connection.execute(
            "INSERT INTO visits SELECT CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END, 10"
            " FROM generate_series(1, 600) i"
        )
        connection.execute(
            "CREATE TABLE odd AS SELECT 'north' AS ward, v AS days, d AS day FROM (VALUES"
            " ('NaN'::numeric, 'infinity'::date), (1e300, '0044-03-15 BC'), (7, '2024-02-29')) AS x(v, d)"
        )
        connection.commit()


def connected(url: str) -> Any:
    import psycopg

    return psycopg.connect(url)


def use(folder: Path, source: str, table: str) -> Path:
    """The desk's configuration with another source."""
    file = folder / "desk.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(
        text.replace('source = "visits.parquet"', f'source = "{source}"\ntable = "{table}"'), encoding="utf-8"
    )
    return file


def assert_prices_as_records(folder: Path, opened: Any) -> None:
    declared, contents = read_declaration(folder / "visits.toml")
    empty = empty_table("visits", contents, public_facts(opened.table))
    for sql in QUESTIONS:
        question = DeskQuestion("visits", COUNT.budget, sql=f"SELECT ward, {sql} AS x FROM visits GROUP BY ward")
        on_records = question.operation(opened.table)
        assert question.operation(empty).event == on_records.event
        assert on_records.release(rng=1).value["ward"].to_list() == ["north", "south"]
    job = {
        "version": 1,
        "budget": {"epsilon": 50.0},
        "operation": {"type": "marginals", "dataset": "visits", "sets": [["ward"]]},
    }
    release = DeskQuestion.from_dict(job).operation(empty, declared, opened.data).release(rng=1)
    assert release.value[0]["count"].round(0).to_list() == pytest.approx([300, 300, 0], abs=2)


def test_a_table_of_a_duckdb_file_is_a_source(tmp_path: Path) -> None:
    source = write_duckdb(tmp_path)
    opened = _open(str(source), str(tmp_path / "visits.toml"), "visits", memory=1.0)
    assert_prices_as_records(tmp_path, opened)
    with pytest.raises(duckdb.Error):
        opened.data.connection.execute("SELECT * FROM read_text('/etc/hostname')")
    with pytest.raises(duckdb.Error):
        opened.data.connection.execute("INSERT INTO source.main.visits VALUES ('north', 1)")


def test_a_table_of_postgresql_is_a_source(tmp_path: Path, postgres: str) -> None:
    write_postgres(postgres)
    write_desk(tmp_path)
    opened = _open(postgres, str(tmp_path / "visits.toml"), "visits", memory=1.0)
    assert_prices_as_records(tmp_path, opened)
    assert opened.place == _open(postgres, str(tmp_path / "visits.toml"), "public.visits", memory=1.0).place
    assert "/visits" not in str(opened.place)


def test_no_entry_of_postgresql_decides_whether_a_desk_starts(tmp_path: Path, postgres: str) -> None:
    """A day before Christ, infinity, NaN: they are missing, as they are in a file."""
    write_postgres(postgres)
    schema = tmp_path / "odd.toml"
    schema.write_text(
        '[columns]\nday = { dates = ["2024-01-01", "2024-12-31"] }\ndays = { bounds = [0, 30] }\n', encoding="utf-8"
    )
    opened = _open(postgres, str(schema), "odd", memory=1.0)
    answer = opened.table.count("day").sum("days").release(epsilon=50.0, rng=1).value
    assert answer.item(0, 0) == pytest.approx(1, abs=2)
    assert answer.item(0, 1) == pytest.approx(37, abs=12)  # 1e300 counts as 30, and NaN not at all


def test_what_is_wrong_with_a_database_is_said_to_its_owner(tmp_path: Path, postgres: str) -> None:
    write_postgres(postgres)
    source, schema = write_duckdb(tmp_path), tmp_path / "visits.toml"
    with pytest.raises(DiscreetError, match="no table 'none'"):
        _open(postgres, str(schema), "none", memory=1.0)
    with pytest.raises(duckdb.Error, match="none"):
        _open(str(source), str(schema), "none", memory=1.0)
    schema.write_text("[columns]\nnote = { unlisted = true }\n", encoding="utf-8")
    with pytest.raises(DiscreetError, match="'note' has type jsonb"):
        _open(postgres, str(schema), "visits", memory=1.0)
    schema.write_text("[columns]\nelse = { unlisted = true }\n", encoding="utf-8")
    with pytest.raises(DiscreetError, match="the table does not have it"):
        _open(postgres, str(schema), "visits", memory=1.0)
    with pytest.raises(DiscreetError, match="did not give the table") as refused:
        _open("postgresql://u:secret@127.0.0.1:1/none", str(schema), "visits", memory=1.0)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "table", "reason"),
    [
        ("spark://cluster:7077", "visits", "Spark is none: it runs programs"),
        ("sc://cluster", "visits", "Spark is none"),
        ("https://data.example/visits.csv", "visits", "is an address"),
        ("visits.duckdb", "a\\nb", "text of one line"),
        ("postgresql://u:secret@h@h/d", "visits", "second '@'"),
    ],
)
def test_sources_that_a_confined_worker_cannot_have_are_refused_by_name(
    tmp_path: Path, source: str, table: str, reason: str
) -> None:
    write_desk(tmp_path)
    with pytest.raises(ValueError, match=reason) as refused:
        read_configuration(use(tmp_path, source, table))
    assert "secret" not in str(refused.value)


def test_a_database_without_its_table_is_refused(tmp_path: Path) -> None:
    file = write_desk(tmp_path)
    text = file.read_text(encoding="utf-8").replace('"visits.parquet"', '"postgresql://host/db"')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="table must name one of its tables"):
        read_configuration(file)


@pytest.mark.slow(sibling="test_a_table_of_postgresql_is_a_source")
def test_a_desk_answers_about_postgresql_with_everything_in_postgresql(tmp_path: Path, postgres: str) -> None:
    """Ledger, state and source, by one configuration; the same table by another address is the same source."""
    write_postgres(postgres)
    write_desk(tmp_path, ledger=postgres, state=postgres)
    file = use(tmp_path, postgres, "visits")
    with running(file) as desk:
        answer = ask(desk.client(), BY_WARD, "q").json()
        assert answer["state"] == "answered"
        assert answer["columns"][0]["values"] == ["north", "south"]
    text = file.read_text(encoding="utf-8")
    again = text.replace('table = "visits"', 'table = "public.visits"\nbook = "another"')
    file.write_text(again, encoding="utf-8")
    with pytest.raises(DiscreetError, match="a second book would be a second budget"):
        Service(read_configuration(file))


@pytest.mark.parametrize("source", ["years", "years/*.parquet", "years/**/*.parquet"])
def test_a_budget_of_one_file_of_a_folder_is_no_fresh_one(tmp_path: Path, source: str) -> None:
    file = write_desk(tmp_path)
    (tmp_path / "years").mkdir()
    (tmp_path / "years" / "one.parquet").symlink_to(tmp_path / "visits.parquet")
    with file.open("a", encoding="utf-8") as text:
        text.write(f'\n[datasets.again]\nsource = "{source}"\nschema = "visits.toml"\nepsilon = 1.0\n')
    with pytest.raises(ValueError, match="another book counts already"):
        read_configuration(file)


def test_a_file_of_a_folder_that_leads_outside_is_refused(tmp_path: Path) -> None:
    file = write_desk(tmp_path)
    (tmp_path / "years").mkdir()
    (tmp_path / "years" / "one.parquet").symlink_to("/etc/hostname")
    file.write_text(file.read_text(encoding="utf-8").replace('"visits.parquet"', '"years"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"lies outside of desk\.root"):
        read_configuration(file)


def test_a_budget_of_a_hard_link_is_no_fresh_one(tmp_path: Path) -> None:
    file = write_desk(tmp_path)
    (tmp_path / "copy.parquet").hardlink_to(tmp_path / "visits.parquet")
    with file.open("a", encoding="utf-8") as text:
        text.write('\n[datasets.again]\nsource = "copy.parquet"\nschema = "visits.toml"\nepsilon = 1.0\n')
    with pytest.raises(ValueError, match="another book counts already"):
        read_configuration(file)
