"""``discreet pate``: a TOML file in, a student with its statement out, a book charged first."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet import cli
from discreet.ledger import Ledger

SCHEMA = """
[columns]
age = { bounds = [0, 100] }
sex = { categories = ["f", "m"] }
income = { categories = ["low", "middle", "high"] }
"""
CONFIG = """
[data]
private = "private.csv"
public = "public.csv"
schema = "schema.toml"
target = "income"
[teachers]
number = 30
[aggregation]
sigma = 3.0
queries = 60
"""


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(a, "fm"[i % 2], ("low", "middle", "high")[a // 34]) for i, a in enumerate(rng.integers(0, 100, 1500))]
    Path("private.csv").write_text("age,sex,income\n" + "\n".join(f"{a},{s},{c}" for a, s, c in rows) + "\n?,x,9\n")
    Path("public.csv").write_text("age,sex\n" + "\n".join(f"{a},{'fm'[a % 2]}" for a in rng.integers(0, 100, 80)))
    Path("schema.toml").write_text(SCHEMA)
    Path("pate.toml").write_text(CONFIG)


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


def test_a_student_is_taught_charged_and_predicts(capsys):
    with Ledger("sqlite:///books.db") as ledger:
        book = ledger.open("people", epsilon=60.0, delta=1e-6)
        run("pate", "pate.toml", "--seed", "1", "--ledger", "books.db", "--quiet")
        assert [entry.label for entry in book.entries()][1:] == ["student of pate.toml"]
    printed = capsys.readouterr().out
    assert "wrote student.json: income from age, sex, after 60 answers" in printed
    assert "(add-remove) for one row" in printed
    stated = json.loads(Path("student.json").read_text())["statement"]
    assert stated["charged"]["book"] == "people"
    assert stated["reproducible"]
    run("predict", "student.json", "private.csv", "--out", "out.csv")
    found = Path("out.csv").read_text().split()[1:]
    right = [line.split(",")[2] for line in Path("private.csv").read_text().split()[1:]]
    assert np.mean([one == other for one, other in zip(found, right, strict=True)]) > 0.8


def test_two_classes_and_a_threshold_work_alike(capsys):
    Path("schema.toml").write_text(SCHEMA.replace('"low", "middle", "high"', '"low", "high"'))
    Path("pate.toml").write_text(
        CONFIG.replace("sigma = 3.0", 'kind = "ConfidentGNMax"\nsigma = 3.0\nthreshold = 15\nsigma_threshold = 4.0')
    )
    run("pate", "pate.toml", "--seed", "1", "--no-book", "--json", "--quiet")
    stated = json.loads(capsys.readouterr().out)
    assert stated["answered"] > 10
    assert "ConfidentGNMax" in stated["solver"]
    run("predict", "student.json", "public.csv")
    assert set(capsys.readouterr().out.split()[1:]) == {"low", "high"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[teachers]", "[pupils]", "has a section 'pupils'"),
        ("number", "count", "teachers.count is not known"),
        ("sigma = 3.0", "sigma = -1", "sigma is -1"),
        ("sigma = 3.0", "scale = 3.0", "of kind GNMax takes sigma"),
        ("sigma = 3.0", 'kind = "Max"', "aggregation.kind is 'Max'"),
        ("number = 30", 'model = "oracle"', "teacher is 'oracle'"),
        ('target = "income"', 'target = "age"', "has no categories"),
        ('target = "income"', "", "data.target is missing"),
        ('"public.csv"', '"nothing.csv"', "nothing.csv"),
    ],
    ids=["section", "key", "sigma", "facts", "kind", "teacher", "target", "no target", "no public rows"],
)
def test_public_mistakes_are_one_sentence_and_cost_nothing(capsys, old, new, said):
    Path("pate.toml").write_text(CONFIG.replace(old, new))
    with Ledger("sqlite:///books.db") as ledger:
        book = ledger.open("people", epsilon=60.0, delta=1e-6)
        run("pate", "pate.toml", "--ledger", "books.db", "--quiet", code=2)
        assert len(book.entries()) == 1
    assert said in capsys.readouterr().err
    assert not Path("student.json").exists()
