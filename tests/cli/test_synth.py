"""``discreet synth``: a file in, a table that may be published out, a book charged first.

The estimator is a stand-in with the synthesiser's interface: this is about the command alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import polars as pl
import pytest

from discreet import cli, synthesis
from discreet.encoding import Encoder
from discreet.ledger import Ledger
from discreet.release import charged
from discreet.schema import Declaration
from discreet.statistics import Count

SCHEMA = '[columns]\nage = { bounds = [0, 100] }\nsex = { categories = ["f", "m"] }\n'
SYNTH = ("synth", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "out.parquet")


class StandIn:
    """Counts the rows privately, and draws that many equal ones."""

    made: ClassVar[list[StandIn]] = []

    def __init__(self, epsilon, delta, *, engine="residual"):
        self.operation = Count(epsilon=epsilon)
        self.told = {"engine": engine, "delta": delta}
        StandIn.made.append(self)

    def explain(self, schema, n=None):
        return f"a model of {', '.join(schema.schema)}, n={n}\nepsilon = 1"

    def fit(self, data, *, schema, book=None, label="", rng=None, progress=None):
        assert isinstance(schema, Declaration)
        rows = Encoder(schema).prepare(data)
        source = SimpleNamespace(
            event=self.operation.event,
            unit=self.operation.unit,
            release=lambda _, rng: self.operation.release(rows().codes("sex"), rng),
        )
        found = charged(source, book=book, label=label, rng=rng)
        if progress is not None:
            progress(1.0, "drawing")
        self.event_, self.total, self.told = found.event, round(found.value), self.told | {"label": label, "rng": rng}
        return self

    def sample(self, n=None, rng=None):
        size = self.total if n is None else n
        return pl.DataFrame({"age": [40.0] * size, "sex": ["f"] * size})

    def save(self, path):
        Path(path).write_text("a model")


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(synthesis, "TableSynthesizer", StandIn, raising=False)
    StandIn.made.clear()
    Path("data.csv").write_text("age,sex\n" + "".join(f"{i % 100},{'fm'[i % 2]}\n" for i in range(500)))
    Path("schema.toml").write_text(SCHEMA)


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


def test_a_table_is_drawn_and_the_book_charged(capsys):
    with Ledger("sqlite:///budget.db") as ledger:
        ledger.open("census", epsilon=1.5, delta=1e-6)
    run(*SYNTH, "--ledger", "budget.db", "--model", "model.json", "--seed", "3")
    told = capsys.readouterr().out
    drawn = pl.read_parquet("out.parquet")
    assert f"wrote out.parquet: {len(drawn)} synthetic rows" in told
    assert "epsilon = 1 at delta = 1e-09 (add-remove) for one row" in told
    assert "made with a seed" in told
    assert ("with decimals: age; whole = true" in told) == drawn.schema["age"].is_float()
    assert abs(len(drawn) - 500) < 30
    assert Path("model.json").read_text() == "a model"
    assert StandIn.made[0].told == {"engine": "residual", "delta": 1e-9, "label": "synth out.parquet", "rng": 3}
    with Ledger("sqlite:///budget.db") as ledger:
        assert [entry.label for entry in ledger.book("census").entries()] == ["", "synth out.parquet"]
    run(*SYNTH, "--ledger", "budget.db", "--force", code=2)
    assert "above the limit" in capsys.readouterr().err
    assert len(pl.read_parquet("out.parquet")) == len(drawn)  # what was there stays


def test_one_schema_serves_queries_and_synthesis(capsys):
    """Times of day, which no synthesizer models, are left out, and it is said."""
    Path("schema.toml").write_text(SCHEMA + 'at = { times = ["2024-01-01", "2024-12-31"] }\n')
    run(*SYNTH, "--explain", "--rows", "10")
    assert "a model of age, sex, n=10" in capsys.readouterr().out
    run(*SYNTH, "--no-book")
    assert "left out: at, because times of day are not modelled" in capsys.readouterr().out


def test_rows_and_machine_readable_words(capsys):
    run(*SYNTH[:-1], "out.csv", "--rows", "7", "--no-book", "--json", "--engine", "mbi")
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == len(pl.read_csv("out.csv")) == 7
    assert told["event"]["type"]
    assert told["reproducible"] is False
    assert StandIn.made[0].told["engine"] == "mbi"


def test_explain_reads_and_spends_nothing(capsys):
    Path("data.csv").unlink()
    run(*SYNTH, "--explain", "--rows", "100")
    assert "a model of age, sex, n=100" in capsys.readouterr().out
    assert not Path("out.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SYNTH[:-1], "out.xls"), "must name a file that ends in .csv or .parquet"),
        (SYNTH[:-2], "must name a file"),
        ((*SYNTH, "--rows", "0"), "rows is 0"),
        ((*SYNTH, "--explain"), "--rows is missing"),
        ((*SYNTH, "--model", "nowhere/model.json"), "there is no folder"),
        ((*SYNTH[:-1], "data.csv"), "the command reads it"),
        (("synth", "absent.csv", *SYNTH[2:]), "There is no file 'absent.csv'"),
        ((*SYNTH, "--engine", "magic"), "magic"),
    ],
    ids=["ending", "no out", "rows", "explain", "folder", "input", "absent", "engine"],
)
def test_public_mistakes_are_found_before_the_charge(arguments, message, capsys):
    with Ledger("sqlite:///budget.db") as ledger:
        ledger.open("census", epsilon=1.5, delta=1e-6)
    run(*arguments, "--ledger", "budget.db", code=2)
    assert message in " ".join(capsys.readouterr().err.split())
    with Ledger("sqlite:///budget.db") as ledger:
        assert [entry.kind for entry in ledger.book("census").entries()] == ["open"]
