r"""What a private pass draws by itself: dropout, stochastic depth, augmentation, Gumbel noise, a VAE's sample.

From before a batch is fetched until its step is over, the process's generators have states from the run's stream of
chance: secret, in no checkpoint, and no seed of the user's. Before and after they are the user's own, as they were.

Why they must be secret. Torch draws the masks of a batch row after row. A record that leaves gives all later rows other
masks, so for known masks the clipped sum moves by many clip norms, where one is paid for.

Why that is enough. Let :math:`m_i` be what is drawn for record i, and :math:`s` what is drawn for all alike. They are
independent of each other and of the data, and every :math:`m_i` has the same law, wherever its record stands. Then the
law of a step on D is the mixture :math:`P = \mathbb{E}_{s, m}\,P_{s,m}`, and on D without record j it is
:math:`Q = \mathbb{E}_{s, m}\,Q_{s, m}`, where :math:`Q_{s,m}` does not look at :math:`m_j`: the rows that are left have
masks of the same joint law, whatever rows they moved to. For each (s, m) the two clipped sums differ by record j's part
alone, at most the clip norm, so that :math:`P_{s,m}` and :math:`Q_{s,m}` are as far apart as the plan pays for.
Hockey-stick divergences, and with them trade-off curves and Rényi divergences, are jointly (quasi-)convex: so are P and
Q. (For Poisson batches the same holds given the coins, for the sensitivity of each; steps compose as always, since each
has a chance of its own.)

It needs what verification asks of a model in any case: that a record's gradient does not depend on the others, or on
its row. Generators that dataset, collate function and model hold (``self.rng = np.random.default_rng(0)``) are
keyed too, where they are found (``random.held``). Not covered is what makes a record's chance from its number
(``random.Random(index)``), for numbers shift when a record leaves. The generators of torch, NumPy and Python are not
cryptographic, but all of their state is secret, and nobody sees what they draw without noise.

Under ``rng=`` a pass draws from the seed's stream of its step and piece, so that a run that is resumed draws the same;
without it, a run that is resumed draws anew, which changes no law.

Decision 412.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.random import Rng, Streams, system
from discreet.random.held import generators_in, key_each
from discreet.random.process import SecretStates, States, key_all, was_seeded
from discreet.training.errors import PrivateTrainingError

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Chance", "WorkerChance"]

SEEDED = (
    "torch was seeded between a batch and its step, so whoever knows the seed knows what was drawn for each record "
    "(dropout, augmentation), and that is no longer private. Seed before the loop, or after step."
)
LEFT = (
    "The loop over the private loader was left before the step of its last batch, and something was drawn since "
    "(dropout, augmentation), from the process's own generators: whoever knows their seed knows what was drawn for "
    "each record. Take batches from an iterator that is kept: batches = iter(loader); x, y = next(batches)."
)


class Chance:
    """The chance of one run's passes."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.secret = not streams.reproducible  # whether nobody may know it: there is no seed
        self._left: States | None = None  # of the user's generators, when a loop was left with a batch out
        self._held: list[Any] = []  # generators that the user's objects hold
        self._put_back: Callable[[], None] | None = None

    def begin(self, step: int, piece: int) -> None:
        """A piece of a batch is about to be fetched: from now on chance is the run's."""
        if self._put_back is not None:
            self.end_held()
        self._left, rng = None, self._streams.chance(step, piece)
        _GENERATORS.take(self, rng)
        if self._held:
            self._put_back = key_each(self._held, rng)

    def look_into(self, *holders: Any) -> None:
        """Find the generators of these objects, to be keyed in every pass."""
        self._held = generators_in(*holders)

    def end(self) -> None:
        """The piece had its step, or will have none."""
        self.end_held()
        _GENERATORS.give_back(self)

    def end_held(self) -> None:
        """Generators of the user's objects go on where they were."""
        if self._put_back is not None:
            self._put_back()
            self._put_back = None

    def leave(self) -> None:
        """The loop is left, and its last batch may yet have its step: then nothing may have been drawn since."""
        self.end()
        self._left = States.now()

    def for_workers(self, step: int, then: Callable[[int], None] | None, *holders: Any) -> WorkerChance:
        """That of the processes that fetch the records of a loop, by what these objects do."""
        return WorkerChance(None if self.secret else self._streams.chance(step, 0, 1).word(), then, holders)

    @property
    def users_state(self) -> Tensor:
        """Where torch's generator on the processor goes on after the pass."""
        return _GENERATORS.users_torch() if self.held else torch.get_rng_state()

    @property
    def held(self) -> bool:
        """Whether the generators have this run's chance."""
        return _GENERATORS.held_by(self)

    def refuse(self) -> None:
        """Refuse a step whose records somebody else's chance may have met."""
        if not self.secret:
            return
        if self.held:
            if _GENERATORS.seeded:
                raise PrivateTrainingError(SEEDED)
        elif self._left is None or not self._left.same_as(States.now()):
            raise PrivateTrainingError(LEFT)


@dataclass(slots=True)
class WorkerChance:
    """Keys the generators of a process that fetches records, after ``then``: torch gives such a process 32 bits of
    secret, and what users call there may give it a seed."""

    key: int | None
    then: Callable[[int], None] | None
    holders: tuple[Any, ...]

    def __call__(self, worker: int) -> None:
        """In the process of this number."""
        if self.then is not None:
            self.then(worker)
        rng = system() if self.key is None else Rng(np.random.SeedSequence(self.key, spawn_key=(worker,)))
        key_all(rng)
        key_each(generators_in(*self.holders), rng)


class _Generators:
    """Whose the process's generators are: the user's, or those of runs whose passes are open.

    Passes of several runs may be open at once, in one thread or in several; the user's states are kept when the first
    is opened and put back when the last is closed. In between, chance has a seed only if all of the runs have.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: list[Chance] = []
        self._users: States | None = None
        self._secret = SecretStates()
        self._tag = 0

    @property
    def seeded(self) -> bool:
        """Whether somebody has seeded torch since a pass was opened."""
        return was_seeded(self._tag)

    def held_by(self, chance: Chance) -> bool:
        """Whether a pass of this run is open."""
        return chance in self._open

    def users_torch(self) -> Tensor:
        """The state of torch's generator that the user will find again."""
        assert self._users is not None
        state: Tensor = self._users.torch[0][1]
        return state

    def take(self, chance: Chance, rng: Rng) -> None:
        """Open a pass, with chance of its own."""
        with self._lock:
            if self._open and self.seeded:  # what was open was left by an error, say, and the user has begun again
                self._open = []
            if not self._open:
                self._users = States.now()
            if chance not in self._open:
                self._open.append(chance)
            if chance.secret:
                self._tag = self._secret.install(rng)
            elif not any(other.secret for other in self._open):
                self._tag = key_all(rng)

    def give_back(self, chance: Chance) -> None:
        """Close a pass. A seed that the user has set in the meantime stays."""
        with self._lock:
            if chance not in self._open:
                return
            self._open.remove(chance)
            if self._open or self._users is None:
                return
            self._secret.retire()
            (self._users.with_seeds_of(States.now()) if self.seeded else self._users).restore()
            self._users = None


_GENERATORS = _Generators()
