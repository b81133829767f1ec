"""The studies of selection, memorisation, warfarin and digits at a small size: what they show holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="language models and scattering need torch")

import torch

import discreet as dp
from discreet.datasets.files import data_folder
from experiments import _results, memorisation, selection, warfarin
from experiments import mnist as digits

needs = {
    name: pytest.mark.skipif(not (data_folder() / name).is_dir(), reason=f"{name} does not ship with discreet")
    for name in ("iwpc-warfarin", "tinyshakespeare")
}


def test_a_table_takes_the_place_of_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr(_results, "DOCS", tmp_path)
    monkeypatch.setitem(_results._asked, "write", True)
    (tmp_path / "experiments").mkdir()
    page = tmp_path / "experiments" / "study.md"
    page.write_text("Before.\n\n<!-- table -->\nold\n<!-- end -->\n\nAfter.\n")
    for entry in ("1", "2"):
        _results.write_table("study", ("a", "b"), [("x", entry)])
    assert (
        page.read_text()
        == "Before.\n\n<!-- table -->\n\n| a | b |\n| --- | ---: |\n| x | 2 |\n\n<!-- end -->\n\nAfter.\n"
    )
    _results.save("study", {"x": 2})
    assert _results.load("study") == {"x": 2}


# --- warfarin ---------------------------------------------------------------------------------------------------------


def test_the_clinic_harms_those_whose_dose_is_wrong():
    right = np.full(400, 30.0)
    well, low, high = (warfarin.clinic(right * factor, right, 0) for factor in (1.0, 0.6, 1.8))
    assert well.in_range > max(low.in_range, high.in_range)
    assert low.strokes > 1.1 * well.strokes
    assert high.bleedings > 2 * well.bleedings


@needs["iwpc-warfarin"]
def test_a_private_dose_is_better_than_a_fixed_one_and_tells_members_and_others_alike():
    people = warfarin.patients()
    assert np.linalg.norm(people.features(), axis=1).max() <= warfarin.NORM
    fixed, private, plain = (warfarin.study(people, epsilon, 0) for epsilon in ("fixed", 1.0, None))
    assert plain.error < private.error < fixed.error
    assert plain.deaths < fixed.deaths
    assert fixed.members["VKORC1"] == pytest.approx(1 / 3, abs=0.01)
    assert private.members["VKORC1"] > 0.45
    assert private.members["VKORC1"] == pytest.approx(private.others["VKORC1"], abs=0.05)


# --- selection --------------------------------------------------------------------------------------------------------


def question() -> selection.Question:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(3000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    y = (X[:, 0] + 0.1 * chance.normal(size=3000) > 0).astype(int)
    return selection.Question("made up", 1e-5, (0, 1), X[:2000], y[:2000], X[2000:], y[2000:])


def test_every_way_of_searching_states_its_true_cost(monkeypatch, tmp_path):
    """Twelve runs are not one: the naive search's models alone cost nearly four times what it claims."""
    made = question()
    monkeypatch.setattr(_results, "BUILD", tmp_path)
    assert dp.epsilon(selection.grid_event(made, 1.0, scored=False), 1e-5) > 3
    monkeypatch.setattr(selection, "SPACE", selection.SPACE[1:4])
    rows = {row["way"]: row for row in selection.study(made, 1)}
    assert rows["naive search"]["true"] is None
    for way in ("search that pays", "private selection, same total"):
        assert 0.98 < rows[way]["true"] <= 1.0
    assert rows["search that pays"]["run"] < 0.7 < 1.0 < rows["private selection, same runs"]["true"] < 2
    assert all(row["accuracy"] > 0.6 for row in rows.values())


# --- memorisation -----------------------------------------------------------------------------------------------------


def test_a_canary_is_a_line_of_the_text():
    secrets = memorisation.canaries(5)
    records = memorisation.lines("to be or not to be, that is the question; " * 300, secrets)
    told = ["".join(list(memorisation.ALPHABET)[code] for code in line) for line in records.tolist()]
    for canary in secrets:
        assert sum(line.startswith(f"{canary.words}{canary.secret}\n") for line in told) == 1


def test_exposure_and_extraction_find_what_a_model_was_taught():
    """A model that has read nothing but two secrets tells them; one that has read nothing does not."""
    torch.manual_seed(0)
    secrets = memorisation.canaries(3)[:2]
    text = memorisation.lines("x" * 51 * 2, secrets)[:, :25]
    model = memorisation.Reader(48)
    assert not any(memorisation.remembered(model, canary, 3)[1] for canary in secrets)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    for _ in range(120):
        optimizer.zero_grad()
        memorisation.loss_of(model, text).backward()
        optimizer.step()
    assert [memorisation.remembered(model, canary, 3) for canary in secrets] == [(math.log2(1000), True)] * 2


@needs["tinyshakespeare"]
def test_a_private_model_of_a_few_lines_shows_no_canary():
    row = memorisation.Row("RMSprop", 4e-3, epsilon=5.26, epochs=2)
    found = memorisation.run(row, memorisation.Size(records=100, width=16, digits=3))
    assert found.epsilon <= 5.26
    assert found.extracted == 0
    assert np.mean(found.exposures) < 5  # bits; by chance 1.44, and above 5 once in 10⁵ times


# --- digits -----------------------------------------------------------------------------------------------------------


def test_full_batches_cost_what_they_claim_and_learn():
    torch.manual_seed(0)
    y = torch.arange(2000) % 10
    X = torch.nn.functional.normalize(torch.eye(10)[y] + 0.2 * torch.randn(2000, 10), dim=1)
    settings = digits.Settings(steps=10, lr=20.0, features=10)
    share, spent = digits.run(2.93, 0, settings, (X, y, X, y))
    assert spent <= 2.93
    assert share > 0.9
