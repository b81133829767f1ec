"""``train`` on a table: the schema of ``fit``, a line that says what was spent, weights that ``predict`` takes."""

import gzip
import hashlib
import json

import pytest

import discreet as dp
from discreet.cli import main
from discreet.cli.toml import read_sections
from discreet.cli.train import _SECTIONS, _network, _operation

torch = pytest.importorskip("torch")

SCHEMA = """
[columns]
age = { bounds = [0, 100] }
sex = { categories = ["f", "m"] }
income = { categories = ["low", "high"] }
pay = { bounds = [0, 10] }
"""
RUN = """
[data]
path = "people.csv.gz"
schema = "people.toml"
target = "income"
[model]
hidden = [6]
[training]
optimizer = "Adam"
lr = 0.05
batch_size = 100
[privacy]
epsilon = 4.0
delta = 1e-5
epochs = 12
"""


def test_an_audited_training_prints_and_keeps_its_verdict(capsys, folder):
    with pytest.raises(SystemExit, match="0"):
        main(["train", "run.toml", "--out", "net.pt", "--no-book", "--quiet", "--audit", "200", "--seed", "3"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("audit: Consistent: 200 canaries in ")
    assert json.loads((folder / "net.pt.json").read_text())["audit"] == last.removeprefix("audit: ")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA)
    (tmp_path / "run.toml").write_text(RUN)
    lines = "20,f,low,2\n80,m,high,8\n" * 200 + "?,x,none,\n\xff,f,,1e999\n"
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(("age,sex,income,pay\n" + lines).encode("latin-1")))
    (tmp_path / "new.csv.gz").write_bytes(gzip.compress(b"age,sex,pay,income\n20,f,2,low\n80,m,8,high\n,m,8,high\n"))
    return tmp_path


def discreet(*words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code


def trained(*more):
    return discreet("train", "run.toml", "--out", "net.pt", "--quiet", "--seed", "1", "--no-book", *more)


def test_a_table_is_learnt_from_and_its_network_predicts(capsys):
    assert trained() == 0
    said = capsys.readouterr().out.strip().splitlines()
    assert said[-1] == "guarantee: epsilon = 4 at delta = 1e-05 (add-remove) for one record"
    assert discreet("predict", "net.pt", "new.csv.gz") == 0
    assert capsys.readouterr().out.split() == ["income", "low", "high", "high"]
    assert discreet("predict", "net.pt", "--statement") == 0
    statement = json.loads(capsys.readouterr().out)
    assert dp.epsilon(dp.events.Event.from_dict(statement["event"]), 1e-5) <= 4.0


def test_a_number_is_predicted_within_its_bounds(folder, capsys):
    (folder / "run.toml").write_text(RUN.replace('target = "income"', 'target = "pay"'))
    assert trained() == 0
    capsys.readouterr()
    assert discreet("predict", "net.pt", "new.csv.gz") == 0
    _, low, high, _ = capsys.readouterr().out.split()
    assert 0 <= float(low) < 4
    assert 6 < float(high) <= 10


def test_fit_reads_the_same_gzipped_file_by_the_same_schema(capsys):
    asked = ["--schema", "people.toml", "--target", "income", "--epsilon", "4", "--out", "m.json", "--no-book"]
    assert discreet("fit", "people.csv.gz", *asked) == 0
    assert discreet("predict", "m.json", "new.csv.gz") == 0
    assert capsys.readouterr().out.split()[-3:-1] == ["low", "high"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('target = "income"', 'target = "absent"', "is not declared"),
        ('target = "income"', "", "data.target is missing"),
        ("[training]", "[training]\nepochs = 2", "training.epochs is not known; did you mean privacy.epochs?"),
        ("hidden = [6]", "layers = [3, 2]", "model.layers is given"),
        ("hidden = [6]", "hidden = [0]", "model.hidden is [0]"),
        ('schema = "people.toml"', "", "model.hidden is given"),
        ("[training]", '[training]\nloss = "l1_loss"', "the loss compares records with one another"),
    ],
)
def test_what_is_publicly_wrong_is_refused_before_the_charge(folder, old, new, reason, capsys):
    (folder / "run.toml").write_text(RUN.replace(old, new))
    with dp.Ledger(f"sqlite:///{folder / 'b.db'}") as ledger:
        book = ledger.open("b", epsilon=9.0, delta=1e-3)
        assert discreet("train", "run.toml", "--out", "net.pt", "--quiet", "--ledger", "b.db") == 2
        assert book.spent().epsilon == 0
    assert reason in capsys.readouterr().err
    assert not (folder / "net.pt").exists()


def test_weights_that_are_not_the_statements_are_refused(folder, capsys):
    assert trained() == 0
    torch.save({name: 2 * value for name, value in torch.load("net.pt", weights_only=True).items()}, "net.pt")
    assert discreet("predict", "net.pt", "new.csv.gz") == 2
    assert "not those that its statement was made for" in capsys.readouterr().err
    for text in ("[]", "{", '{"network": {"format": "discreet network 1"}}'):
        (folder / "net.pt.json").write_text(text)
        assert discreet("predict", "net.pt", "new.csv.gz") == 2
        assert "holds no network" in capsys.readouterr().err


def test_a_unit_of_which_one_row_counts_is_not_charged_as_a_row(folder, capsys):
    """Without its first row a unit has another: a row's change is two records'."""
    (folder / "people.toml").write_text('unit = "pay"\n' + SCHEMA)
    asked = read_sections(folder / "run.toml", _SECTIONS)
    network = _network(asked, folder)
    asked["privacy"] = {"noise_multiplier": 9.0, "epochs": 1, "unit": asked["privacy"]["unit"]}
    assert _operation(network.model, ([0] * 400, [0] * 400), asked, progress=False).unit == "pay"
    (folder / "run.toml").write_text(RUN + 'unit = "one record"\n')
    assert discreet("train", "run.toml", "--out", "net.pt", "--quiet", "--no-book") == 2
    assert "the schema says 'pay'" in capsys.readouterr().err
    (folder / "people.toml").write_text('unit = "one record"\n' + SCHEMA)
    assert discreet("train", "run.toml", "--out", "net.pt", "--quiet", "--no-book") == 2
    assert "rename it" in capsys.readouterr().err


def test_a_statement_of_layers_that_no_memory_holds_is_refused(folder, capsys):
    torch.save({}, folder / "net.pt")
    network = {"format": "discreet network 1", "target": "income", "hidden": [10**6, 10**6]}
    network["declaration"] = {"columns": {name: {"bounds": [0, 1]} for name in ("age", "income")}}
    digest = hashlib.sha256((folder / "net.pt").read_bytes()).hexdigest()
    (folder / "net.pt.json").write_text(json.dumps({"sha256": digest, "network": network}))
    assert discreet("predict", "net.pt", "new.csv.gz") == 2
    assert "do not fit its layers" in capsys.readouterr().err
