"""A logical batch in pieces of at most so many rows, each of which a loop meets as a batch of its own.

Where a unit may bring several records, a piece holds whole units, so that each is clipped as one. A unit that is larger
than a piece has pieces of its own, and is clipped when the last of them has come.

A loop may count what it meets: a learning rate by hand, an average of weights, a progress bar. How many records a batch
has may be private, so the number of its pieces is not made of that: ``enough`` of them, a public number, come for every
batch, the last ones empty. A batch that needs more, which hardly ever happens, has larger ones.

Decision 413.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from discreet.errors import extra
from discreet.training.gradients.units import Owners

with extra("torch"):
    import torch

__all__ = ["PLACEHOLDER", "Piece", "dealt", "enough", "pieces", "what_made_up_records_judge"]

PLACEHOLDER = -1


@dataclass(frozen=True, slots=True)
class Piece:
    """Records by their index, placeholders too, and whose they are; none: each is a unit."""

    rows: list[int]
    owners: Owners | None = None


def pieces(drawn: list[int], owners: Sequence[int] | None, wanted: int, size: int | None) -> list[Piece]:
    """The records of a step, filled up to as many as are ``wanted``, in pieces of at most ``size``.

    ``owners`` names the unit of each record, the records of one after another.

    >>> [piece.rows for piece in pieces([3, 5, 8], None, 4, 2)]
    [[3, 5], [8, -1]]
    >>> [piece.rows for piece in pieces([3, 5, 8, 9], [0, 1, 1, 2], 1, 2)]
    [[3], [5, 8], [9]]
    """
    if owners is not None and drawn:
        return list(_of_units(drawn, owners, size or len(drawn)))
    filled = drawn + [PLACEHOLDER] * (wanted - len(drawn))
    size = size or len(filled)
    nobody = None if owners is None else Owners(torch.full((len(filled[:size]),), -1))
    return [Piece(filled[i : i + size], nobody) for i in range(0, len(filled), size)]


def enough(units: int, rows: int, size: int | None, ranks: int) -> int:
    """The pieces that a batch of so many units needs at most, each of so many rows at most, shared by ranks.

    >>> enough(285, 1, 64, 1), enough(30, 20, 64, 1), enough(30, 100, 64, 2), enough(285, 1, None, 1)
    (5, 10, 30, 1)
    """
    if size is None:
        return 1
    own = -(-units // ranks)
    return -(-own // (size // rows)) if rows <= size else own * -(-rows // size)


def dealt(
    drawn: list[int],
    owners: Sequence[int] | None,
    static: int,
    size: int | None,
    rank: int,
    ranks: int,
    number: int | None = None,
) -> list[Piece]:
    """The pieces of one of several ranks: units are dealt to them in turn, and all have as many pieces, ``number`` if
    that is given.

    >>> [piece.rows for piece in dealt([3, 5, 8], None, 0, 1, 1, 2)]
    [[5], [-1]]
    >>> [piece.rows for piece in dealt([3, 5, 8, 9], [0, 1, 1, 2], 0, None, 1, 2)]
    [[5, 8]]
    >>> [[piece.rows for piece in dealt(drawn, None, 0, 2, 0, 1, number=2)] for drawn in ([3], [3, 5, 8, 9, 10])]
    [[[3], [-1]], [[3, 5, 8, 9], [10]]]
    """
    wanted = max(1, -(-static // ranks))
    whose = range(len(drawn)) if owners is None else owners
    turns = [turn for turn, (_, group) in enumerate(groupby(whose)) for _ in group]

    def share(of: int, size: int | None) -> list[Piece]:
        mine = [place for place, turn in enumerate(turns) if turn % ranks == of]
        return pieces(
            [drawn[place] for place in mine], None if owners is None else [owners[i] for i in mine], wanted, size
        )

    each = [share(of, size) for of in range(ranks)]
    while number is not None and size is not None and max(map(len, each)) > number:
        size *= 2
        each = [share(of, size) for of in range(ranks)]
    nothing = Piece([PLACEHOLDER], None if owners is None else Owners(torch.full((1,), -1)))
    return each[rank] + [nothing] * (max(number or 0, *map(len, each)) - len(each[rank]))


def _of_units(drawn: list[int], owners: Sequence[int], size: int) -> Iterator[Piece]:
    waiting: list[list[int]] = []
    for owner, group in groupby(zip(drawn, owners, strict=True), key=lambda pair: pair[1]):
        rows = [row for row, _ in group]
        if waiting and sum(map(len, waiting)) + len(rows) > size:
            yield _whole(waiting)
            waiting = []
        if len(rows) <= size:
            waiting.append(rows)
            continue
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            yield Piece(part, Owners(torch.zeros(len(part), dtype=torch.long), owner, start + size < len(rows)))
    if waiting:
        yield _whole(waiting)


def _whole(units: list[list[int]]) -> Piece:
    of = [number for number, rows in enumerate(units) for _ in rows]
    return Piece([row for rows in units for row in rows], Owners(torch.tensor(of)))


def what_made_up_records_judge(batch_size: int, records_per_unit: int, size: int | None) -> str:
    """What verification cannot compare with the rest of its piece, in words for the account; empty: nothing.

    >>> what_made_up_records_judge(64, 1, 1)
    'pieces of one record are verified on made-up records alone'
    """
    if records_per_unit == 1 and min(batch_size, size or batch_size) == 1:
        return "pieces of one record are verified on made-up records alone"
    if size is not None and records_per_unit > size:
        return "units larger than a piece are verified on made-up records alone"
    return "batches of one unit are verified on made-up records alone" if batch_size == 1 else ""
