r"""Federated training on the server: who is asked in a round, what is added up, what is released.

A client trains by itself and sends how the model moved. Its update is clipped, the updates are added up without
weights, and noise is put on the sum, which is divided by a public number of clients:

.. math:: w \leftarrow w + \eta\,\frac{\sum_k \mathrm{clip}(\Delta_k) + \mathrm{noise}}{\text{clients a round}}

With independent noise that is DP-FedAvg (McMahan et al. 2018), with correlated noise DP-FTRL (Kairouz et al. 2021). One
that does not answer, or answers nonsense, adds nothing; noise and divisor stay as they are. No engine is needed here:
``integrations.flower`` brings these rounds to Flower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting
from discreet.errors import extra, number, positive, whole
from discreet.random import RngLike, Streams
from discreet.release import Chargeable, Enforced, pay, unit_name
from discreet.sessions import PaidOnce, one_at_a_time
from discreet.training.errors import PrivateTrainingError
from discreet.training.gradients import Clipping
from discreet.training.noise import Independent, Noise
from discreet.training.noise.base import Gaussians, Step, shown
from discreet.training.noise.independent import gaussian
from discreet.training.plan import Plan
from discreet.training.planning import least_noise
from discreet.training.sampling import FixedSize, Indices, Sampler, TruncatedPoisson
from discreet.training.sampling.users import PerUser

with extra("torch"):
    import torch

__all__ = ["Federation", "clipped_update"]

ROUNDED = 1 + 2.0**-40  # of the clip norm, in double precision
Arrays = Sequence[NDArray[Any]]


def clipped_update(update: Arrays, max_norm: float) -> list[NDArray[np.float64]]:
    """An update at most ``max_norm`` long, in double precision; zeros in place of one that is not finite.

    >>> clipped_update([np.array([3.0]), np.array([4.0])], 1.0)
    [array([0.6]), array([0.8])]
    """
    parts = [np.asarray(part, np.float64) for part in update]
    with np.errstate(all="ignore"):  # what overflows is not finite
        squares = [float(np.square(part.ravel()).sum()) for part in parts]  # in pairs: a long one is not measured short
    length = math.sqrt(math.fsum(squares)) if all(map(math.isfinite, squares)) else math.inf
    if not math.isfinite(length):
        return [np.zeros_like(part) for part in parts]
    return [part * min(1.0, max_norm / length) for part in parts] if length else parts


class Federation(PaidOnce):
    """Private rounds over clients: a plan, charged before the first client is asked, and what a round releases.

    ``clients`` is the public number of them, of which a round asks ``clients_per_round``. ``sampler`` says how: a
    uniform choice of so many unless another is given (``FixedSize``, as engines do it: neighbours differ in a client
    that is replaced), or the one that correlated noise is proved with. The noise is given, or follows from ``epsilon``
    and ``delta``. A book is charged in the unit ``name``.

    Guarantee: after any number of rounds the model is as private as ``event`` says, for one client with all they hold,
    towards whoever does not see the server: the server itself sees updates, and knows who was asked.

    >>> rounds = Federation(clients=100, clients_per_round=10, rounds=5, noise_multiplier=2.0)
    >>> rounds.plan.adjacency.value, rounds.unit
    ('replace', 'client')
    """

    def __init__(
        self,
        *,
        clients: int,
        clients_per_round: int,
        rounds: int,
        max_norm: float = 1.0,
        epsilon: float | None = None,
        delta: float | None = None,
        noise_multiplier: float | None = None,
        noise: Noise | None = None,
        sampler: type[Sampler] | Sampler | None = None,
        lr: float = 1.0,
        momentum: float = 0.0,
        name: str = "client",
        book: Chargeable | None = None,
        label: str = "federated training",
        rng: RngLike = None,
    ) -> None:
        super().__init__()
        self.lr, self.momentum = positive("lr", lr), number("momentum", momentum, low=0, high=1, open_high=True)
        drawn = _sampler(
            sampler, noise, whole("clients_per_round", clients_per_round, low=1), whole("clients", clients)
        )
        clipping, unit = Clipping(max_grad_norm=max_norm), Enforced(unit_name(name))

        def plan(z: float) -> Plan:
            return Plan(drawn, clipping, z, whole("rounds", rounds, low=1), noise or Independent(), unit=unit)

        self.plan = plan(_multiplier(plan, epsilon, delta, noise_multiplier))
        self.plan.event  # noqa: B018 - what has no price is refused here
        self.steps = 0  # rounds that were released
        self._book, self._label, self._streams = book, label, Streams(rng)
        self._noise = self.plan.noise.begun(self.plan.participation, self.plan.steps)
        self._clients: list[int] | None = None  # once they are known
        self._asked: set[int] | None = None  # in the current round
        self._pass: tuple[int, Indices | None] = (-1, None)
        self._velocity: list[NDArray[np.float64]] | None = None

    @property
    def event(self) -> Any:
        """The price of all rounds."""
        return self.plan.event

    @property
    def unit(self) -> str:
        """Whom it protects: a client, whose update is clipped."""
        return self.plan.unit

    @property
    def max_norm(self) -> float:
        """The clip norm."""
        return self.plan.clipping.max_grad_norm

    def epsilon(self, delta: float) -> float:
        """Epsilon of all rounds at delta, for the sampler's adjacency."""
        return accounting.epsilon(self.event, delta, adjacency=self.plan.adjacency)

    # --- a round ---------------------------------------------------------------------------------------------------

    @one_at_a_time
    def ask(self, connected: Iterable[int], arrays: Arrays) -> list[int]:
        """The clients that the next round asks to train ``arrays``; the first time, the plan is charged before.

        Who may take part is settled then: one that comes later takes no part, one that left adds nothing.
        """
        self.plan.check(self.steps)
        here = sorted(set(connected))
        if self._clients is None:
            _check_arrays(arrays)
            self._check_clients(len(here))
            pay(self.plan, self._book, self._label, reproducible=self._streams.reproducible)
            self._clients = here
        sampler, step, keys = self.plan.sampler, self.steps, self._clients
        drawn = sampler.draw(step, len(keys), keys, self._order(step), self._streams.sampling(step))
        self._asked = {keys[i] for i in drawn.tolist()}
        return sorted(self._asked & set(here))

    def _check_clients(self, connected: int) -> None:
        sampler = self.plan.sampler
        if connected < sampler.dataset_size:
            raise ValueError(
                f"Fewer clients are connected than clients={sampler.dataset_size} declares, and the price of a round "
                "assumes that many: wait for more, or declare fewer."
            )
        sampler.check(connected)

    def _order(self, step: int) -> Indices | None:
        sampler = self.plan.sampler
        turn = 0 if sampler.kept else step // sampler.steps_per_pass
        if sampler.passes and self._pass[0] != turn:
            assert self._clients is not None
            self._pass = turn, sampler.order(self._clients, self._streams.sampling(turn, 1))
        return self._pass[1]

    @one_at_a_time
    def next_arrays(self, arrays: Arrays, replies: Iterable[tuple[int, Arrays]]) -> list[NDArray[Any]]:
        """The model of the next round: ``arrays`` moved by the noisy mean of what clients made of them.

        Of each client that was asked one reply counts; one of other shapes, or that is not finite, adds nothing.
        """
        if self._asked is None:
            raise PrivateTrainingError("There is no round to release: ask clients first, and release each round once.")
        waiting, self._asked = self._asked, None
        total = [np.zeros(part.shape) for part in arrays]
        for client, reply in replies:
            if client in waiting and _fits(reply, arrays):
                waiting.discard(client)
                moved = [
                    np.asarray(new, np.float64) - np.asarray(old, np.float64)
                    for new, old in zip(reply, arrays, strict=True)
                ]
                for part, update in zip(total, clipped_update(moved, self.max_norm), strict=True):
                    part += update
        return self._move(arrays, self._release(total))

    def _release(self, total: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Noise on the sum, and the division by a public number."""
        plan, step = self.plan, self.steps
        facts = Step(
            number=step,
            multiplier=plan.multiplier(step),
            sensitivity=self.max_norm * ROUNDED,
            movement=plan.participation.movement,
            divisor=plan.sampler.expected,
        )
        parts = [torch.from_numpy(part) for part in total]
        self.steps = step + 1  # before the noise is drawn: a round that fails afterwards has been paid for
        gaussians, correlated = Gaussians(self._streams.noise(step)), self._noise.correlated
        shown(
            f"clipped updates, noise multiplier {facts.multiplier:.6g}, sensitivity {facts.sensitivity:.6g}",
            parts,
            facts.limit,
            lambda: self._noise.release(facts, parts, gaussians),
            event=plan.event if correlated else gaussian(facts.sigma, facts.limit),
            once=self if correlated else None,
        )
        return [part.numpy() for part in parts]

    def _move(self, arrays: Arrays, mean: list[NDArray[np.float64]]) -> list[NDArray[Any]]:
        if self._velocity is not None:
            mean = [new + self.momentum * old for new, old in zip(mean, self._velocity, strict=True)]
        self._velocity = mean if self.momentum else None
        return [(part + self.lr * update).astype(part.dtype) for part, update in zip(arrays, mean, strict=True)]


def _multiplier(
    plan: Callable[[float], Plan], epsilon: float | None, delta: float | None, noise_multiplier: float | None
) -> float:
    if noise_multiplier is not None and epsilon is None and delta is None:
        return positive("noise_multiplier", noise_multiplier)
    if noise_multiplier is not None or epsilon is None or delta is None:
        raise ValueError("Give noise_multiplier, or epsilon and delta: the noise follows from them.")
    return least_noise(plan, plan(1.0).participation, epsilon, delta)


def _sampler(sampler: type[Sampler] | Sampler | None, noise: Noise | None, each: int, clients: int) -> Sampler:
    if not isinstance(noise, Noise | None):
        raise ValueError(f"noise is a {type(noise).__name__}, but must be a Noise, such as noise.Independent().")
    if each > clients:
        raise ValueError(f"clients_per_round is {each}, but there are {clients} clients.")
    if sampler is None and noise is not None and noise.correlated:
        return noise.sampler(each, clients)
    kind = FixedSize if sampler is None else sampler
    made = kind(batch_size=each, dataset_size=clients) if isinstance(kind, type) else kind
    if not isinstance(made, Sampler) or isinstance(made, TruncatedPoisson):
        raise ValueError(
            f"sampler is a {type(made).__name__}, but must be FixedSize, Poisson or another that is not cut."
        )
    if (made.batch_size, made.dataset_size) != (each, clients):
        raise ValueError(
            "sampler has another batch_size or dataset_size than clients_per_round and clients: say it once."
        )
    if isinstance(made, PerUser):
        raise ValueError("sampler draws users with several records, but a client is one: use Poisson, or KeptBins.")
    return made


def _check_arrays(arrays: Arrays) -> None:
    """Refuse a model that noise cannot be put on; only types are looked at."""
    kinds = sorted({str(part.dtype) for part in arrays if part.dtype.kind != "f"})
    if kinds or not arrays:
        raise ValueError(
            f"The model has arrays of {', '.join(kinds) or 'nothing'}, but must have real ones: each is noised. Keep "
            "counters (of BatchNorm, say) out of what is sent."
        )


def _fits(reply: Arrays, arrays: Arrays) -> bool:
    return len(reply) == len(arrays) and all(
        new.shape == old.shape and new.dtype.kind in "fiu" for new, old in zip(reply, arrays, strict=True)
    )
