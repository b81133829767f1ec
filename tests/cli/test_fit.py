"""``discreet fit`` and ``discreet predict``: a file in, a model with its statement out, a book charged first."""

from __future__ import annotations

import contextlib
import csv
import json
from pathlib import Path

import joblib
import numpy as np
import pytest

from discreet import cli
from discreet.ledger import Ledger
from discreet.linear.saved import dumps, loads
from discreet.linear.tabular import TableModel
from discreet.schema import read_schema

SCHEMA = """
unit = "id"
[columns]
id = { unlisted = true }
age = { bounds = [0, 100] }
sex = { categories = ["f", "m"], other = "?" }
income = { categories = ["low", "high"] }
wage = { bounds = [0, 50] }
"""


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 4000)
    lines = [f"{i},{a},{'fm'[i % 2]},{'high' if a > 50 else 'low'},{a / 4 + 5}" for i, a in enumerate(age)]
    Path("data.csv").write_text("id,age,sex,income,wage\n" + "\n".join(lines) + "\n9999,not a number,x\n0,1,f,high,1\n")
    Path("schema.toml").write_text(SCHEMA)


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


FIT = ("fit", "data.csv", "--schema", "schema.toml", "--epsilon", "2", "--out", "model.json", "--seed", "1")


def test_a_prediction_has_probabilities_on_request(capsys):
    """Of each label, summing to one, and the label that is predicted has the largest."""
    run(*FIT, "--target", "income")
    run("predict", "model.json", "data.csv", "--probabilities", "--out", "out.csv")
    with open("out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["income", "income=low", "income=high"]
    for row in rows[:200]:
        low, high = float(row["income=low"]), float(row["income=high"])
        assert low + high == pytest.approx(1)
        assert row["income"] == ("high" if high > low else "low")
    capsys.readouterr()
    run("predict", "model.json", "data.csv", "-p", "--json")
    assert set(json.loads(capsys.readouterr().out)["probabilities"]) == {"income=low", "income=high"}
    run(*FIT[:-4], "--out", "wage.json", "--seed", "1", "--target", "wage")
    run("predict", "wage.json", "data.csv", "--probabilities", code=2)
    assert "only labels have probabilities" in capsys.readouterr().err


def test_a_class_is_learned_and_predicted(capsys):
    """Accuracy on the rows themselves; the statement travels with the model."""
    run(*FIT, "--target", "income")
    printed = capsys.readouterr().out
    assert "wrote model.json: income from age, sex, wage" in printed
    assert (
        "epsilon = 2 at delta = 1e-06 (add-remove) for all rows with the same 'id', of which the first counts"
        in printed
    )
    run("predict", "model.json", "data.csv", "--out", "out.csv")
    told = capsys.readouterr()
    assert "4,001 predictions of income" in told.out
    assert "1 line has no prediction, because of too few fields or bytes that are no text: 4002" in told.err
    found = Path("out.csv").read_text().split()
    truth = [line.split(",")[3] for line in Path("data.csv").read_text().splitlines()[1:4001]]
    assert found[0] == "income"
    assert np.mean(np.array(found[1:4001]) == truth) > 0.9
    run("predict", "model.json", "--statement")
    statement = json.loads(capsys.readouterr().out)
    assert statement["epsilon"] == 2
    assert statement["reproducible"] is True
    assert statement["event"]["type"]


def test_a_prediction_says_how_many_rows_it_could_not_read(capsys):
    """Of the file it was given, by column; a category that is declared as another one is read."""
    run(*FIT, "--target", "income")
    Path("new.csv").write_text("age,sex,wage\n31,f,5\nZanzibar,f,5\n,q,\n")
    capsys.readouterr()
    for out in ((), ("--out", "out.csv"), ("--json",)):
        run("predict", "model.json", "new.csv", *out)
        told = capsys.readouterr()
        assert "2 of 3 rows have entries that are empty or cannot be read" in told.err
        assert "(age in 2, wage in 1)" in told.err
        assert "Zanzibar" not in told.err + told.out
    Path("new.csv").write_text("age,sex,wage\n31,f,5\n")
    run("predict", "model.json", "new.csv")
    assert "cannot be read" not in capsys.readouterr().err


def test_a_number_is_learned_and_predicted(capsys):
    """Values stay inside the declared bounds."""
    run(*FIT, "--target", "wage", "--json")
    assert json.loads(capsys.readouterr().out)["solver"] == "gd"
    run("predict", "model.json", "data.csv")
    values = [float(line) for line in capsys.readouterr().out.split()[1:]]
    assert all(0 <= value <= 50 for value in values)
    truth = [float(line.split(",")[4]) for line in Path("data.csv").read_text().splitlines()[1:4001]]
    assert np.corrcoef(values[:4000], truth)[0, 1] > 0.9


def test_the_ledger_is_charged_first_and_may_refuse(capsys):
    """The one book is found; a model it cannot pay for is not made."""
    ledger = pytest.importorskip("discreet.ledger")
    with ledger.Ledger("sqlite:///budget.db") as books:
        books.open("census", epsilon=2.5, delta=1e-5, unit="id")
    run(*FIT, "--target", "income", "--ledger", "budget.db")
    Path("model.json").unlink()
    run(*FIT, "--target", "income", "--ledger", "budget.db", "--book", "census", code=2)
    assert "above the limit" in capsys.readouterr().err
    assert not Path("model.json").exists()
    with ledger.Ledger("sqlite:///budget.db") as books:
        books.open("other", epsilon=3.0, delta=1e-5)
    run(*FIT, "--target", "income", "--ledger", "budget.db", code=2)
    assert "say which one to charge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "id"), "which is unlisted"),
        (("--target", "nothing"), "is not declared"),
        (("--target", "income", "--epsilon", "0"), "epsilon is 0"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, capsys):
    run(*FIT, *arguments, code=2)
    assert message in capsys.readouterr().err


def test_files_that_do_not_serve_are_named(capsys):
    """Absent, or something else, or without a declared column."""
    run("fit", "absent.csv", *FIT[2:], "--target", "income", code=2)
    assert "There is no file 'absent.csv'" in capsys.readouterr().err
    Path("data.csv").write_text("id,age\n1,2\n")
    run(*FIT, "--target", "income", code=2)
    assert "There is no column 'sex' in the first line of 'data.csv'" in capsys.readouterr().err
    run("predict", "absent.json", "data.csv", code=2)
    assert "'absent.json' is not there" in capsys.readouterr().err
    for text in ("", "{}", "[" * 100_000, '{"format": "discreet table model 1"}', "\udc80"):
        Path("other.json").write_text(text, errors="surrogateescape")
        run("predict", "other.json", "data.csv", code=2)
        assert "holds no model" in capsys.readouterr().err


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


def test_a_model_file_runs_nothing_unless_it_is_trusted(capsys):
    """A pickle is refused by its first byte; --trust-pickle is the word for reading one,
    and for running what it holds.
    """
    joblib.dump(Evil(), "evil.joblib")
    run("predict", "evil.joblib", "--statement", code=2)
    run("predict", "evil.joblib", "data.csv", code=2)
    assert "--trust-pickle" in capsys.readouterr().err
    assert not Path("ran").exists()
    run("predict", "evil.joblib", "--statement", "--trust-pickle", code=2)
    assert Path("ran").exists(), "the test would notice"
    joblib.dump({}, "other.joblib")
    run("predict", "other.joblib", "data.csv", "--trust-pickle", code=2)
    assert "holds no model" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["income", "sex", "wage"])
def test_a_model_read_again_is_the_same_model(target):
    """Two classes, three, a number: the same predictions and the same statement, to the last bit."""
    model = TableModel(read_schema("schema.toml"), target=target, epsilon=2.0, random_state=1).fit("data.csv")
    again = loads(dumps(model))
    assert again.predict("data.csv").tolist() == model.predict("data.csv").tolist()
    assert again.statement == model.statement
    assert dumps(again) == dumps(model)


def test_a_changed_model_file_is_a_model_or_a_clean_error():
    """Every value of the file replaced by each of many others: nothing but answers and one kind of error."""
    model = TableModel(read_schema("schema.toml"), target="income", epsilon=2.0, random_state=1).fit("data.csv")
    whole = json.loads(dumps(model))
    places = [
        (part, key)
        for part in (whole, whole["learned"], whole["declaration"], *whole["declaration"]["columns"].values())
        for key in list(part)
    ]
    accepted = 0
    for part, key in places:
        kept = part[key]
        for odd in (None, True, -1, 1e400, "x", [], {}, [[]], [1, "a"], {"columns": {}}, 10**400):
            part[key] = odd
            with contextlib.suppress(ValueError):
                loads(json.dumps(whole)).predict({"age": [1.0], "sex": ["f"], "wage": [2]})
                accepted += 1
        part[key] = kept
    assert accepted < len(places) * 3
    loads(json.dumps(whole))


def test_one_bad_byte_is_no_error():
    """Only a record can hold it: its line is left out, as in a query."""
    run(*FIT, "--target", "income")
    before = Path("model.json").read_text()
    Path("data.csv").write_bytes(Path("data.csv").read_bytes() + b"77,\xff,\xff\x00,high,1\n")
    run(*FIT, "--target", "income", "--force")
    assert Path("model.json").read_text() == before


def test_the_statement_names_the_head_of_the_ledger(capsys):
    """Which the ledger can be verified against; without a ledger there is none."""
    with Ledger("budget.db") as books:
        book = books.open("census", epsilon=2.5, delta=1e-5, unit="id")
        run(*FIT, "--target", "income", "--ledger", "budget.db")
        head = books.head()
        book.sub("later", epsilon=0.1)
    capsys.readouterr()
    run("predict", "model.json", "--statement")
    assert json.loads(capsys.readouterr().out)["charged"] == {"book": "census", "head": head}
    run("ledger", "verify", "--head", head, "--ledger", "budget.db")
    run(*FIT, "--target", "income", "--force")
    capsys.readouterr()
    run("predict", "model.json", "--statement")
    assert json.loads(capsys.readouterr().out)["charged"] is None


def test_parquet_is_read_too(capsys):
    """If pyarrow is there."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    age = list(range(100)) * 20
    table = {
        "id": list(range(2000)),
        "age": age,
        "sex": ["f"] * 2000,
        "income": ["high" if a > 50 else "low" for a in age],
        "wage": [None] * 2000,
    }
    parquet.write_table(arrow.table(table), "data.parquet")
    Path("schema.toml").write_text(
        SCHEMA.replace("wage = { bounds = [0, 50] }", "wage = { bounds = [0, 50], missing = 25 }")
    )
    run("fit", "data.parquet", *FIT[2:], "--target", "income")
    assert "wrote model.json" in capsys.readouterr().out


@pytest.mark.parametrize("odd", [b"5,\xff\xfe,f,high,1\n6,3,\xe9,high,1\n7,\r,f,low,2\n\x00\n", b'5,3,"f,high,1\n'])
def test_what_one_line_holds_makes_no_model_fail(capsys, odd):
    """Bytes that are no text are missing values; an error would say that such a record is there."""
    Path("data.csv").write_bytes(Path("data.csv").read_bytes() + odd)
    run(*FIT, "--target", "income")
    assert "wrote model.json" in capsys.readouterr().out


def test_a_terminal_is_shown_the_first_predictions_and_a_pipe_gets_all(monkeypatch, capsys):
    """And JSON, whatever reads it, has every one."""
    run(*FIT, "--target", "income", "--no-book")
    Path("many.csv").write_text("age,sex,wage\n" + "25,f,9\n" * 1200)
    capsys.readouterr()
    run("predict", "model.json", "many.csv")
    assert capsys.readouterr().out.count("\n") == 1201
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    run("predict", "model.json", "many.csv")
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 11
    assert shown.err == "... and 1,190 more: --out FILE writes all of them.\n"
    run("predict", "model.json", "many.csv", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["target"], len(told["predictions"])) == ("income", 1200)
    run("predict", "model.json", "many.csv", "--out", "all.csv", "--json")
    assert json.loads(capsys.readouterr().out) == {"out": "all.csv", "target": "income", "rows": 1200}


def test_a_row_of_another_encoding_has_no_prediction_and_it_is_said(capsys):
    """Predictions stand in the order of the rows: one that is missing shifts all that follow."""
    run(*FIT, "--target", "income")
    Path("new.csv").write_bytes("age,sex,wage\n30,f,9\n40,ü,9\n50,m,9\n".encode("latin-1"))
    capsys.readouterr()
    run("predict", "model.json", "new.csv")
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 1 + 2
    assert "1 line has no prediction, because of too few fields or bytes that are no text: 3" in told.err


def test_what_a_model_does_not_look_at_is_said_and_how_to_learn_its_score(capsys):
    """One schema serves queries too: its days, times and names are declared there, and are no features here."""
    declared = Path("schema.toml").read_text()
    more = 'day = { dates = ["2024-01-01", "2024-12-31"] }\nname = { unlisted = true }\n'
    Path("schema.toml").write_text(declared + more)
    lines = Path("data.csv").read_text().splitlines()
    Path("data.csv").write_text("\n".join([f"{lines[0]},day,name", *(f"{line},2024-05-01,x" for line in lines[1:])]))
    run(*FIT, "--target", "income")
    printed = capsys.readouterr().out
    assert "left out: day, name, because dates, times and unlisted values are no features" in printed
    assert "the quality of the model was not measured: --score 0.2" in printed


def test_what_becomes_of_rows_without_a_number_is_said(capsys):
    """They are not learnt from, and predicted as in the middle of the bounds; ``missing`` is another number."""
    run(*FIT, "--target", "income")
    assert "a row with no number for age or wage is not used to fit" in capsys.readouterr().out
    Path("some.csv").write_text("age,sex,wage\n,f,\n50,f,25\n")
    run("predict", "model.json", "some.csv", "-p")
    told = capsys.readouterr()
    assert told.out.splitlines()[1] == told.out.splitlines()[2]
    assert "the middle of the bounds" in told.err
    declared = Path("schema.toml").read_text().replace("100] }", "100], missing = 30 }")
    Path("schema.toml").write_text(declared.replace("50] }", "50], missing = 9 }"))
    run(*FIT, "--force", "--target", "income")
    assert "without a number" not in capsys.readouterr().out


def test_a_score_is_said_and_kept_in_the_statement(capsys):
    run(*FIT, "--target", "income", "--score", "0.25")
    assert "score: right on 9" in (printed := capsys.readouterr().out)
    assert "the most frequent label alone on about" in printed
    run(*FIT[:-4], "--out", "wage.json", "--seed", "1", "--target", "wage", "--score", "0.25")
    assert "score: off by " in capsys.readouterr().out
    run("predict", "wage.json", "--statement")
    statement = json.loads(capsys.readouterr().out)
    assert statement["score"]["measure"] == "mean absolute error"
    assert statement["event"]["type"] == "Parallel"
