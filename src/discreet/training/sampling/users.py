"""Users who bring several records: how they are drawn, and how many of their records are taken.

Neighbours differ in one user with all their records. The gradient of a sampled user is the sum over their records, and
that sum is clipped: a user moves a step by at most the clip norm, however many records they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet.adjacency import Adjacency
from discreet.encoding.columns import identities
from discreet.errors import whole
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_container
from discreet.random import Rng
from discreet.release import Enforced, unit_name
from discreet.statistics import Quantile
from discreet.training.sampling import BallsInBins, Indices, KeptBins, Poisson, Sampler
from discreet.training.sampling.participation import Participation

__all__ = ["PerUser", "RecordsPerUser"]

LAWS: Mapping[str, type[Sampler]] = {"poisson": Poisson, "balls-in-bins": BallsInBins, "kept-bins": KeptBins}
"""How users may be drawn: each by a chance of their own, so that one who comes or goes moves no other."""


def _check(users: Any) -> None:
    """Refuse, by type and shape alone, what is no column of users."""
    check_container(users)
    if getattr(users, "ndim", 1) != 1:
        raise ValueError("users has several dimensions, but must have one: a user for each record.")


def _by_user(users: Any) -> tuple[list[object], Indices, Indices]:
    """The users, their records one user after another, and where each user's begin."""
    known = identities(users)  # one by one: no user decides how another is told, and missing ones are one
    names: list[object] = [*sorted(known.words), *([None] if (known.at < 0).any() else [])]
    place = {name: i for i, name in enumerate(names)}
    of = np.array([place[None if at < 0 else known.words[at]] for at in known.at.tolist()], np.int64)
    by_user = np.argsort(of, kind="stable")
    return names, by_user, np.searchsorted(of[by_user], np.arange(len(names) + 1))


@dataclass(frozen=True, kw_only=True)
class PerUser(Sampler):
    """Batches of users. Neighbours differ in one user with all their records.

    ``users`` names the user of each record; ``dataset_size`` and ``batch_size`` count users. ``law`` says how users are
    drawn. A sampled user brings at most ``records_per_user`` of their records, chosen at random, and the sum of their
    gradients is clipped. A book is charged in the unit ``name``.

    >>> PerUser(batch_size=2, dataset_size=10, users=["a", "a", "b"], records_per_user=5).rate
    0.2
    """

    users: Any = field(repr=False, compare=False, default=())
    records_per_user: int = 1
    name: str = "user"
    law: Literal["poisson", "balls-in-bins", "kept-bins"] = "poisson"
    canaries: int = field(default=0, repr=False)  # of an audit: users of one record each, after all others

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("records_per_user", self.records_per_user, low=1)
        unit_name(self.name)
        if self.law not in LAWS:
            raise ValueError(f"law is {self.law!r}, but must be one of {', '.join(map(repr, LAWS))}.")
        object.__setattr__(self, "passes", self._law.passes)
        object.__setattr__(self, "kept", self._law.kept)

    @cached_property
    def _law(self) -> Sampler:
        return LAWS[self.law](batch_size=self.batch_size, dataset_size=self.dataset_size)

    @property
    def unit(self) -> str:
        """The user, whose records the sampler bounds."""
        return Enforced(self.name)

    def check(self, records: int) -> None:
        """Each record needs a user."""
        _check(self.users)
        if len(self.users) + self.canaries != records:
            raise ValueError("users does not name one user for each record.")

    def with_canaries(self, count: int) -> PerUser:
        """Each is a user of its own, of one record, whatever users are called."""
        size = self.dataset_size + count
        return replace(self, dataset_size=size, canaries=self.canaries + count)

    @cached_property
    def _groups(self) -> tuple[list[object], Indices, Indices]:
        names, by_user, ends = _by_user(self.users)
        extra = np.arange(self.canaries)
        own = [("canary", number) for number in extra.tolist()]
        return [*names, *own], np.concatenate([by_user, len(by_user) + extra]), np.append(ends, ends[-1] + 1 + extra)

    @cached_property
    def _owner(self) -> Indices:
        """The number of the user of each record."""
        names, by_user, ends = self._groups
        owners = np.empty(len(by_user), np.int64)
        owners[by_user] = np.repeat(np.arange(len(names)), np.diff(ends))
        return owners

    @property
    def expected(self) -> float:
        """The mean number of users in a batch."""
        return self._law.expected

    @property
    def rows_per_unit(self) -> int:
        """Those of a user."""
        return self.records_per_user

    @property
    def participation(self) -> Participation:
        """How users take part."""
        return self._law.participation

    def order(self, keys: Sequence[object], rng: Rng) -> Indices | None:
        """What is drawn for a whole pass, of users."""
        return self._law.order(self._groups[0], rng)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Users, then a choice among the records of each; one user after another."""
        names, by_user, ends = self._groups
        records = []
        for user in self._law.draw(step, len(names), names, order, rng):
            own = by_user[ends[user] : ends[user + 1]]
            if len(own) > self.records_per_user:
                own = np.sort(rng.generator.choice(own, self.records_per_user, replace=False))
            records.append(own)
        return np.concatenate(records) if records else np.empty(0, np.int64)

    def owners(self, drawn: Indices) -> Indices:
        """The user of each record of a batch."""
        return self._owner[drawn]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPerUser(Mechanism[int]):
    """A cap on the records of a user: about a share ``q`` of users have no more, between 1 and ``largest``.

    Its data is the user of each record, as ``PerUser`` takes it. Any cap is as private as another, because the sum of a
    user's gradients is clipped; a good one loses little data, and keeps batches small.

    Guarantee: each user is one count, so this is a ``Quantile`` of users, of range ε; add-remove of one user.

    >>> users = [name for name in range(1000) for _ in range(1 + name % 20)]
    >>> RecordsPerUser(q=0.9, largest=100, epsilon=1.0).release(users, rng=1).value
    19
    """

    q: float = 0.9
    largest: int
    epsilon: float
    name: str = "user"
    unit: str = field(init=False, default="user", repr=False)  # bounded here, so it is nobody else's word

    label = "records per user"

    def __post_init__(self) -> None:
        store(self, largest=whole("largest", self.largest, low=2))
        object.__setattr__(self, "unit", Enforced(unit_name(self.name)))
        _ = self.event

    @property
    def quantile(self) -> Quantile:
        """The choice among 1, ..., ``largest``."""
        bounds, steps = (1.0, float(self.largest)), self.largest - 1
        return Quantile(q=self.q, bounds=bounds, steps=steps, epsilon=self.epsilon, adjacency=Adjacency.ADD_REMOVE)

    @property
    def event(self) -> Any:
        """The cost, known from public facts alone."""
        return self.quantile.event

    def error(self, confidence: float = 0.95) -> float:
        """By how many users the rank of the answer may miss q·n, with at least this confidence."""
        return self.quantile.error(confidence)

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return self.error()

    def check(self, data: Any) -> None:
        """Refuse what is no column of users."""
        _check(data)

    def draw(self, data: Any, rng: Rng) -> int:
        """The noisy quantile of how many records users have."""
        *_, ends = _by_user(data)
        return round(self.quantile.draw(np.diff(ends), rng))
