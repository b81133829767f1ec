"""What chance did in a forward pass, so that one of its records can be given the same alone.

``Draws`` is the list of random tensors of one call of a model, in order. While it is written, dropout is a
multiplication by a mask that was drawn as torch draws it. ``Handing`` gives the rows of one record to the same calls
made for that record alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.trace.functions import OPENED

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.overrides import TorchFunctionMode

__all__ = ["CHANCE", "Draws", "Handing", "Unjudged", "by_chance", "drawn"]

CHANCE = {
    "bernoulli",
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_",
    "randperm",
    "uniform_",
}
"""Torch functions that draw, by name."""

_DROPOUT = {"dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "dropout_", "feature_dropout_"}
_OFF = {"alpha_dropout", "feature_alpha_dropout", "rrelu", "alpha_dropout_", "feature_alpha_dropout_", "rrelu_"}

Draws = list[Tensor]


class Unjudged(Exception):
    """Something cannot be computed again for one record."""


@cache
def by_chance(func: Any) -> bool:
    """Whether a torch function draws, or is one that may."""
    name = getattr(func, "__name__", "")
    return name in CHANCE or name in _DROPOUT or name in _OFF or func in _COMPOSED or func in OPENED


def drawn(func: Any, args: Any, kwargs: Any, take: Callable[[Callable[[], Tensor]], Tensor], mode: Any) -> Any:
    """The result of a function that draws; ``take`` is given each draw and says what counts as drawn."""
    name = getattr(func, "__name__", "")
    if func in OPENED:
        if func is not F.multi_head_attention_forward and not _dropped_between_layers(args):
            return func(*args, **kwargs)
        with mode:
            return OPENED[func](*args, **kwargs)
    if func in _COMPOSED:
        opened = _COMPOSED[func](*args, **kwargs)
        if opened is None:
            return func(*args, **kwargs)
        with mode:
            return opened()
    if name in _DROPOUT:
        x, p, training = _dropout(*args, **kwargs)
        if not training or p == 0.0:
            return func(*args, **kwargs)
        mask = take(lambda: func(torch.ones_like(x), p, True))
        return x.mul_(mask) if name.endswith("_") or kwargs.get("inplace") or True in args[3:4] else x * mask
    if name in _OFF:  # no mask to multiply with: without chance, on both sides
        ends = {key: kwargs[key] for key in ("lower", "upper") if key in kwargs}
        return args[0] if "dropout" in name else func(*args[:3], **ends)
    if name.endswith("_"):
        args[0].copy_(take(lambda: func(args[0].detach().clone(), *args[1:], **kwargs)))
        return args[0]
    return take(lambda: func(*args, **kwargs))


def _dropout(x: Tensor, p: float = 0.5, training: bool = True, *_: Any, **rest: Any) -> tuple[Tensor, float, bool]:
    return x, rest.get("p", p), rest.get("train", training)


def _dropped_between_layers(args: Any) -> bool:
    """Whether a recurrent network drops between its layers: the first number among its arguments is the share."""
    share = next((x for x in args if isinstance(x, float)), 0.0)
    return share > 0.0


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Callable[[], Tensor] | None:
    """Scaled dot-product attention written out, where it drops."""
    if dropout_p == 0.0:
        return None

    def run() -> Tensor:
        k, v = key, value
        if enable_gqa:
            k, v = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
        scores = query @ k.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if is_causal else attn_mask
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
        return F.dropout(scores.softmax(-1), dropout_p) @ v

    return run


def _gumbel(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Callable[[], Tensor]:
    def run() -> Tensor:
        noise = -torch.empty_like(logits).exponential_().log()
        soft = ((logits + noise) / tau).softmax(dim)
        if not hard:
            return soft
        best = torch.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
        return best - soft.detach() + soft

    return run


_COMPOSED: dict[Any, Callable[..., Callable[[], Tensor] | None]] = {
    F.scaled_dot_product_attention: _attention,
    F.gumbel_softmax: _gumbel,
}


class Handing(TorchFunctionMode):
    """Gives a call of a model for one record what the batch's call drew for it, or for a few: ``rows`` of ``records``.

    A tensor drawn for a record alone has ``1/records`` of the entries in one dimension: the record's own, one after
    another, or where they are ``interleaved`` every so many; for ``copies`` of the record, so many times those. One of
    the same shape was drawn for all records.
    """

    def __init__(self, rows: tuple[int, ...], records: int, copies: int = 1, *, interleaved: bool = False) -> None:
        super().__init__()
        self._left: Iterator[Tensor] = iter(())
        self._rows, self._records, self._copies, self._interleaved = rows, records, copies, interleaved
        self._handed: dict[bytes, Tensor] = {}  # by the generator's state: a checkpointed module runs twice

    def next(self, draws: Draws) -> None:
        """A call of the model begins, which drew these for all records."""
        self._left = iter(draws)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not by_chance(func):
            return func(*args, **(kwargs or {}))
        return drawn(func, args, kwargs or {}, self._take, self)

    def _take(self, draw: Callable[[], Tensor]) -> Tensor:
        state = torch.get_rng_state().numpy().tobytes()
        wanted = draw()
        if state not in self._handed:
            self._handed[state] = self._own(wanted, next(self._left, None))
        return self._handed[state]

    def _own(self, wanted: Tensor, whole: Tensor | None) -> Tensor:
        """The record's part of what was drawn for all, in the shape that is wanted."""
        if whole is None or whole.dim() != wanted.dim():
            raise Unjudged("draws")
        if whole.shape == wanted.shape:
            return whole
        moved = [d for d in range(wanted.dim()) if wanted.shape[d] != whole.shape[d]]
        fold = whole.shape[moved[0]] // self._records
        sizes = whole.shape[moved[0]], wanted.shape[moved[0]]
        if len(moved) != 1 or sizes != (fold * self._records, fold * self._copies * len(self._rows)):
            raise Unjudged("draws")
        first, rows = torch.arange(fold, device=whole.device), torch.tensor(self._rows, device=whole.device)
        index = first[:, None] * self._records + rows if self._interleaved else first + rows[:, None] * fold
        own = whole.index_select(moved[0], index.flatten())
        return own if self._copies == 1 else torch.cat([own] * self._copies, moved[0])
