"""Teacher discriminators: many small networks side by side, each of which sees its own part of the records alone.

Their weights are stacked, and every sum runs inside one teacher: products of stacked matrices, entries of Adam. So what
a teacher says is a function of its own part, its public coins and the generated rows; the shapes, which the arithmetic
could depend on, are public. A record's teacher is that of ``partition``. A part is drawn from with replacement, by
public coins: no amplification is claimed. A teacher without records, or whose arithmetic is no longer finite, casts a
fixed vote, that of its own number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.pate.partition import teacher_of_records

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.nn import functional

__all__ = ["Parts", "TeacherDiscriminators", "cross_with_class", "crossed_width"]


class Parts:
    """The records of each teacher, in the order in which they came; private."""

    def __init__(self, rows: NDArray[np.float32], n_teachers: int, key: bytes) -> None:
        teacher = teacher_of_records(n_teachers, key, rows)
        order = np.argsort(teacher, kind="stable")
        sizes = np.bincount(teacher, minlength=n_teachers)
        self._sizes = torch.as_tensor(sizes)[:, None]
        self._starts = torch.as_tensor(np.cumsum(sizes) - sizes)[:, None]
        blank = np.zeros((1, rows.shape[1]), np.float32)  # what a teacher without records looks at
        self._rows = torch.as_tensor(np.concatenate([rows[order], blank]))

    @property
    def present(self) -> Tensor:
        """Which teachers have records."""
        return self._sizes[:, 0] > 0

    def batch(self, size: int, chance: torch.Generator) -> Tensor:
        """``size`` records for each teacher, from its own part: (teachers, size, width)."""
        coins = torch.rand(len(self._sizes), size, generator=chance, dtype=torch.float64)
        place = torch.minimum((coins * self._sizes).long(), (self._sizes - 1).clamp(min=0))
        return self._rows[torch.where(self._sizes > 0, self._starts + place, len(self._rows) - 1)]


class TeacherDiscriminators:
    """``n_teachers`` networks of one hidden layer that tell records from generated rows; private.

    Of ``classes``, the last entries of a row, each has weights of its own.
    """

    def __init__(
        self, parts: Parts, n_teachers: int, width: int, classes: int, hidden: int, lr: float, chance: torch.Generator
    ) -> None:
        self._parts, self._classes, self._chance = parts, classes, chance
        width = crossed_width(width, classes)
        self._first = _weights((n_teachers, width, hidden), width, chance)
        self._shift = torch.zeros(n_teachers, 1, hidden, requires_grad=True)
        self._last = _weights((n_teachers, hidden, 1), hidden, chance)
        self._optimizer = torch.optim.Adam([self._first, self._shift, self._last], lr=lr, betas=(0.5, 0.99))
        self._number = torch.arange(n_teachers)

    def _scores(self, rows: Tensor) -> Tensor:
        """How much each teacher takes each row for a record: (teachers, rows)."""
        seen = cross_with_class(rows, self._classes)
        return (functional.leaky_relu(seen @ self._first + self._shift, 0.2) @ self._last)[..., 0]

    def learn(self, made: Tensor, size: int) -> None:
        """One step of each teacher: its own records against generated rows."""
        real = self._scores(self._parts.batch(size, self._chance))
        fake = self._scores(made.detach())
        loss = functional.softplus(-real).mean(dim=1) + functional.softplus(fake).mean(dim=1)
        self._optimizer.zero_grad()
        loss.sum().backward()  # type: ignore[no-untyped-call]  # each teacher's loss has its own weights only
        self._optimizer.step()

    def votes(self, made: Tensor) -> NDArray[np.int64]:
        """Whether each teacher takes each row for a record: (teachers, rows), of 0 and 1."""
        with torch.no_grad():
            scores = self._scores(made)
        return self._valid((scores > 0).long(), scores, 2)

    def pulls(self, made: Tensor, learnt: int, axes: Tensor, edges: Tensor) -> NDArray[np.int64]:
        """In which bin lies the coordinate, along each axis, of the direction in which a row would look more like a
        record to a teacher: (teachers, rows · axes).

        The direction is the gradient of log D at the row's first ``learnt`` entries, scaled by its own length so that a
        coordinate is about standard normal.
        """
        rows = made.detach().expand(len(self._number), *made.shape).clone().requires_grad_()
        (found,) = torch.autograd.grad(-functional.softplus(-self._scores(rows)).sum(), rows)
        found = found[..., :learnt]
        length = found.norm(dim=2, keepdim=True)
        along = (found / length) @ axes * learnt**0.5
        bins = torch.bucketize(along, edges)
        return self._valid(bins.flatten(1), along.flatten(1), len(edges) + 1)

    def _valid(self, votes: Tensor, told: Tensor, options: int) -> NDArray[np.int64]:
        fixed = (self._number % options)[:, None]
        usable = torch.isfinite(told) & self._parts.present[:, None]
        return np.asarray(torch.where(usable, votes, fixed).numpy(), np.int64)


def cross_with_class(rows: Tensor, classes: int) -> Tensor:
    """Rows as discriminators look at them: the other entries at the place of their class, so that a class has weights
    of its own; as they are, if there are no classes.
    """
    if not classes:
        return rows
    entries, kind = rows[..., :-classes], rows[..., -classes:]
    return torch.cat([(kind[..., :, None] * entries[..., None, :]).flatten(-2), kind], dim=-1)


def crossed_width(width: int, classes: int) -> int:
    """How many entries ``cross_with_class`` gives."""
    return (width - classes + 1) * classes if classes else width


def _weights(shape: tuple[int, ...], inside: int, chance: torch.Generator) -> Tensor:
    start: Tensor = torch.randn(shape, generator=chance) * inside**-0.5
    return start.requires_grad_()
