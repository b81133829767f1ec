"""Runs that carry canaries: is their bound valid, how near does it come, and what does it catch?
``python -m experiments.audited_runs [--quick] [nulls | honest | tight | broken | picture] [--runs N]``.

*nulls*: what a run releases along its canaries is simulated under its claim, for Poisson batches, bins and correlated
noise: how often the bound on the noise, the bound on the rate or the evidence exceeds the claim (5 % at most).

*honest*: small networks are trained, for every sampler and noise: how often the bound exceeds the claim (5 % at most).

*tight*: the bound over the claim at epsilon = 1, 4, 8, of one run with 500 canaries each.

*broken*: eight broken trainings, and how many of their runs are caught (99 % at least).
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments import _results

LAWS: dict[str, Callable[[], dict[str, Any]]] = {
    "Poisson": dict,
    "Poisson, full batch": lambda: {"sampler": _sampler("Poisson", batch_size=600), "epochs": 12},
    "truncated Poisson": lambda: {"sampler": _sampler("TruncatedPoisson", batch_size=40, max_batch_size=90)},
    "bins": lambda: {"sampler": "balls-in-bins"},
    "shuffled": lambda: {"sampler": "shuffled"},
    "kept bins": lambda: {"sampler": "kept-bins"},
    "fixed order": lambda: {"sampler": "fixed-order"},
    "users": lambda: {"sampler": _users()},
    "λCGD": lambda: {"noise": _noise("LambdaCGD", back=0.5), "noise_multiplier": 2.0},
    "banded": lambda: {"noise": _noise("Banded", bands=4), "noise_multiplier": 2.0},
    "banded, cyclic Poisson": lambda: {
        "noise": _noise("Banded", bands=4),
        "noise_multiplier": 2.0,
        "sampler": _sampler("CyclicPoisson", batch_size=40, parts=4),
    },
    "BLT": lambda: {"noise": _noise("BLT"), "noise_multiplier": 2.0},
    "tree": lambda: {"noise": _noise("Tree"), "noise_multiplier": 2.0},
}


def _sampler(name: str, **facts: Any) -> Any:
    from discreet.training import sampling

    return getattr(sampling, name)(**{"dataset_size": 400} | facts)


def _users() -> Any:
    from discreet.training.sampling.users import PerUser

    users = [number // 4 for number in range(400)]
    return PerUser(batch_size=30, dataset_size=100, users=users, records_per_user=3)


def _noise(name: str, **facts: Any) -> Any:
    from discreet.training import noise

    return getattr(noise, name)(**facts)


def exceeds(watched: Any) -> tuple[bool, bool, bool]:
    """Whether noise, rate or evidence exceed the claim, each at its share of the alarm, without asking for a price."""
    from discreet.auditing.lower_bounds import clopper_pearson
    from discreet.auditing.run_audit import RATE, RATIO, refutes
    from discreet.auditing.shift import ratio_lower_bound

    watched._look()
    alarm, turns = 1 - watched.asked.confidence, watched._processes["turns"]
    steps = len(watched._released) * watched.canaries
    ratio = ratio_lower_bound(watched._product, watched._energy, watched._squares, steps, RATIO * alarm)
    rate = getattr(watched.plan.participation, "rate", None)
    drawn = rate is not None and clopper_pearson(turns.drawn, turns.chances, RATE * alarm)[0] > rate
    return ratio > 1, drawn, bool(refutes(watched.logs, watched.asked.confidence))


def simulated(law: str, seed: int, canaries: int = 60, steps: int = 40) -> tuple[bool, bool, bool]:
    """A run under its claim, in which nothing is trained."""
    import torch

    from discreet import random
    from discreet.auditing import GradientCanaries
    from discreet.mechanisms.factorization.strategy import noise_matrix
    from discreet.training import plan_for
    from discreet.training.noise.base import Step

    asked: dict[str, Any] = {"noise_multiplier": 1.0} | LAWS[law]()
    plan = plan_for(400, 40, **{**asked, "epochs": steps * 40 / 600}, canaries=200)
    watched = GradientCanaries(canaries, halt=False).begin(plan, {"w": torch.zeros(400)}, lambda root: root)
    rng, sampler = np.random.default_rng(seed), plan.sampler
    matrix = None
    if plan.noise.correlated:
        matrix = noise_matrix(plan.noise.strategy(plan.participation, plan.steps))  # type: ignore[attr-defined]
    draws = rng.normal(size=(plan.steps if matrix is None else matrix.shape[1], canaries + 400))
    noise = draws if matrix is None else matrix @ draws
    order: Any = None
    for t in range(plan.steps):
        if sampler.passes and t % sampler.steps_per_pass == 0 and (order is None or not sampler.kept):
            order = sampler.order(range(600), random.seeded(int(rng.integers(2**60))))
        drawn = sampler.draw(t, 600, range(600), order, random.seeded(int(rng.integers(2**60))))
        drawn = drawn[drawn >= 600 - canaries] - (600 - canaries)
        z = plan.multiplier(t)
        released = watched.contributions(drawn).double().numpy() + z * noise[t, :canaries]
        step = Step(number=t, multiplier=z, sensitivity=1.0, movement=plan.participation.movement, divisor=1.0)
        weights = torch.from_numpy(rng.normal() * 3.0 + z * noise[t, canaries:])
        watched.observe(step, drawn, torch.from_numpy(released), [weights])
    return exceeds(watched)


def nulls(runs: int) -> None:
    """Print how often simulated runs exceed their claim."""
    laws = [law for law in LAWS if law not in ("truncated Poisson", "users")]  # those have no other law of canaries
    total = np.zeros(4)
    for law in laws:
        found = np.array([simulated(law, seed) for seed in range(runs // len(laws))])
        any_of = found.any(1)
        total += [len(found), any_of.sum(), found[:, 0].sum(), found[:, 2].sum()]
        parts = ", ".join(
            f"{name} {x:.2%}" for name, x in zip(("noise", "rate", "evidence"), found.mean(0), strict=True)
        )
        print(f"{law:<24} {len(found):>6} nulls: above the claim {any_of.mean():.2%} ({parts})", flush=True)
    print(f"{'all':<24} {int(total[0]):>6} nulls: above the claim {total[1] / total[0]:.2%} (5 % at most)", flush=True)


def honest(runs: int) -> None:
    """Print how often trained runs exceed their claim, and what their bounds reach."""
    from discreet.auditing import CannotJudge, GradientCanaries
    from tests.auditing.broken_trainings import train

    above = judged = 0
    for law, made in LAWS.items():
        shares, alarms, refused = [], 0, 0
        for _ in range(-(-runs // len(LAWS))):
            privacy, stopped = train(audit=GradientCanaries(200, report=None), **made())
            try:
                found = privacy.audit
            except CannotJudge:
                refused += 1
                continue
            alarms += bool(stopped) or found.violated
            shares.append(found.lower / found.claimed)
        above, judged = above + alarms, judged + len(shares)
        middle = np.median(shares) if shares else np.nan
        print(f"{law:<24} {len(shares):>5} runs: {alarms} above the claim; median bound {middle:.2f} of it; "
              f"{refused} not judged", flush=True)  # fmt: skip
    print(f"{'all':<24} {judged:>5} runs: {above / max(judged, 1):.2%} above the claim (5 % at most)", flush=True)


def tight(runs: int) -> None:
    """Print bounds over claims, of one run with 500 canaries."""
    import torch

    from discreet.auditing import GradientCanaries
    from tests.auditing.broken_trainings import train

    models: dict[str, Callable[[], Any]] = {
        "MLP": lambda: None,
        "CNN": lambda: torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, 8)), torch.nn.Conv1d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(48, 2)
        ),
        "transformer": lambda: torch.nn.Sequential(
            torch.nn.Unflatten(1, (4, 2)), torch.nn.TransformerEncoderLayer(2, 1, 8, 0.0, batch_first=True),
            torch.nn.Flatten(), torch.nn.Linear(8, 2)
        ),
    }  # fmt: skip
    for (name, model), epsilon in itertools.product(models.items(), (1.0, 4.0, 8.0)):
        shares, counted = [], []
        for _ in range(runs):
            asked: dict[str, Any] = {"noise_multiplier": None, "epsilon": epsilon, "delta": 1e-5, "epochs": 10}
            privacy, stopped = train(
                audit=GradientCanaries(500, report=None), model=model(), records=10_000, batch_size=200, **asked
            )
            assert not stopped
            found = privacy.audit
            shares.append(found.lower / found.claimed)
            counted.append(found.by_counting().lower / found.claimed)
        print(
            f"{name:<12} ε = {epsilon:g}: median {np.median(shares):.2f} of the claim ({min(shares):.2f} to "
            f"{max(shares):.2f}, {runs} runs); by counting guesses {np.median(counted):.2f}",
            flush=True,
        )


def broken(runs: int) -> None:
    """Print how many broken runs are caught, and after how many of sixty steps."""
    from tests.auditing.broken_trainings import EIGHT

    for name, run in EIGHT.items():
        found = [run() for _ in range(runs)]
        caught = sum(bool(stopped) for _, stopped in found)
        steps = np.median([privacy.steps for privacy, _ in found])
        print(f"{name:<30} {caught} of {runs} stopped, after {steps:g} of 60 steps (median)", flush=True)


def picture(runs: int) -> None:
    """Draw the two trade-off curves of a run at epsilon = 4: ``docs/images/audited-run.png`` with ``--write``."""
    from discreet.auditing import GradientCanaries
    from tests.auditing.broken_trainings import train

    asked: dict[str, Any] = {"noise_multiplier": None, "epsilon": 4.0, "delta": 1e-5, "epochs": 10, "seed": 1}
    privacy, _ = train(audit=GradientCanaries(500, report=None, rng=1), records=10_000, batch_size=200, **asked)
    target = _results.place_of("images", "audited-run.png")
    privacy.audit.plot(target)
    _results.tell(target)


PARTS: dict[str, tuple[Callable[[int], None], int, int]] = {
    "nulls": (nulls, 10_000, 80),
    "honest": (honest, 1000, 14),
    "tight": (tight, 11, 1),
    "broken": (broken, 100, 2),
    "picture": (picture, 1, 1),
}


def main(quick: bool = False) -> None:
    """Print the parts that are named, or all."""
    said = [int(sys.argv[i + 1]) for i, word in enumerate(sys.argv[:-1]) if word == "--runs"]
    for name in [name for name in PARTS if name in sys.argv] or PARTS:
        part, runs, few = PARTS[name]
        started = time.process_time()
        print(f"--- {name}")
        part(said[0] if said else few if quick else runs)
        print(f"({time.process_time() - started:.0f} CPU-seconds)", flush=True)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
