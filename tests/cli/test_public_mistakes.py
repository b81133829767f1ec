"""Whatever public facts can tell is found before the charge: each command, each kind of mistake, and the book stays
empty."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import discreet as dp
from discreet import cli
from discreet.linear import LinearRegression, LogisticRegression
from discreet.training import Training, make_private
from discreet.training import fit as train_model

SCHEMA = (
    'unit = "id"\n[columns]\nid = { unlisted = true }\nage = { bounds = [0, 100] }\nsex = { categories = ["f", "m"] }\n'
)
RUN = """
[model]
layers = [4, 2]
[data]
path = "train.npz"
[training]
optimizer = "SGD"
batch_size = 20
[privacy]
noise_multiplier = 5.0
epochs = 1
"""


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder with data, schema, plan, and an open book."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_LEDGER", "budget.db")
    Path("data.csv").write_text("id,age,sex\n" + "".join(f"{i},{i % 100},{'fm'[i % 2]}\n" for i in range(200)))
    pl.read_csv("data.csv").write_parquet("data.parquet")
    Path("schema.toml").write_text(SCHEMA)
    x = np.random.default_rng(0).normal(size=(100, 4))
    np.savez("train.npz", x=x, y=(x.sum(1) > 0).astype(np.int64), text=np.array(["a"] * 100))
    Path("run.toml").write_text(RUN)
    Path("there").write_text("kept")
    Path("folder").mkdir()
    with dp.Ledger("budget.db") as ledger:
        yield ledger.open("census", epsilon=10.0, delta=1e-3, unit="id", rows_per_unit=1)


def run(arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    return stopped.value.code


FIT = ["fit", "data.csv", "--schema", "schema.toml", "--target", "sex", "--epsilon", "1"]
QUERY = ["query", "data.csv", "--schema", "schema.toml", "--epsilon", "1"]
TRAIN = ["train", "run.toml", "--quiet"]
OUTPUTS = ["missing/m", "there", "folder", "budget.db", "n" * 300, "data.csv", ""]


@pytest.mark.parametrize("out", OUTPUTS)
@pytest.mark.parametrize("command", [FIT, TRAIN], ids=["fit", "train"])
def test_an_output_that_cannot_be_written_costs_nothing(command, out, book, capsys):
    """No folder, a folder, a file that is there, the ledger, a name too long, what the command reads."""
    assert run([*command, "--out", out]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert book.spent().entries == 0
    assert Path("there").read_text() == "kept"


MISTAKES = {
    "query: syntax": [*QUERY, "--sql", "SELECT FROM"],
    "query: no such column": [*QUERY, "--sql", "SELECT AVG(wage) FROM p"],
    "query: nested": [*QUERY, "--sql", "SELECT COUNT(*) FROM p WHERE " + "NOT " * 2000 + "age = 1"],
    "query: chain": [*QUERY, "--sql", "SELECT COUNT(*) FROM p WHERE age > " + "+".join(["age"] * 2000)],
    "query: text for a number": [*QUERY, "--sql", "SELECT COUNT(*) FROM p WHERE age = 'old'"],
    "query: budget": [*QUERY, "--sql", "SELECT COUNT(*) FROM p", "--rho", "1"],
    "query: memory": [*QUERY, "--sql", "SELECT COUNT(*) FROM p", "--memory-limit", "much"],
    "query: surrogate": [*QUERY, "--sql", "SELECT COUNT(*) AS \udcff FROM p"],
    "query: no such book": [*QUERY, "--sql", "SELECT COUNT(*) FROM p", "--book", "other"],
    "fit: target": [*FIT, "--target", "wage", "--out", "m"],
    "fit: no file": ["fit", "absent.csv", *FIT[2:], "--out", "m"],
    "fit: no column": ["fit", "train.npz", *FIT[2:], "--out", "m"],
    "fit: no parquet": ["fit", "bad.parquet", *FIT[2:], "--out", "m"],
    "fit: delta": [*FIT, "--delta", "2", "--out", "m"],
    "fit: contradiction": [*FIT, "--book", "census", "--no-book", "--out", "m"],
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_public_mistake_costs_nothing(mistake, book, capsys):
    """One sentence, exit code 2, no file, no charge."""
    Path("bad.parquet").write_text("PAR1")
    assert run(mistake) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert book.spent().entries == 0
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("layers = [4, 2]", "layers = [5, 2]"),
        ("layers = [4, 2]", 'layers = ["4", 2]'),
        ("layers = [4, 2]", "layers = [4, 0, 2]"),
        ("layers = [4, 2]", 'factory = "nowhere:make"'),
        ('"SGD"', '"SDG"'),
        ('"SGD"', '"Optimizer"'),
        ('"SGD"', '"lr_scheduler"'),
        ("batch_size = 20", 'batch_size = 20\nloss = "cross_entrophy"'),
        ("batch_size = 20", 'batch_size = 20\nloss = "mse_loss"'),
        ("batch_size = 20", 'batch_size = "all"'),
        ("batch_size = 20", "batch_size = 20\nlr = -1"),
        ('path = "train.npz"', 'path = "absent.npz"'),
        ('path = "train.npz"', 'path = "run.toml"'),
        ('path = "train.npz"', 'path = "train.npz"\ntarget = "z"'),
        ('path = "train.npz"', 'path = "train.npz"\ntarget = "text"'),
        ("epochs = 1", 'epochs = "one"'),
        ("epochs = 1", 'epochs = 1\nclipping = "flatt"'),
        ("epochs = 1", "epochs = 1\nsampler = 3"),
        ("[model]", "[model"),
        ("[privacy]", "privacy = 3\n[training.x]"),
    ],
)
def test_a_plan_that_cannot_run_costs_nothing(old, new, book, capsys):
    """Shapes by a rehearsal on zeros, names by looking them up, values by their ranges."""
    Path("run.toml").write_text(RUN.replace(old, new))
    assert run([*TRAIN, "--out", "m.pt"]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "Traceback" not in printed
    assert book.spent().entries == 0
    assert not Path("m.pt").exists()


def test_a_key_that_the_terminal_cannot_write_is_written_as_an_escape(book, monkeypatch):
    """The answer was paid for: it is printed, whatever the terminal's encoding."""
    Path("schema.toml").write_text(SCHEMA.replace('"f", "m"', '"fé", "日本"'))
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert run([*QUERY, "--sql", "SELECT sex, COUNT(*) FROM p GROUP BY sex"]) == 0
    stream.flush()
    assert b"f\\xe9" in stream.buffer.getvalue()
    assert b"\\u65e5\\u672c" in stream.buffer.getvalue()
    assert book.spent().entries == 1


def test_a_target_that_is_no_class_costs_its_record_its_gradient_and_nothing_else(book, capsys):
    """A label outside the classes is private, and has a meaning: the run ends well, and the model is the same as
    without."""
    arrays = dict(np.load("train.npz"))
    arrays["y"][0], arrays["y"][1] = 7, -100
    np.savez("train.npz", **arrays)
    assert run([*TRAIN, "--out", "m.pt"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("census: this added epsilon = ")
    assert book.spent().entries == 1


def test_an_error_in_training_tells_nothing_of_the_records(book, capsys):
    """A model that fails on one record's input: after the charge one fixed sentence, without number, shape or
    traceback."""
    Path("picky.py").write_text(
        "import torch\nclass Picky(torch.nn.Linear):\n    def forward(self, x):\n"
        "        if (x > 1e6).any():\n            raise ValueError(f'found {x.max()}')\n"
        "        return super().forward(x)\ndef make():\n    return Picky(4, 2)\n"
    )
    Path("run.toml").write_text(RUN.replace("layers = [4, 2]", 'factory = "picky:make"'))
    arrays = dict(np.load("train.npz"))
    arrays["x"][:] = 7e7
    np.savez("train.npz", **arrays)
    assert run([*TRAIN, "--out", "m.pt"]) == 2
    printed = capsys.readouterr().err
    assert "The message is withheld" in printed
    assert "7" not in printed
    assert book.spent().entries == 1
    assert [file.name for file in Path().iterdir() if ".part" in file.name] == []


# --- the same in Python -----------------------------------------------------------------------------------------------


def test_python_calls_find_public_mistakes_before_the_charge(book):
    """Tables, estimators, training."""
    people = dp.table("data.csv", schema=dp.Schema(age=dp.Bounded(0, 100)))
    with pytest.raises(ValueError, match="exactly one"):
        people.mean("age").release(book=book)
    x, y = np.zeros((10, 2)), np.zeros(10)
    for wrong in ({"classes": (0,)}, {"solver": "magic"}, {"solver_options": {"stepz": 3}}, {"feature_norm": -1}):
        with pytest.raises((ValueError, TypeError)):
            LogisticRegression(**{"solver": "output", "delta": 0.0} | wrong, classes=(0, 1)).fit(x, y, book=book)
    with pytest.raises(ValueError, match="inconsistent"):
        LogisticRegression(classes=(0, 1)).fit(x, y[:5], book=book)
    with pytest.raises(ValueError, match="must hold real numbers"):
        LinearRegression(target_bounds=(-1, 1)).fit(x, np.array(["a"] * 10), book=book)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.zeros(10, 2), torch.zeros(10, 1)), batch_size=5
    )
    plain = torch.nn.Linear(2, 1)
    with pytest.warns(DeprecationWarning, match="deprecated"):
        traced = torch.jit.trace(plain, torch.zeros(1, 2))
    for model, wrong in (
        (traced, {}),
        (plain, {"clip_schedule": lambda step: -1}),
        (plain, {"clip_schedule": 3}),
        (plain, {"loss_reduction": "avg"}),
        (plain, {"sampler": "Poisson"}),
        (plain, {"label": 3}),
    ):
        with pytest.raises((ValueError, TypeError)):
            make_private(
                model,
                torch.optim.SGD(model.parameters(), lr=0.1),
                loader,
                **({"noise_multiplier": 5.0, "epochs": 1, "loss_reduction": "mean", "book": book} | wrong),
            )
    with pytest.raises(ValueError, match="two made-up records"):
        train_model(torch.nn.Linear(3, 2), (x, y.astype(int)), noise_multiplier=5.0, epochs=1, book=book)
    assert book.spent().entries == 0


def test_the_trial_on_zeros_leaves_the_model_as_it_was(book):
    """Weights, buffers, gradients and torch's random numbers are those of before."""

    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return x

    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(), Counts(), torch.nn.Linear(4, 2))
    before, seed = {name: value.clone() for name, value in model.state_dict().items()}, torch.random.get_rng_state()
    records = torch.utils.data.TensorDataset(torch.ones(5, 2), torch.ones(5).long())
    Training(lambda: model, dataset_size=5, batch_size=5, noise_multiplier=1.0, epochs=1).prepare(records)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(seed, torch.random.get_rng_state())


def test_a_good_run_of_each_command_is_charged_once(book, capsys):
    """The power of this file: without a mistake, the same commands charge, and say which head they left."""
    assert run([*QUERY, "--sql", "SELECT COUNT(*) FROM p"]) == 0
    assert run([*FIT, "--out", "m.json"]) == 0
    assert run([*TRAIN, "--out", "m.pt"]) == 0
    assert book.spent().entries == 3
    heads = [f"{entry.seq}:{entry.hash}" for entry in book.entries()]
    assert json.loads(Path("m.json").read_text())["statement"]["charged"] == {"book": "census", "head": heads[2]}
    assert json.loads(Path("m.pt.json").read_text())["charged"] == {"book": "census", "head": heads[3]}
    capsys.readouterr()
    assert run(["ledger", "verify", "--head", heads[2]]) == 0
