"""Training without a loop: the function, its progress line, and the command."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import discreet as dp
from discreet.cli import main
from discreet.training import Progress, fit
from discreet.training.errors import PrivateTrainingError
from tests.training.loops import data, network, private, step


def test_fit_releases_a_model_with_its_price():
    released = fit(network(), data(200), epsilon=2.0, delta=1e-5, epochs=3, batch_size=20, lr=0.5, rng=1)
    assert isinstance(released, dp.Release)
    assert released.reproducible
    assert dp.epsilon(released.event, delta=1e-5) == pytest.approx(2.0, rel=1e-5)


def test_fit_learns():
    """At a generous budget a linear rule is found; the same data with labels at random is not."""
    records = data(600)
    x, y = records.tensors
    torch.manual_seed(0)
    model = fit(nn.Linear(4, 2), (x, y), noise_multiplier=0.8, epochs=10, batch_size=60, lr=1.0, rng=1).value
    assert float((model(x).argmax(1) == y).float().mean()) > 0.9


def test_arrays_are_as_good_as_tensors():
    """Floats in double precision, too: they become what the model is made of."""
    x, y = data(100).tensors
    weights = []
    for given in ((x, y), (x.double().numpy(), y.numpy())):
        torch.manual_seed(0)
        weights.append(fit(nn.Linear(4, 2), given, noise_multiplier=1.0, epochs=1, batch_size=20, rng=1).value.weight)
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    "column",
    [[1.0, 2.0], (1, 0), pd.Series([1, None]), pd.DataFrame({"a": [1.0]}), np.array([1, None]), np.array(["a"])],
    ids=["list", "tuple", "series", "frame", "objects", "text"],
)
def test_what_states_no_type_for_its_records_is_refused_whatever_it_holds(column):
    """One entry among them would decide the type of all: a missing one makes doubles of classes. Nothing is charged."""
    book = dp.Ledger("sqlite://").open("a", epsilon=9.0, delta=1e-5)
    x, y = data(2).tensors
    for given in ((column, y), (x, column)):
        with pytest.raises(ValueError, match=r"write torch\.tensor\(column, dtype=torch\.float32\)"):
            fit(nn.Linear(4, 2), given, epsilon=1.0, delta=1e-6, epochs=1, batch_size=1, book=book)
    assert [entry.kind for entry in book.entries()] == ["open"]


def test_fit_stops_where_the_budget_ends():
    released = fit(network(), data(), epsilon=1.0, delta=1e-5, noise_multiplier=2.0, batch_size=10, rng=1)
    assert dp.epsilon(released.event, delta=1e-5) <= 1.0


def test_progress_shows_steps_and_epsilon_and_nothing_private():
    model, optimizer, loader = private(epochs=1)
    stream = io.StringIO()
    line = Progress(optimizer.privacy, 1e-5, stream)
    for batch in loader:
        step(model, optimizer, batch)
    line.update()
    assert "step 6/6, ε 2." in stream.getvalue() or "step 6/6, ε" in stream.getvalue()
    assert "loss" not in stream.getvalue()


def test_what_is_not_private_is_shown_to_who_asks_for_it_and_marked(capsys):
    fit(network(), data(), noise_multiplier=1.0, epochs=1, batch_size=20, progress="local", rng=1)
    assert "local, not private: loss" in capsys.readouterr().err
    _, optimizer, _ = private(epochs=1)
    with pytest.raises(PrivateTrainingError, match=r"privacy\.local = True"):
        _ = optimizer.privacy.clip_rate


TOML = """
[model]
layers = [4, 8, 2]
[data]
path = "train.npz"
[training]
optimizer = "Adam"
lr = 0.05
batch_size = 20
[privacy]
epsilon = 2.0
delta = 1e-5
epochs = 2
"""


def discreet(*words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code


def test_the_command_trains_what_a_file_says(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(100, 4))
    np.savez(tmp_path / "train.npz", x=x, y=(x.sum(1) > 0).astype(np.int64))
    (tmp_path / "run.toml").write_text(TOML)
    assert discreet("train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "m.pt"), "--seed", "1", "--quiet") == 0
    assert "PoissonSampled" in capsys.readouterr().out
    assert set(torch.load(tmp_path / "m.pt", weights_only=True)) == {"0.weight", "0.bias", "2.weight", "2.bias"}


@pytest.mark.parametrize(
    ("said", "event"),
    [('"LambdaCGD"', "KeptBins"), ('{ name = "Banded", bands = 2 }', "PoissonSampled"), ('"Independent"', "Poisson")],
)
def test_a_file_names_its_noise(said, event, tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(100, 4))
    np.savez(tmp_path / "train.npz", x=x, y=(x.sum(1) > 0).astype(np.int64))
    (tmp_path / "run.toml").write_text(f"{TOML}noise = {said}\n")
    assert discreet("train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "m.pt"), "--seed", "1", "--quiet") == 0
    assert event in capsys.readouterr().out


@pytest.mark.parametrize(
    "said", ['"Loud"', "3", "{ bands = 2 }", '{ name = "Banded", bads = 2 }', '{ name = ["Tree"] }']
)
def test_a_noise_that_is_not_known_is_refused_in_one_sentence(said, tmp_path, capsys):
    np.savez(tmp_path / "train.npz", x=np.zeros((40, 4)), y=np.zeros(40, np.int64))
    (tmp_path / "run.toml").write_text(f"{TOML}noise = {said}\n")
    assert discreet("train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "m.pt"), "--quiet") == 2
    assert "noise" in capsys.readouterr().err
    assert not (tmp_path / "m.pt").exists()


def test_the_command_charges_the_whole_plan(tmp_path):
    x = np.random.default_rng(0).normal(size=(100, 4))
    np.savez(tmp_path / "train.npz", x=x, y=(x.sum(1) > 0).astype(np.int64))
    (tmp_path / "run.toml").write_text(TOML)
    asked = ["train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "m.pt"), "--quiet"]
    asked += ["--ledger", str(tmp_path / "b.db")]
    with dp.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
        book = ledger.open("patients", epsilon=3.0, delta=1e-4)
        assert discreet(*asked) == 0
        assert 0 < book.spent().epsilon <= 3.0
        (tmp_path / "m.pt").unlink()
        assert discreet(*asked) != 0, "a second plan does not fit"
    assert not (tmp_path / "m.pt").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[privcy]", "privcy"),
        ("[privacy]\nsigma = 1", "sigma"),
        ("[model]\nlayers = [4]", "two sizes"),
        ("[model]\nfactory = 'x'", "module:function"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(line, reason, tmp_path, capsys):
    (tmp_path / "run.toml").write_text(line + "\n")
    assert discreet("train", str(tmp_path / "run.toml")) == 2
    assert reason in capsys.readouterr().err
