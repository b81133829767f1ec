"""What a collate function may do: put every record in its row, and pad.

It is the user's code, and runs on a whole batch. Run twice with one record replaced, it may change that record's row
only, up to padding. Whether padding has an effect is for verification to see: it runs the record alone as the function
collates it alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.random import seeded
from discreet.random.process import draw_from
from discreet.training.errors import UNCOLLATED, MixedRecords, PrivateTrainingError
from discreet.training.gradients.trace.trees import tensors

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["collate_alone", "fingerprint", "form_of", "made_up", "refuse_mixing", "zeroed"]

FEW = 4  # records that a collate function is tried on
Collate = Callable[[list[Any]], Any]


def zeroed(record: Any) -> Any:
    """A record of the same form that holds nothing."""
    return form_of(record, torch.zeros_like, lambda kind: kind())


def made_up(record: Any) -> Any:
    """A record of the same form with numbers that chance made, and small whole ones."""

    def other(x: Tensor) -> Tensor:
        return torch.randn_like(x) if x.is_floating_point() else torch.randint(0, 2, x.shape).to(x.dtype)

    return form_of(record, other, lambda kind: kind(random.randint(0, 1)) if kind in (bool, int, float) else kind())


def form_of(record: Any, tensor: Callable[[Tensor], Tensor], number: Callable[[type], Any]) -> Any:
    """A record of the same form, of other tensors and plain values."""

    def same(part: Any) -> Any:
        return form_of(part, tensor, number)

    if isinstance(record, Tensor):
        return tensor(record)
    if isinstance(record, np.ndarray | np.generic):
        made = (
            tensor(torch.as_tensor(np.asarray(record))).numpy()
            if record.dtype.kind in "fiub"
            else np.zeros_like(record)
        )
        return made.astype(record.dtype)[()] if isinstance(record, np.generic) else made.astype(record.dtype)
    if isinstance(record, dict):
        return {key: same(value) for key, value in record.items()}
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return type(record)(*map(same, record))
    if isinstance(record, (tuple, list)):
        return type(record)(map(same, record))
    return number(type(record)) if isinstance(record, (bool, int, float, str, bytes)) else record


def refuse_mixing(collate: Collate, records: Sequence[Any], form: Any, *, unverified: str) -> None:
    """Refuse a collate function that lets one record change another's row: on made-up records, then on a few others."""
    made = [made_up(form) for _ in range(FEW)]
    try:
        mixes = _mixes(collate, made)
    except Exception:  # a form that cannot be made up: the records themselves are tried in any case
        mixes = False
    if mixes:
        raise MixedRecords(
            "The collate function lets one record change the rows of others (mixup, statistics of the batch, an order "
            "that records decide): a record then is in several rows. Keep every record in its row, and do with one "
            "record at a time what must be done."
        )
    try:
        mixes = len(records) > 1 and _mixes(collate, records)
    except Exception:
        if not unverified:
            raise PrivateTrainingError(UNCOLLATED) from None
        return
    if mixes:
        raise MixedRecords(UNCOLLATED)


def _mixes(collate: Collate, records: Sequence[Any]) -> bool:
    """Whether some record, replaced, changes another's row; the replacement may be empty or another record."""
    before = _again(collate, records)
    for place, record in enumerate(records):
        others = [[*records[:place], other, *records[place + 1 :]] for other in (zeroed(record), records[place - 1])]
        if not any(_only_row(place, before, _again(collate, some)) for some in others):
            return True
    return False


def _again(collate: Collate, records: Sequence[Any]) -> list[Tensor]:
    """What the function makes of these records when chance does the same."""
    with draw_from(seeded(0)):
        return [x.clone() for x in tensors(collate(list(records)))]


def fingerprint(collate: Collate, records: Any, places: Sequence[int]) -> str | None:
    """A digest of the records at these places, each collated alone, where chance does the same; none where they are not
    the same when they are read again."""

    def read() -> str:
        digest = hashlib.blake2b(digest_size=16)
        for x in _again(lambda some: [collate([records[place]]) for place in some], places):
            digest.update(repr((x.dtype, x.shape)).encode())
            digest.update(x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    try:
        once, again = read(), read()
    except Exception:  # a record that cannot be collated alone
        return None
    return once if once == again else None


def _only_row(place: int, before: list[Tensor], after: list[Tensor]) -> bool:
    if len(before) != len(after):
        return False
    rows = max((len(x) for x in before if x.dim()), default=0)
    for one, other in zip(before, after, strict=True):
        if one.dim() and len(one) == rows and other.dim() == one.dim() and len(other) == rows:
            keep = torch.arange(rows) != place
            if not same_but_padding(one[keep], other[keep]):
                return False
        elif one.shape != other.shape or not torch.equal(one.nan_to_num(), other.nan_to_num()):
            return False
    return True


def same_but_padding(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors agree where both have entries, padded at their ends or at their beginnings."""
    sizes = [min(a, b) for a, b in zip(one.shape, other.shape, strict=True)]
    for right in (False, True):
        a, b = one, other
        for dim, size in enumerate(sizes):
            a = a.narrow(dim, a.shape[dim] - size if right else 0, size)
            b = b.narrow(dim, b.shape[dim] - size if right else 0, size)
        if torch.equal(a.nan_to_num(), b.nan_to_num()):
            return True
    return False


def collate_alone(
    collate: Collate, records: list[Any], rows: Sequence[int], yielded: list[Tensor]
) -> list[Tensor] | None:
    """Records as they are collated alone, where padding is all that they differ in from their rows; none where chance
    is."""
    alone = _again(collate, records)
    if len(alone) != len(yielded):
        return None
    for own, whole in zip(alone, yielded, strict=True):
        if not (own.dim() and own.dim() == whole.dim() and len(own) == len(rows) and len(whole) > max(rows)):
            return None
        if not same_but_padding(own, whole[list(rows)]):
            return None
    return alone if any(own.shape[1:] != whole.shape[1:] for own, whole in zip(alone, yielded, strict=True)) else None
