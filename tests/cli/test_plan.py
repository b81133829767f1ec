"""``discreet plan``: noises and batch sizes compared, settings suggested, the frontier drawn; nothing is spent."""

from __future__ import annotations

import json
import math

import pytest

from discreet import cli
from discreet.training import frontier, noise
from discreet.training.noise import comparison

ASKED = ("plan", "--records", "400", "--epochs", "2", "--epsilon", "2", "--delta", "1e-5")


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*ASKED, *arguments])
    return stopped.value.code


@pytest.fixture(autouse=True)
def few(monkeypatch):
    pairs = [(given, given.sampler) for given in (noise.LambdaCGD(), noise.BLT(buffers=2), noise.Tree())]
    monkeypatch.setattr(frontier, "candidates", lambda momentum, decay: pairs)
    monkeypatch.setattr(comparison, "candidates", lambda momentum, decay: pairs)
    monkeypatch.setenv("COLUMNS", "120")


def test_noises_and_batch_sizes_are_compared_and_what_needs_more_memory_is_left_out(capsys):
    assert run("--batch-size", "50", "--batch-size", "100", "--vectors", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["noises"]
    assert {(row["batch"], row["steps"]) for row in rows} == {(50, 16), (100, 8)}
    assert {row["noise, sampler"].split("(")[0] for row in rows} >= {"LambdaCGD", "BLT"}
    assert all(row["vectors"] <= 2 for row in rows)
    ratios = [row["signal to noise"] for row in rows]
    assert ratios == sorted(ratios, reverse=True)
    assert found["suggested"]["signal to noise"] >= 0.9 * ratios[0]
    assert {row["epsilon"] for row in found["frontier"]} == {0.5, 2.0, 8.0}


def test_settings_are_suggested_and_the_frontier_is_drawn_as_text_and_as_a_figure(capsys, tmp_path):
    path = tmp_path / "frontier.png"
    assert run("--parameters", "1000", "--out", str(path), "--batch-size", "100", "--batch-size", "400") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Suggested: batches of")
    assert "LambdaCGD(), KeptBins" in printed
    assert "Suggested: batches of" in printed
    assert "epsilon 0.5" in printed
    assert "Error of a private mean of 1000 numbers" in printed
    assert path.read_bytes().startswith(b"\x89PNG")
    assert run("--parameters", "1000", "--out", str(path)) != 0, "a file that is there is not overwritten"
    assert "--force" in capsys.readouterr().err


def test_the_best_rows_are_shown_and_the_others_counted(capsys):
    assert run("--batch-size", "50", "--batch-size", "100", "--show", "2") == 0
    printed = capsys.readouterr().out
    assert len([line for line in printed.splitlines() if line.startswith("│")]) == 2
    assert "more: --show 0 prints all of them." in printed


def test_public_mistakes_are_told(capsys):
    assert run("--batch-size", "0") != 0
    assert "batch-size" in capsys.readouterr().err
    assert run("--parameters", "0") != 0
    assert "parameters" in capsys.readouterr().err
    assert run("--delta", "0") != 0  # and not searched for without end
    assert "delta" in capsys.readouterr().err


def test_ratios_are_those_of_a_run_that_is_simulated():
    """Gradients of one direction and clip norm beside noise drawn step by step: within 3 %."""
    import torch

    found = frontier.frontier(400, 20_000, epsilons=[2.0], delta=1e-5, epochs=2, sizes=[50], noises=[noise.LambdaCGD()])
    (point,) = found
    given, steps = point.expected.noise, point.steps
    stream = given.begun(point.expected.sampler.participation, steps)
    noisy, squares = torch.zeros(20_000), []
    for t in range(steps):
        total = [torch.zeros(20_000)]
        facts = noise.Step(number=t, multiplier=point.expected.noise_multiplier, sensitivity=1, movement=1, divisor=50)
        from discreet.random import seeded

        stream.release(facts, total, noise.Gaussians(seeded(t)))
        noisy += total[0]
        squares.append((float(noisy.norm()) ** 2, (t + 1.0) ** 2))
    noise_power, signal_power = map(sum, zip(*squares, strict=True))
    assert point.signal_to_noise == pytest.approx(math.sqrt(signal_power / noise_power), rel=0.03)


def test_the_bound_on_a_convex_model_holds_on_one_and_is_known_for_independent_noise_alone():
    """Mean absolute deviation in one dimension, the minimum at distance 1, at the step size of the theorem."""
    import torch

    found = frontier.frontier(100, 1, epsilons=[1.0], delta=1e-5, epochs=50, sizes=[100], noises=[noise.Independent()])
    (point,) = found
    bound = frontier.most_excess_loss(point, 1)
    sigma, steps = point.expected.noise_multiplier / 100, point.steps
    torch.manual_seed(0)
    place, total = torch.full((2000,), -1.0), torch.zeros(2000)
    for _ in range(steps):
        total += place / steps
        place = place - (torch.sign(place) + sigma * torch.randn(2000)) / (math.sqrt((1 + sigma**2) * steps))
    assert 0.05 * bound < float(total.abs().mean()) <= bound
    other = frontier.frontier(100, 1, epsilons=[1.0], delta=1e-5, epochs=2, sizes=[10], noises=[noise.LambdaCGD()])
    assert frontier.most_excess_loss(other.points[0], 1) is None
    assert frontier.mean_error(100, 4, epsilon=1.0, delta=1e-5) == pytest.approx(
        2 * frontier.mean_error(100, 1, epsilon=1.0, delta=1e-5)
    )
