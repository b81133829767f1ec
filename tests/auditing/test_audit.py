"""Audits: true claims survive, broken ones are caught, tight ones are nearly reached; one-run bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet import auditing, events, guarantee, mechanisms
from discreet.release import Release


def tight(name: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """An operation, two neighbours at the full sensitivity, and how it is asked."""
    return {
        "gaussian": (mechanisms.Gaussian(sensitivity=1.0, epsilon=1.0, delta=1e-5), 0.0, 1.0, {"delta": 1e-5}),
        "laplace": (mechanisms.Laplace(sensitivity=1.0, epsilon=1.0), 0.0, 1.0, {"delta": 0.0}),
        "randomised response": (
            mechanisms.RandomizedResponse(epsilon=1.0),
            [0],
            [1],
            {"delta": 0.0, "adjacency": "replace"},
        ),
    }[name]


NAMES = ["gaussian", "laplace", "randomised response"]


def median_share(name: str, trials: int, audits: int) -> float:
    operation, data, neighbour, asked = tight(name)
    found = [auditing.audit(operation, data, neighbour, trials=trials, rng=seed, **asked) for seed in range(audits)]
    return float(np.median([each.lower / each.claimed for each in found]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("trials", "audits", "share"),
    [(3_000, 1, 0.3), pytest.param(10_000, 21, 0.68, marks=pytest.mark.slow)],
)
def test_tight_claims_are_nearly_reached_and_never_exceeded(name: str, trials: int, audits: int, share: float) -> None:
    """Exceeding a true claim has probability at most one percent an audit; the median needs half of them."""
    assert share <= median_share(name, trials, audits) <= 1


@dataclass(frozen=True)
class Halved:
    """Claims a Gaussian's price, and adds half of its noise."""

    honest: Any
    unit = "one record"

    @property
    def event(self) -> events.Event:
        return self.honest.event

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        noisy = self.honest.release(data, rng)
        return Release(data + (noisy.value - data) / 2, self.event)


@pytest.mark.parametrize("name", NAMES[:2])
def test_half_the_noise_is_caught(name: str) -> None:
    operation, data, neighbour, asked = tight(name)
    found = auditing.audit(Halved(operation), data, neighbour, trials=2000, rng=1, **asked)
    assert found.violated
    assert found.verdict.startswith("VIOLATED: ε ≥ 1.")


def test_vectors_are_read_along_what_the_pilot_found() -> None:
    mechanism = mechanisms.Gaussian(sensitivity=1.0, epsilon=4.0, delta=1e-5)
    data, neighbour = np.zeros(20), np.full(20, 1 / np.sqrt(20))
    found = auditing.audit(mechanism, data, neighbour, trials=2000, rng=2)
    assert 0.5 * found.claimed < found.lower < found.claimed
    assert found.method == "Gaussian counts of half-lines"


def test_values_can_be_read_as_one_likes_and_the_picture_is_drawn(tmp_path: Any) -> None:
    mechanism = mechanisms.Laplace(sensitivity=1.0, epsilon=1.0)
    found = auditing.audit(mechanism, 0.0, 1.0, trials=400, delta=0.0, read=lambda x: {"a": -x}, rng=3)
    found.plot(str(tmp_path / "audit.png"))
    assert (tmp_path / "audit.png").stat().st_size > 1000
    assert "scores" not in repr(found)


@pytest.mark.parametrize(
    ("right", "guessed", "hull", "epsilon"),
    [(2807, 3376, 386, 1.13346), (4499, 4666, 374, 2.311945), (8223, 8233, 140, 4.395568)],
)
def test_one_run_bounds_are_the_published_ones(right: int, guessed: int, hull: int, epsilon: float) -> None:
    """Deterministic Gaussian scores of 20,000 canaries, at the best of the thresholds on their convex hull."""
    found = auditing.epsilon_one_run(right, guessed, 20_000, delta=1e-6, alarm=0.05 / hull)
    assert found == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize(
    ("right", "guessed", "hull", "epsilon"),
    [(379, 406, 386, 2.164749), (934, 938, 374, 4.7218075), (5436, 5436, 140, 9.133752)],
)
def test_one_run_bounds_of_gaussian_curves_are_the_published_ones(
    right: int, guessed: int, hull: int, epsilon: float
) -> None:
    found = auditing.epsilon_one_run_gaussian(right, guessed, 20_000, delta=1e-6, alarm=0.05 / hull)
    assert found == pytest.approx(epsilon, rel=1e-5)


def test_a_claimed_curve_is_ruled_out_by_too_many_right_guesses_only() -> None:
    """A mechanism of its own curve is ruled out at most as often as the level says."""
    rng = np.random.default_rng(5)
    curve = guarantee(events.Laplace(noise_multiplier=1.0)).tradeoff
    alarms = 0
    for _ in range(40):
        inside = rng.random(400) < 0.5
        scores = inside + rng.laplace(size=400)
        right = auditing.guesses(scores[inside], scores[~inside], 100)
        alarms += auditing.rules_out(right, 100, 400, curve=curve, alarm=0.05)
    assert alarms <= 8  # probability below 1e-4 at five percent each
    assert auditing.rules_out(95, 100, 400, curve=curve, alarm=0.05)


def test_one_run_bounds_stay_below_a_true_epsilon_and_above_zero() -> None:
    """Randomized response of epsilon 2 on every canary: a guess is right with the odds that epsilon allows."""
    rng = np.random.default_rng(6)
    right = [int(rng.binomial(1000, 1 / (1 + np.exp(-2.0)))) for _ in range(50)]
    bounds = [auditing.epsilon_one_run(each, 1000, 1000, alarm=0.01) for each in right]
    assert sum(bound > 2.0 for bound in bounds) <= 4
    assert np.median(bounds) > 1.6


@pytest.mark.parametrize(
    "counts",
    [{"right": 101}, {"right": -1}, {"guessed": 0}, {"canaries": 99}, {"alarm": 0.0}, {"alarm": 2.0}],
    ids=range(6),
)
def test_counts_that_no_run_can_have_bound_nothing(counts: dict[str, Any]) -> None:
    given = {"right": 90, "guessed": 100, "canaries": 100, "alarm": 0.05} | counts
    right, guessed, canaries = (given.pop(name) for name in ("right", "guessed", "canaries"))
    for bound, more in (
        (auditing.epsilon_one_run, {}),
        (auditing.epsilon_one_run_gaussian, {"delta": 1e-5}),
        (auditing.rules_out, {"curve": lambda x: 1 - x}),
    ):
        with pytest.raises(ValueError, match=r"^(right|guessed|canaries|alarm) is "):
            bound(right, guessed, canaries, **given, **more)  # type: ignore[operator]


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_outputs_that_cannot_be_compared_are_no_consistent_audit(odd: float) -> None:
    """An output that only one of the neighbours can have, and that no threshold would find."""

    class Tells:
        unit, event = "one record", events.PureDP(epsilon=0.1)

        def release(self, data: Any = None, rng: Any = None) -> Release[float]:
            return Release(odd if data else 0.0, self.event)

    with pytest.raises(ValueError, match="not a finite number"):
        auditing.audit(Tells(), 0, 1, trials=100, delta=0.0)
    found = auditing.audit(Tells(), 0, 1, trials=400, delta=0.0, read=lambda value: float(np.isfinite(value)))
    assert found.violated


@pytest.mark.parametrize("sides", [(0.0, 1.0), (1.0, 0.0)], ids=["falls", "rises"])
@pytest.mark.parametrize("leak", ["always", "with some noise", "one time in fifty"])
def test_outputs_that_only_one_neighbour_has_are_found_on_either_side(leak: str, sides: tuple[float, float]) -> None:
    """No output of the other neighbour lies beyond the threshold: there is nothing of it to count in a pilot."""

    class Leaks:
        unit, event = "one record", events.PureDP(epsilon=0.1)

        def release(self, data: Any = None, rng: Any = None) -> Release[float]:
            drawn = rng.below(50)
            noisy = {"always": data, "with some noise": data + drawn / 60, "one time in fifty": data * (drawn == 0)}
            return Release(float(noisy[leak]), self.event)

    assert auditing.audit(Leaks(), *sides, trials=4000, delta=0.0, rng=1).violated


# --- no verdict where nothing was compared ---------------------------------------------------------------------------


SMALL = events.PureDP(epsilon=0.1)


@dataclass(frozen=True)
class Says:
    """Gives what it is told to, for a claim of its own."""

    says: Any
    event: events.Event = SMALL
    unit = "one record"

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        return Release(self.says(data, rng), self.event)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (Says(lambda data, rng: 1.0), "the same output on both"),
        (Says(lambda data, rng: "word"), "the same output on both"),
        (Says(lambda data, rng: [0.0] * (1 + rng.below(900))), "neither numbers of one shape"),
        (Says(lambda data, rng: object()), "neither numbers of one shape"),
        (Says(lambda data, rng: [data, math.nan]), "not a finite number"),
        (Says(lambda data, rng: data, events.NonPrivate()), "No epsilon is claimed"),
        (Says(lambda data, rng: data, events.PureDP(epsilon=8.0)), "cannot refute a claim of 8"),
    ],
    ids=range(7),
)
def test_what_cannot_be_judged_has_no_verdict(operation: Says, why: str) -> None:
    with pytest.raises(auditing.CannotJudge, match=why):
        auditing.audit(operation, 0, 1, trials=100, delta=0.0)


def test_one_object_is_not_two_neighbours_and_an_error_is_no_output() -> None:
    rows = [1.0, 2.0]
    with pytest.raises(auditing.CannotJudge, match="same object"):
        auditing.audit(Says(lambda data, rng: 0.0), rows, rows, trials=100)

    def fails(data: Any, rng: Any) -> Any:
        raise RuntimeError("not released")

    with pytest.raises(RuntimeError, match="not released"):
        auditing.audit(Says(fails), 0, 1, trials=100, delta=0.0)


def test_a_cost_that_depends_on_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="different costs"):
        auditing.audit(lambda n: mechanisms.Laplace(sensitivity=1.0, epsilon=1.0 + n), 0, 1, trials=100)


@pytest.mark.parametrize(
    "says",
    [
        lambda data, rng: {"a": rng.below(1000), "b": 1} if data else {"a": rng.below(1000)},  # a key that appears
        lambda data, rng: {0.0 if data else -0.0: rng.below(1000)},  # the way in which one is written
        lambda data, rng: "many" if data else "few",
        lambda data, rng: (rng.below(1000), rng.below(1000), bool(data)),  # one entry among noise
        lambda data, rng: frozenset({data, 7}),
    ],
    ids=["key", "sign", "words", "entry", "set"],
)
def test_whatever_shape_a_leak_has_it_is_found(says: Any) -> None:
    assert auditing.audit(Says(says), 0, 1, trials=200, delta=0.0, rng=4).violated


def test_what_a_pilot_chooses_is_not_counted() -> None:
    """Pure noise of many dimensions and outcomes, at 90 %: of 60 audits more than 15 alarms have chance below 1e-3."""
    alarms = 0
    for seed in range(60):
        noise = Says(lambda data, rng: [rng.below(5), rng.below(5)], events.PureDP(epsilon=1e-9))
        alarms += auditing.audit(noise, 0, 1, trials=200, delta=0.0, confidence=0.9, rng=seed).violated
    assert alarms <= 15


def test_a_plain_function_is_audited_against_the_event_that_is_claimed_of_it() -> None:
    """A true claim survives, and half of the noise that was claimed is refuted."""

    def noisy(scale: float) -> Any:
        return lambda total, rng: round(total + rng.laplace(scale=scale), 3)

    claim = events.PureDP(epsilon=1.0)
    honest = auditing.audit(noisy(1.0), 0.0, 1.0, claim=claim, trials=4000, delta=0.0, rng=2)
    halved = auditing.audit(noisy(0.5), 0.0, 1.0, claim=claim, trials=4000, delta=0.0, rng=2)
    assert (honest.violated, halved.violated) == (False, True)
    assert honest.claimed == 1.0


def test_noise_that_is_added_in_floats_is_refuted_by_its_last_bits() -> None:
    """Enough noise, but 0.0 and 1.0 leave other bits in the sum (Mironov 2012)."""
    audit = auditing.audit(
        lambda total, rng: total + rng.laplace(scale=1.0),
        0.0,
        1.0,
        claim=events.PureDP(epsilon=1.0),
        trials=4000,
        delta=0.0,
        rng=1,
    )
    assert audit.violated
    assert "bits" in audit.method


def test_two_sides_of_a_plain_function_have_streams_of_their_own_that_a_seed_repeats() -> None:
    drawn: list[float] = []
    trials = 200

    def noisy(total: float, rng: np.random.Generator) -> float:
        drawn.append(rng.normal())
        return total + drawn[-1]

    for _ in range(2):
        auditing.audit(noisy, 0.0, 9.0, claim=events.PureDP(epsilon=0.1), trials=trials, delta=0.0, rng=3)
    assert drawn[: 2 * trials] == drawn[2 * trials :]
    assert len(set(drawn)) == 2 * trials


@pytest.mark.parametrize(
    ("operation", "claim"),
    [
        (mechanisms.Laplace(sensitivity=1.0, epsilon=1.0), events.PureDP(epsilon=1.0)),
        (lambda data, rng: data, 1.0),
        ("mean", events.PureDP(epsilon=1.0)),
    ],
)
def test_a_claim_goes_with_a_function_and_is_an_event(operation: Any, claim: Any) -> None:
    with pytest.raises(ValueError, match="claim"):
        auditing.audit(operation, 0.0, 1.0, claim=claim, delta=0.0)


def test_an_audit_that_tells_nothing_apart_says_that_it_could_not_judge() -> None:
    """Laplace noise of scale a million: the honest sentence is not that the claim is consistent."""
    found = auditing.audit(mechanisms.Laplace(sensitivity=1.0, scale=1e6), 0.0, 1.0, trials=400, delta=0.0, rng=1)
    assert found.saw_nothing
    assert found.verdict.startswith("Could not judge")
