"""Correlated noise in a run: its covariance, price, pairs, memory and secrets; replay and audit of a run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet import events as ev
from discreet.auditing import ReplayError, replay
from discreet.mechanisms.factorization import Pattern, kept_bins_event, noise_matrix, why_not_amplified
from discreet.random import seeded, system
from discreet.random.keyed import Keyed, new_key
from discreet.release import Release
from discreet.training import (
    Auto,
    CyclicPoisson,
    FixedOrder,
    KeptBins,
    Poisson,
    Shuffled,
    compare,
    make_private,
    noise,
    plan_for,
)
from discreet.training.noise import comparison
from discreet.training.noise.base import Step
from discreet.training.noise.correlated import Stream
from tests.training.loops import private, step, weights
from tests.training.test_noise import ROWS, trained

FALSE_ALARM = 1e-9
NOISES = {
    "tree": noise.Tree(),
    "one tree": noise.Tree(restarts=False),
    "square root": noise.SquareRoot(),
    "banded": noise.Banded(bands=3),
    "banded inverse": noise.BandedInverse(bands=3),
    "BISR": noise.BandedInverse(bands=3, optimised=False),
    "lambda": noise.LambdaCGD(),
    "BLT": noise.BLT(buffers=2),
    "dense": noise.Dense(),
}
STEPS, PASS = 12, 6


def released(given, steps, size=20_000, rng=None, skipped=()):
    """The noise of a run, one row per step, on sums of zeros."""
    taking_part = given.sampler(10, 60).participation
    stream, rows = given.begun(taking_part, steps), []
    for number in range(steps):
        if number in skipped:
            continue
        total = [torch.zeros(size - 8), torch.zeros(2, 4)]
        facts = Step(number=number, multiplier=2.0, sensitivity=0.5, movement=1, divisor=4.0)
        stream.release(facts, total, noise.Gaussians(system() if rng is None else seeded(rng + number)))
        rows.append(torch.cat([part.reshape(-1) for part in total]).double().numpy() * 4.0)
    return np.array(rows), given.strategy(taking_part, steps)


def covariance_fits(rows, matrix):
    """Whether rows of Gaussians have this covariance: in their white form each row is chi-square, each product of two
    sub-exponential; a union over the entries."""
    count = rows.shape[1]
    white = np.linalg.solve(np.linalg.cholesky(matrix), rows)
    found = white @ white.T
    entries = len(found) * (len(found) + 1) / 2
    low, high = chi2.ppf([FALSE_ALARM / entries / 2, 1 - FALSE_ALARM / entries / 2], count)
    far = math.sqrt(2 * math.log(2 * entries / FALSE_ALARM) * count) * 1.05
    off = np.abs(found - np.diag(found.diagonal())).max()
    return bool((found.diagonal() > low).all() and (found.diagonal() < high).all() and off < far)


@pytest.mark.parametrize("name", NOISES)
def test_streamed_noise_has_the_covariance_that_its_matrix_says(name):
    """False alarms: 1e-9. Power: the same test rejects independent noise, and noise 5 % too small."""
    rows, strategy = released(NOISES[name], STEPS)
    inverse = noise_matrix(strategy)
    wanted = inverse @ inverse.T
    assert covariance_fits(rows, wanted)
    assert not covariance_fits(rows * 0.95, wanted)
    assert not covariance_fits(rows, np.diag(wanted.diagonal()))


def test_steps_that_are_left_out_are_drawn_and_not_shown():
    for name in ("lambda", "banded", "BLT", "tree"):
        rows, strategy = released(NOISES[name], STEPS, skipped=(3, 4, 8))
        inverse = noise_matrix(strategy)
        kept = [i for i in range(STEPS) if i not in (3, 4, 8)]
        assert covariance_fits(rows, (inverse @ inverse.T)[np.ix_(kept, kept)])


@pytest.mark.parametrize("secure", [True, False])
def test_what_a_key_has_added_it_takes_away_when_it_is_rewound(secure):
    """Of small tensors, of large ones that are drawn in lanes, and by another source of the same key."""
    source = noise.Gaussians(system(), secure)
    key = source.key()
    drawn = source.keyed(key)
    total = [torch.zeros(100), torch.zeros(70_000, dtype=torch.float64)]
    drawn.add(total, 2.0)
    assert all(float(part.abs().max()) > 1 for part in total)
    twin = [part.clone() for part in total]
    drawn.again().add(total, 2.0, subtract=True)
    source.keyed(key).add(twin, 2.0, subtract=True)
    for part in (*total, *twin):
        assert float(part.abs().max()) < 1e-5


# --- prices and pairs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NOISES)
def test_the_price_is_that_of_the_matrix_and_the_default_sampler_is_the_one_it_is_proved_with(name):
    given = NOISES[name]
    _, optimizer, _ = private(noise=given)
    plan = optimizer.privacy.plan
    strategy = given.strategy(plan.participation, plan.steps)
    if name == "banded":
        assert plan.sampler == CyclicPoisson(batch_size=10, dataset_size=60, parts=3)
        inside = ev.Gaussian(noise_multiplier=1 / strategy.column_norm)
        assert plan.event == ev.PoissonSampled(rate=0.5, event=inside) * 4
    else:
        assert plan.sampler == KeptBins(batch_size=10, dataset_size=60)
        known = ev.Gaussian(noise_multiplier=1 / strategy.sensitivity(Pattern.passes(STEPS, PASS)).value)
        if why_not_amplified(strategy) is None:
            assert plan.event == kept_bins_event(strategy, PASS, 1.0)
            assert dp.epsilon(plan.event, 1e-5) <= dp.epsilon(known, 1e-5) * (1 + 1e-9)
        else:
            assert name in ("tree", "one tree"), "the only ones whose matrix has more rows than steps"
            assert plan.event == known
    assert plan.adjacency == "add-remove"
    assert optimizer.privacy.executed == ev.Composed(events=())
    assert plan.price(1) == plan.event, "the steps are paid for together"


def test_a_fixed_order_is_priced_under_zero_out_or_replace():
    for adjacency, movement in (("zero-out", 1), ("replace", 2)):
        sampler = FixedOrder(batch_size=10, dataset_size=60, adjacency=adjacency)
        _, optimizer, _ = private(noise=noise.LambdaCGD(back=0.5), sampler=sampler)
        plan = optimizer.privacy.plan
        sensitivity = plan.noise.strategy(plan.participation, 12).sensitivity(Pattern.passes(12, 6)).value
        assert plan.event == ev.Gaussian(noise_multiplier=1 / sensitivity / movement, adjacency=adjacency)
        with pytest.raises(dp.UnsupportedEvent):
            dp.epsilon(plan.event, delta=1e-5)  # not under add-remove
    with pytest.raises(ValueError, match="KeptBins"):
        FixedOrder(batch_size=10, dataset_size=60, adjacency="add-remove")
    with pytest.raises(ValueError, match="number of records"):
        private(noise=noise.LambdaCGD(), sampler="fixed-order", dataset_size=50)


class Unpaid:
    def charge(self, event, label="", *, unit="one record", reproducible=False):
        raise AssertionError("charged")


def test_a_pair_without_a_theorem_is_refused_by_name_before_the_charge():
    for sampler in ("poisson", "truncated-poisson", "balls-in-bins", "shuffled", "fixed-size"):
        name = sampler.replace("-", "").lower()
        with pytest.raises(ValueError, match="no theorem together") as refused:
            private(noise=noise.BLT(), sampler=sampler, book=Unpaid())
        assert str(refused.value).lower().startswith(name)
        assert "KeptBins" in str(refused.value)
    cyclic = CyclicPoisson(batch_size=10, dataset_size=60, parts=3)
    for wrong in (noise.Banded(bands=4), noise.LambdaCGD(), noise.BLT()):
        with pytest.raises(ValueError, match="3 parts"):
            private(noise=wrong, sampler=cyclic, book=Unpaid())
    private(noise=noise.Banded(bands=2), sampler=cyclic)
    with pytest.raises(ValueError, match="noise_schedule"):
        private(noise=noise.Banded(bands=2), noise_schedule=lambda s: 1 + s, book=Unpaid())


def test_independent_noise_has_a_price_with_the_samplers_that_keep_records_in_place():
    gaussian = ev.Gaussian(noise_multiplier=1.0)
    kept = noise.Independent().event(KeptBins(batch_size=10, dataset_size=60).participation, [1.0] * 12)
    assert kept == ev.BallsInBins(bins=6, event=gaussian * 2), "the bin is drawn once, for both passes"
    falling = noise.Independent().event(KeptBins(batch_size=10, dataset_size=60).participation, [2.0] * 6 + [1.0] * 6)
    assert isinstance(falling, ev.BallsInBins)
    assert ev.leaves(falling.event) == {gaussian: 1, ev.Gaussian(noise_multiplier=2.0): 1}
    assert noise.Independent().event(KeptBins(batch_size=10, dataset_size=60).participation, []) == ev.Composed(
        events=()
    )
    cyclic = CyclicPoisson(batch_size=10, dataset_size=60, parts=3)
    turns = noise.Independent().event(cyclic.participation, [1.0] * 12)
    assert ev.leaves(turns) == {ev.PoissonSampled(rate=0.5, event=gaussian): 4}
    assert cyclic.expected == 10


def test_a_run_is_calibrated_to_a_target():
    for given in (noise.Banded(bands=4), noise.LambdaCGD()):
        _, optimizer, _ = private(noise=given, noise_multiplier=None, epsilon=2.0, delta=1e-5)
        assert optimizer.privacy.epsilon(1e-5) == pytest.approx(2.0, rel=1e-5)
        assert optimizer.privacy.epsilon(1e-5) <= 2.0


# --- samplers --------------------------------------------------------------------------------------------------------


def batches(sampler, passes=3, rng=None):
    """The records of each batch, by a run of the real loader."""
    records = TensorDataset(torch.arange(60.0).reshape(60, 1))
    model = nn.Linear(1, 1)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(records, 10),
        epochs=passes,
        noise_multiplier=1.0,
        loss_reduction="sum",
        sampler=sampler,
        rng=rng,
        placeholder=(torch.tensor([-1.0]),),
    )
    found = []
    for _ in range(passes):
        for (x,) in loader:
            found.append(sorted(int(v) for v in x[:, 0].tolist() if v >= 0))
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    return found


def test_kept_bins_and_fixed_orders_repeat_themselves_in_every_pass():
    for sampler in ("kept-bins", "fixed-order"):
        found = batches(sampler)
        assert found[:6] == found[6:12] == found[12:]
        assert sorted(i for batch in found[:6] for i in batch) == list(range(60))
    assert batches("shuffled")[:6] != batches("shuffled")[6:12]


def test_the_parts_of_cyclic_poisson_take_turns_and_a_record_stays_in_its_part():
    found = batches(CyclicPoisson(batch_size=10, dataset_size=60, parts=3), passes=4)
    parts = [set().union(*found[turn::3]) for turn in range(3)]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert any(found[turn] != found[turn + 3] for turn in range(3)), "coins are fresh"
    # 240 coins of 1/2 among some 60/3 records a turn: the sum of 24 batches is 240 ± 6.1 standard deviations
    total = sum(len(batch) for batch in found)
    assert abs(total - 240) < 6.1 * math.sqrt(24 * 20 * 0.25 + 1)


# --- memory and secrets ----------------------------------------------------------------------------------------------


def test_the_memory_is_stated_before_the_run_and_is_what_is_kept():
    sizes = {"banded": 2, "banded inverse": 2, "BISR": 2, "lambda": 0, "BLT": 2, "tree": 2, "one tree": 3}
    for name, vectors in sizes.items():
        model, optimizer, loader = private(noise=NOISES[name])
        assert optimizer.privacy.plan.noise_vectors == vectors
        assert optimizer.privacy.noise_memory == vectors * 4 * 58  # of 58 numbers of four bytes
        most = 0
        for _ in range(2):
            for batch in loader:
                step(model, optimizer, batch)
                state = optimizer.privacy.secret_state_dict()["noise"]
                most = max(most, sum(t.numel() * 4 for parts in state.get("memory", []) for t in parts))
        assert most <= vectors * 4 * 58
        assert most == vectors * 4 * 58


@pytest.mark.parametrize("name", ["tree", "banded", "banded inverse", "lambda", "BLT"])
def test_a_seeded_run_resumes_bit_for_bit(name, tmp_path):
    def go_on(model, optimizer, loader):
        while optimizer.privacy.remaining_steps:
            for batch in loader:
                step(model, optimizer, batch)
                if optimizer.privacy.steps == 5:
                    yield

    straight = private(noise=NOISES[name])
    list(go_on(*straight))
    model, optimizer, loader = private(noise=NOISES[name])
    next(go_on(model, optimizer, loader))
    torch.save(optimizer.privacy.state_dict(), tmp_path / "checkpoint")
    torch.save(optimizer.privacy.secret_state_dict(), tmp_path / "secret")
    other, trainer, rest = private(noise=NOISES[name])
    with pytest.raises(ValueError, match="pass secret="):
        trainer.privacy.load_state_dict(torch.load(tmp_path / "checkpoint"))
    trainer.privacy.load_state_dict(torch.load(tmp_path / "checkpoint"), secret=torch.load(tmp_path / "secret"))
    list(go_on(other, trainer, rest))
    assert torch.equal(weights(other), weights(straight[0]))


def test_a_run_without_a_seed_keeps_its_bins_and_goes_on():
    model, optimizer, loader = private(noise=noise.LambdaCGD(), rng=None)
    for batch in loader:
        step(model, optimizer, batch)
    state, secret = optimizer.privacy.state_dict(), optimizer.privacy.secret_state_dict()
    other, trainer, rest = private(noise=noise.LambdaCGD(), rng=None)
    trainer.privacy.load_state_dict(state, secret=secret)
    for batch in rest:
        step(other, trainer, batch)
    assert trainer.privacy.remaining_steps == 0
    assert np.array_equal(trainer.privacy._run._pass[1], state["order"].numpy())
    with pytest.raises(ValueError, match="same run and step"):
        private(noise=noise.LambdaCGD(), rng=None)[1].privacy.load_state_dict(state, secret={**secret, "steps": 3})


def test_a_checkpoint_holds_nothing_that_takes_noise_away():
    """Neither a remembered vector nor a key is in it."""
    for name in ("lambda", "banded"):
        model, optimizer, loader = private(noise=NOISES[name], rng=None)
        for batch in loader:
            step(model, optimizer, batch)
        state, secret = optimizer.privacy.state_dict(), optimizer.privacy.secret_state_dict()
        assert state["noise"] == {}
        assert secret["steps"] == 6
        if name == "lambda":
            assert len(secret["noise"]["last"][1]) == 32
            assert secret["noise"]["last"][1] not in str(state)
    _, plain, _ = private()
    assert plain.privacy.secret_state_dict() == {}


def test_a_key_draws_the_same_again_and_is_never_copied():
    import copy
    import pickle

    key = new_key(system())
    once, again = (np.asarray(dp.random.gaussian_noise(np.zeros(1 << 17), 1.0, Keyed(key))) for _ in range(2))
    assert np.array_equal(once, again)
    assert len(np.unique(once)) > (1 << 17) - 10, "lanes differ"
    assert not np.array_equal(once, dp.random.gaussian_noise(np.zeros(1 << 17), 1.0, Keyed(new_key(system()))))
    for wrong in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="secret"):
            wrong(Keyed(key))
    assert Keyed(key, reproducible=True).reproducible
    assert repr(Keyed(key)) == "Keyed(...)"
    with pytest.raises(ValueError, match="16 bytes"):
        Keyed(b"short")


@pytest.mark.parametrize("kind", [noise.LambdaCGD, noise.Banded, noise.BandedInverse, noise.BLT, noise.SquareRoot])
def test_a_workload_that_is_none_is_refused_by_name(kind):
    """Where the noise is made: a search for a price would only say that it found none."""
    for name, wrong in (("momentum", "x"), ("momentum", 1.0), ("decay", -1.0), ("error", "most")):
        with pytest.raises(ValueError, match=f"^{name} is"):
            kind(**{name: wrong})


def test_noise_is_drawn_by_a_run_alone():
    with pytest.raises(TypeError, match="begun"):
        noise.BLT().release(Step(number=0, multiplier=1.0, sensitivity=1.0, movement=1, divisor=1.0), [], None)
    assert isinstance(noise.BLT().begun(KeptBins(batch_size=1, dataset_size=4).participation, 4), Stream)
    assert isinstance(noise.Independent().sampler(1, 2), Poisson)
    assert not Shuffled.kept


# --- replay and audit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tree", "banded", "lambda", "BLT"])
def test_a_correlated_run_passes_replay(name):
    for one, other in (([(9.0, -9.0, 0), *ROWS], ROWS), (ROWS, [(9.0, -9.0, 0), *ROWS])):
        transcript = replay(lambda rows: trained(rows, NOISES[name]), one, other, seeded=True)
        assert len(transcript.steps) >= 4


def test_replay_finds_a_matrix_that_claims_too_little():
    """Power: a correlated run at the price of a tenth of its noise's."""

    def claims_less(rows):
        found = trained(rows, noise.LambdaCGD(back=0.5))
        return Release(found.value, ev.Gaussian(noise_multiplier=10.0))

    with pytest.raises(ReplayError, match="cost more than"):
        replay(claims_less, [(9.0, -9.0, 0), *ROWS], ROWS, seeded=True)


class Steps:
    """Four steps in two passes, on one number: a record that is there adds 1 to the first step of each pass.

    Its bin is known here, so the claim is that of a known bin.
    """

    unit = "one record"

    def __init__(self, given, widened=1.0):
        self.given, self.widened = given, widened
        self.taking_part = KeptBins(batch_size=10, dataset_size=20).participation
        self.strategy = given.strategy(self.taking_part, 4)
        shift = self.strategy.matrix() @ np.array([1.0, 0.0, 1.0, 0.0])
        self.test = self.strategy.matrix().T @ shift  # the best test of C·outputs: Neyman and Pearson

    @property
    def event(self):
        sensitivity = self.strategy.sensitivity(self.taking_part.pattern(4)).value
        return ev.Gaussian(noise_multiplier=2.0 / sensitivity)

    def release(self, data=None, rng=None):
        stream, found = self.given.begun(self.taking_part, 4), []
        for number in range(4):
            total = [torch.full((1,), float(len(data)) * (number % 2 == 0), dtype=torch.float64)]
            facts = Step(number=number, multiplier=2.0 * self.widened, sensitivity=1.0, movement=1, divisor=1.0)
            stream.release(facts, total, noise.Gaussians(dp.random.as_rng(rng)))
            found.append(float(total[0]))
        return Release(float(self.test @ np.array(found)), self.event)


@pytest.mark.parametrize(
    "given",
    [noise.LambdaCGD(back=0.5), pytest.param(noise.BLT(buffers=2), marks=pytest.mark.slow)],
    ids=["lambda", "BLT"],
)
def test_an_audit_of_correlated_steps_comes_near_the_claim_and_refutes_too_little_noise(given):
    """By the best test there is; confidence 99.9 %."""
    honest = dp.auditing.audit(Steps(given), [1], [], trials=800, confidence=0.999, rng=1)
    assert 0.5 * honest.claimed < honest.lower <= honest.claimed
    assert dp.auditing.audit(Steps(given, widened=0.5), [1], [], trials=800, confidence=0.999, rng=1).violated


# --- comparing -------------------------------------------------------------------------------------------------------


def test_noises_are_compared_at_one_price_and_the_best_that_fits_is_taken():
    plan = plan_for(2000, 100, epochs=3, noise_multiplier=1.0)
    given = [noise.LambdaCGD(), noise.BLT(), noise.Tree(), noise.Banded(bands=4)]
    found = compare(plan, delta=1e-5, epsilon=2.0, noises=given)
    assert [row.error for row in found] == sorted(row.error for row in found)
    for row in found:
        event = row.noise.event(row.sampler.participation, [row.noise_multiplier] * plan.steps)
        assert dp.epsilon(event, delta=1e-5) == pytest.approx(2.0, rel=1e-5)
    by_name = {type(row.noise).__name__: row for row in found}
    assert by_name["BLT"].error < by_name["LambdaCGD"].error < by_name["Tree"].error
    assert by_name["LambdaCGD"].vectors == 0
    assert str(found).count("\n") == len(given)
    assert found.plot().get_xlabel().startswith("expected noise")


def test_auto_takes_the_best_within_the_memory_allowed(monkeypatch):
    pairs = [(given, given.sampler) for given in (noise.LambdaCGD(), noise.BLT(buffers=2), noise.Tree())]
    monkeypatch.setattr(comparison, "candidates", lambda momentum, decay: pairs)
    target = {"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-5}
    given = [noise.LambdaCGD(), noise.BLT(buffers=2), noise.Tree()]
    best = compare(plan_for(60, 10, epochs=2, noise_multiplier=1.0), delta=1e-5, epsilon=2.0, noises=given).rows[0]
    assert private(noise="auto", **target)[1].privacy.plan.noise == best.noise
    _, optimizer, _ = private(noise=Auto(vectors=1), **target)
    assert optimizer.privacy.plan.noise == noise.LambdaCGD()
    assert optimizer.privacy.epsilon(1e-5) <= 2.0
    for wrong, reason in (
        ({"sampler": "poisson", **target}, "chooses the sampler"),
        ({"noise_multiplier": 1.0}, "give epsilon"),
    ):
        with pytest.raises(ValueError, match=reason):
            private(noise="auto", book=Unpaid(), **wrong)
    with pytest.raises(ValueError, match="vectors"):
        Auto(vectors=-1)


@pytest.mark.parametrize(
    ("saved", "loaded"),
    [
        ({"noise": noise.Banded(bands=2), "batch": 10}, {"noise": noise.Banded(bands=2), "batch": 2}),
        ({"noise": noise.Banded(bands=2), "batch": 4}, {"noise": noise.Banded(bands=4), "batch": 4}),
        ({"noise": None, "batch": 10}, {"noise": None, "batch": 2}),
        ({"noise_schedule": lambda step: 1 + step // 2}, {"noise_schedule": lambda step: 2 - step // 2, "batch": 10}),
    ],
    ids=["passes", "bands", "passes, independent", "schedule"],
)
def test_a_checkpoint_of_another_plan_of_equal_price_is_refused(saved, loaded):
    """Seven of eight steps of two a pass, and then the rest of passes of ten, would be more than four passes."""

    def made(batch=10, noise=None, noise_schedule=None):
        net, data = nn.Linear(2, 1), TensorDataset(torch.randn(20, 2), torch.randn(20, 1))
        return make_private(
            net,
            torch.optim.SGD(net.parameters(), lr=0.1),
            DataLoader(data, batch_size=batch),
            epochs=2,
            noise_multiplier=5.0,
            noise=noise,
            noise_schedule=noise_schedule,
            sampler="poisson" if noise_schedule else "fixed-order",
            loss_reduction="mean",
        )

    first, again, other = (made(**arguments)[1].privacy for arguments in (saved, saved, loaded))
    assert first.planned == other.planned, "the price does not tell them apart"
    with pytest.raises(ValueError, match="another plan"):
        other.load_state_dict(first.state_dict(), first.secret_state_dict())
    again.load_state_dict(first.state_dict(), first.secret_state_dict())


def test_noise_that_was_interrupted_is_not_gone_on_with():
    """A tree of which a node was taken and not put back would add up the wrong ones."""

    class Interrupted(noise.Gaussians):
        def add(self, *arguments, **more):
            raise KeyboardInterrupt

    stream = noise.Tree().begun(KeptBins(batch_size=1, dataset_size=4).participation, 4)
    for number, gaussians in enumerate((noise.Gaussians, Interrupted, noise.Gaussians)):
        facts = Step(number=number, multiplier=1.0, sensitivity=1.0, movement=1, divisor=1.0)
        expected = {1: KeyboardInterrupt, 2: ValueError}.get(number)
        if expected is None:
            stream.release(facts, [torch.zeros(3)], gaussians(system()))
            continue
        with pytest.raises(expected):
            stream.release(facts, [torch.zeros(3)], gaussians(system()))
    with pytest.raises(ValueError, match="interrupted"):
        stream.state_dict()


def test_a_matrix_of_fewer_steps_than_the_run_has_no_price():
    class Short(noise.Banded):
        def strategy_for(self, pattern):
            return super().strategy_for(Pattern.passes(4, 2))

    with pytest.raises(ValueError, match="4 steps for a run of 12"):
        plan_for(60, 10, epochs=2, noise_multiplier=1.0, noise=Short(bands=2), sampler="kept-bins")


def test_the_secret_of_another_run_is_refused():
    """Its noise would be taken back from sums that it was never added to, and its records sit in other bins."""
    runs = [private(noise=noise.LambdaCGD(), rng=None) for _ in range(3)]
    for model, optimizer, loader in runs[:2]:
        step(model, optimizer, next(iter(loader)))
    one, other, fresh = (optimizer.privacy for _, optimizer, _ in runs)
    with pytest.raises(ValueError, match="same run and step"):
        fresh.load_state_dict(one.state_dict(), other.secret_state_dict())
    fresh.load_state_dict(one.state_dict(), one.secret_state_dict())
    again = private(noise=noise.LambdaCGD(), rng=None)[1].privacy
    again.load_state_dict(fresh.state_dict(), one.secret_state_dict())


def test_a_stream_that_was_begun_begins_anew_with_another_run():
    """What one run remembers reaches no other, and the matrix is the other's."""
    short, long = (
        KeptBins(batch_size=1, dataset_size=2).participation,
        KeptBins(batch_size=1, dataset_size=4).participation,
    )
    for given in (noise.LambdaCGD(back=0.5), noise.BLT(buffers=2)):
        first = given.begun(short, 4)
        facts = Step(number=0, multiplier=1.0, sensitivity=1.0, movement=1, divisor=1.0)
        first.release(facts, [torch.zeros(3)], noise.Gaussians(system()))
        assert first.begun(long, 8).state_dict() == given.begun(long, 8).state_dict()


def test_the_memory_of_half_precision_is_kept_in_single():
    net = nn.Linear(2, 1, dtype=torch.bfloat16)
    data = TensorDataset(torch.randn(20, 2, dtype=torch.bfloat16), torch.randn(20, 1, dtype=torch.bfloat16))
    _, optimizer, loader = make_private(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        DataLoader(data, batch_size=10),
        epochs=2,
        noise_multiplier=5.0,
        noise=noise.BLT(buffers=2),
        loss_reduction="mean",
    )
    stated = optimizer.privacy.noise_memory
    inputs, targets = next(iter(loader))
    nn.functional.mse_loss(net(inputs), targets).backward()
    optimizer.step()
    kept = optimizer.privacy.secret_state_dict()["noise"]["memory"]
    assert stated == sum(part.numel() * part.element_size() for vector in kept for part in vector)


@pytest.mark.parametrize("given", [noise.BLT(buffers=3), noise.BandedInverse(bands=3), noise.LambdaCGD()], ids=str)
def test_the_matrix_that_is_priced_is_the_one_that_single_precision_streams(given):
    """Over 20,000 steps a decay that tensors round moves the sensitivity by up to a part in 10⁵."""
    strategy = given.strategy_for(Pattern.passes(1000, 100))
    weights = np.concatenate([getattr(strategy, name, ()) for name in ("scales", "decays", "few")])
    assert len(weights) >= 2
    assert np.array_equal(weights.astype(np.float32), weights)
