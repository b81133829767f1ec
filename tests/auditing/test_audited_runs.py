"""Runs that carry canaries: true claims survive, broken runs stop, and without an audit nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from discreet import auditing
from discreet.auditing.gradient_canaries import Watched
from discreet.auditing.run_audit import refutes
from discreet.auditing.shift import ratio_lower_bound
from discreet.auditing.turns import Turns
from discreet.training import fit, make_private
from discreet.training.errors import PrivateTrainingError
from discreet.training.noise import BLT, Banded, LambdaCGD, Noise, Tree
from discreet.training.run import Run
from discreet.training.sampling.users import PerUser
from experiments.audited_runs import LAWS, simulated
from tests.auditing.broken_trainings import EIGHT, train, weights_without_noise

QUIET = {"report": None, "rng": 3}


# --- statistics ------------------------------------------------------------------------------------------------------


def test_the_bound_on_the_ratio_holds_at_its_level_and_finds_less_noise() -> None:
    """600 nulls at 5 %: more than 57 alarms have a chance below 1e-5. With six tenths of the noise, most alarm."""
    rng = np.random.default_rng(0)
    signal = (rng.random((600, 400)) < 0.5) * 0.5
    noise = rng.normal(size=signal.shape)

    def alarms(scale: float) -> int:
        seen = signal + scale * noise
        sums = zip((signal * seen).sum(1), (signal**2).sum(1), (seen**2).sum(1), strict=True)
        return sum(ratio_lower_bound(*each, 400, 0.05) > 1 for each in sums)

    assert alarms(1.0) <= 57
    assert alarms(0.6) > 560


@pytest.mark.parametrize("law", ["Poisson", "bins", "shuffled", "banded, cyclic Poisson", "tree"])
def test_simulated_nulls_do_not_exceed_their_claim(law: str) -> None:
    """Of 12 at 5 %, more than 6 alarms have a chance below 1e-5; evidence at 0.1 % has none with more than 98 %."""
    found = np.array([simulated(law, seed) for seed in range(12)])
    assert found.any(1).sum() <= 6
    assert not found[:, 2].any()


@pytest.mark.slow(sibling="test_simulated_nulls_do_not_exceed_their_claim")
def test_many_simulated_nulls_keep_the_level() -> None:
    """500 at 5 %: more than 50 alarms have a chance below 1e-5."""
    found = np.array([simulated(law, seed) for law in ("Poisson", "λCGD") for seed in range(250)])
    assert found.any(1).sum() <= 50
    assert found[:, 2].sum() <= 6


@pytest.mark.parametrize("kept", [True, False])
def test_a_canary_in_two_bins_or_out_of_its_place_refutes_at_once(kept: bool) -> None:
    turns = Turns(40, 20, period=5, kept=kept)
    for step in range(5):
        turns.tell(step, np.arange(8) + 8 * step)
    assert turns.log < 3
    turns.tell(5, np.arange(8, 16))
    if not kept:
        assert turns.log < 5
        turns.tell(6, np.arange(8, 16))
    assert turns.log > 1e6


def test_bins_that_are_dealt_alike_in_every_pass_are_found() -> None:
    rng, logs = np.random.default_rng(1), []
    for same in (False, True):
        turns, bins = Turns(100, 40, period=10), rng.integers(10, size=100)
        for step in range(40):
            bins = bins if same or step % 10 else rng.integers(10, size=100)
            turns.tell(step, np.flatnonzero(bins == step % 10))
        logs.append(turns.log)
    assert logs[0] < 5 < 50 < logs[1]


def test_evidence_is_shared_by_all_suspicions() -> None:
    """One alone must pass its share: six of them, the alarm of a thousandth."""
    names = ("scale", "lags", "repeats", "blocks", "turns", "weights")
    quiet = dict.fromkeys(names, -5.0)
    assert refutes(quiet | {"turns": np.log(5900.0)}, 0.95) == ""
    assert refutes(quiet | {"turns": np.log(6100.0)}, 0.95) == "records are not drawn as claimed"


# --- runs ------------------------------------------------------------------------------------------------------------


SLOWLY = [pytest.param(law, marks=pytest.mark.slow) for law in ("kept bins", "λCGD", "BLT", "banded")]


@pytest.mark.parametrize("law", ["Poisson", "bins", "users", *SLOWLY])
def test_a_true_claim_survives_and_is_nearly_reached(law: str) -> None:
    """With seeds, so that luck has no part; with others one run in twenty may exceed its claim."""
    privacy, stopped = train(audit=auditing.GradientCanaries(200, **QUIET), seed=5, **LAWS[law]())
    found = privacy.audit
    assert not stopped
    assert not found.violated
    assert found.steps == privacy.plan.steps
    assert found.claimed == pytest.approx(privacy.epsilon(1e-5, executed=True))
    assert 0.4 < found.lower / found.claimed <= 1
    assert found.verdict.startswith("Consistent: 200 canaries in ")


@pytest.mark.parametrize("name", EIGHT)
def test_a_broken_training_is_stopped(name: str) -> None:
    """In one run of sixty steps, without a seed; ``experiments.audited_runs broken`` counts how many are missed."""
    privacy, stopped = EIGHT[name]()
    assert stopped.startswith("The run's own canaries refute what it claims: ")
    with pytest.raises(PrivateTrainingError, match="refute what it claims"):  # whoever catches it
        privacy.observation.contributions(np.zeros(0, np.int64))
    assert privacy.steps < privacy.plan.steps
    assert privacy.audit.violated
    assert str(privacy.audit).startswith("VIOLATED: ")


def test_noise_on_canaries_alone_is_found() -> None:
    """An implementation that noises what is looked at: the weights are looked at too."""
    with weights_without_noise():
        _, stopped = train()
    assert "weights have less noise than claimed" in stopped


def test_a_run_that_may_go_on_is_reported_at_its_end() -> None:
    told: list[Any] = []
    privacy, stopped = train(audit=auditing.GradientCanaries(200, halt=False, report=told.append, rng=1), seed=1)
    assert not stopped
    assert [each.steps for each in told] == [privacy.plan.steps]


def test_few_canaries_give_no_verdict_and_say_how_many_would() -> None:
    privacy, _ = train(audit=auditing.GradientCanaries(20, **QUIET), seed=1, steps=2, noise_multiplier=20.0)
    with pytest.raises(auditing.CannotJudge, match=r"20 canaries.* take about \d+, or wait"):
        _ = privacy.audit


def test_a_claim_of_nothing_gives_no_verdict() -> None:
    privacy, _ = train(audit=auditing.GradientCanaries(50, **QUIET), seed=1, steps=1, noise_multiplier=1e-3)
    privacy.observation.asked = auditing.GradientCanaries(50, delta=1e-300, **QUIET)
    with pytest.raises(auditing.CannotJudge, match="which no canary can test"):
        _ = privacy.audit


def test_counting_guesses_assumes_less_and_reaches_less() -> None:
    privacy, _ = train(audit=auditing.GradientCanaries(500, **QUIET), seed=2)
    found = privacy.audit
    counted = found.by_counting()
    assert not counted.violated
    assert counted.lower < found.lower
    assert counted.claimed == pytest.approx(found.claimed)


def test_canaries_count_as_records() -> None:
    """In the plan, wherever the number of records is said, and as users where batches are of users."""
    plans = [train(audit=auditing.GradientCanaries(100, **QUIET), steps=1, **options)[0].plan for options in (
        {}, {"dataset_size": 400}, {"sampler": "shuffled"},
        {"sampler": PerUser(batch_size=40, dataset_size=400, users=list(range(400)))},
    )]  # fmt: skip
    assert [plan.sampler.dataset_size for plan in plans] == [500] * 4
    assert plans[0].sampler.rate == 40 / 500


def test_without_an_audit_there_is_none_and_the_step_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Run, "_canary_sum", fail)
    data = torch.utils.data.TensorDataset(torch.zeros(8, 3), torch.zeros(8, 1))
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model, optimizer, loader = make_private(
        model, optimizer, loader, noise_multiplier=1.0, epochs=1, loss_reduction="mean"
    )
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    with pytest.raises(PrivateTrainingError, match=r"make_private\(\.\.\., audit="):
        _ = optimizer.privacy.audit


def test_what_is_read_of_a_step_does_not_grow_with_the_model() -> None:
    """One number a canary and sixteen a tensor."""
    privacy, _ = train(audit=auditing.GradientCanaries(50, every=100, halt=False, **QUIET), seed=8, steps=20)
    watched: Any = privacy.observation
    assert {len(row) for row in watched._released} == {50}
    assert {row.shape for row in watched._weights} == {(3, 16)}  # the last bias has two entries


def test_what_is_no_observer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"audit is a int, but must be an observer"):
        train(audit=500)


class Unknown(Noise):
    """Correlated, by no known matrix."""

    def event(self, participation: Any, multipliers: Any) -> Any:
        from discreet import events

        return events.Gaussian(noise_multiplier=1.0)

    def release(self, step: Any, total: Any, gaussians: Any) -> None:
        gaussians.add(total, step.sigma, 1 / step.divisor)


def test_batches_of_a_fixed_size_are_refused_because_canaries_would_tell_of_records() -> None:
    with pytest.raises(ValueError, match="how many canaries one holds would tell how many records"):
        train(sampler="fixed-size")


def test_noise_of_an_unknown_matrix_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="audit needs the matrix of Unknown noise"):
        train(noise=Unknown())


OTHERS = [pytest.param(noise, marks=pytest.mark.slow) for noise in (LambdaCGD(back=0.5), BLT())]


@pytest.mark.parametrize("noise", [Banded(bands=4), Tree(), *OTHERS])
def test_correlated_noise_is_white_after_the_claimed_matrix(noise: Noise) -> None:
    """Residuals of a run have the claimed scale (five deviations of some thousand numbers) and no lags."""
    privacy, _ = train(audit=auditing.GradientCanaries(200, **QUIET), seed=4, noise=noise, noise_multiplier=2.0)
    watched: Watched = privacy.observation  # type: ignore[assignment]
    _ = privacy.audit
    count = 200 * privacy.steps
    spent = watched._squares - 2 * watched._product + watched._energy
    assert abs(spent / count - 1) < 5 * np.sqrt(2 / count)
    assert watched.logs["lags"] < 0


def test_a_checkpoint_goes_on_with_its_canaries() -> None:
    """Coins and what was seen are those of the run that was saved; correlated noise without them is not judged."""
    first, _ = train(audit=auditing.GradientCanaries(100, **QUIET), seed=7, steps=10)
    second, stopped = train(audit=auditing.GradientCanaries(100, report=None, rng=9), seed=7, start=first.state_dict())
    assert not stopped
    assert (second.observation.inside == first.observation.inside).all()
    assert second.audit.steps == second.plan.steps
    noise = {"noise": LambdaCGD(back=0.5), "noise_multiplier": 2.0, "seed": 7}
    saved, _ = train(audit=auditing.GradientCanaries(100, **QUIET), steps=10, **noise)
    state = {name: part for name, part in saved.state_dict().items() if name != "audit"}
    resumed, _ = train(audit=auditing.GradientCanaries(100, **QUIET), start=(state, saved.secret_state_dict()), **noise)
    with pytest.raises(auditing.CannotJudge, match="Steps were left out"):
        _ = resumed.audit


def test_fit_is_audited_and_tells_at_the_end() -> None:
    told: list[Any] = []
    x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-4, "epochs": 2, "batch_size": 50}
    fit(torch.nn.Linear(3, 2), (x, (x[:, 0] > 0).long()), rng=3,
        audit=auditing.GradientCanaries(200, report=told.append, rng=1), **options)  # fmt: skip
    (found,) = told
    assert found.delta == 1e-4
    assert not found.violated
    assert found.claimed <= 2.0


def test_the_picture_shows_both_curves(tmp_path: Any) -> None:
    privacy, _ = train(audit=auditing.GradientCanaries(200, **QUIET), seed=5)
    figure = privacy.audit.plot(tmp_path / "audit.png")
    assert [line.get_label().split(":")[0] for line in figure.axes[0].lines] == [
        "claimed", "shown by canaries", "perfect privacy",
    ]  # fmt: skip
    assert (tmp_path / "audit.png").stat().st_size > 1000
