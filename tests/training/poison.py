"""One record that is poison: endless, not a number, huge, vanishing, or made of terms that cancel.

For every layer of ``test_handlers`` and every idiom of ``test_idioms``, with gradients formed or only measured: what
the other records add up to is what they add up to without it, the sum is finite, and the record moves it by at most a
clip norm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import NamedTuple
from unittest.mock import patch

import torch

from discreet.training.gradients import joint
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.rules.convolution import ConvolutionWeight
from discreet.training.gradients.rules.outer_products import Outer
from discreet.training.gradients.rules.products import GroupedWeight
from tests.training.oracle import ours
from tests.training.test_handlers import LAYERS
from tests.training.test_idioms import IDIOMS, D, Idiom, T

RECORDS, CLIP = 5, 1.0
WIDENED = 2.0**-10  # of the clip norm, which noise is scaled to
OTHERS = 1e-5  # of the clip norm and each record, by which rounding may move what the others add up to

VALUES = {
    "zero": 0.0,
    "huge": 1e30,
    "huge and negative": -1e30,
    "large": 1e9,
    "endless": torch.inf,
    "not a number": torch.nan,
    "subnormal": 1e-42,
}
PLACES = ("all of the record", "in turns", "one number", "its loss", "its loss, in turns")
FORMED = (True, False)


class Case(NamedTuple):
    """A layer, what the poison is, where it is, and whether gradients are formed as soon as they can be."""

    layer: str
    value: str
    place: str
    formed: bool


def layers() -> list[str]:
    """All of them, by name."""
    return [*LAYERS, *(idiom.__name__ for idiom in IDIOMS)]


def cases(names: list[str] | None = None) -> Iterator[Case]:
    """Every combination, layer by layer."""
    return (Case(*parts) for parts in product(layers() if names is None else names, VALUES, PLACES, FORMED))


def _made(name):
    torch.manual_seed(3)
    if name in LAYERS:
        model, *inputs = LAYERS[name]()
        return model, inputs
    return Idiom(next(idiom for idiom in IDIOMS if idiom.__name__ == name)), [torch.randn(RECORDS, T, D)]


def _signs(x):
    """One and minus one in turns, along the dimension after the record's, where there is one."""
    signs = torch.ones(x.shape)
    return signs if x.dim() < 2 else signs.index_fill_(1, torch.arange(1, x.shape[1], 2), -1)


def _poisoned(x, case):
    """A float input with a first record of poison."""
    value, x = VALUES[case.value], x.clone()
    if case.place == "one number":
        x[(0, *[-1] * (x.dim() - 1))] = value
    else:
        x[0] = value * _signs(x)[0] if case.place == "in turns" else value
    return x


def _loss(model, weights, *inputs):
    out = model(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    return (out * torch.sin(out + 0.3) * weights.view(-1, *[1] * (out.dim() - 1)) * _weigh.signs(out)).sum()


class _weigh:
    """How the loss weighs a record's outputs: alike, or in turns."""

    signs = staticmethod(torch.ones_like)


@contextmanager
def measured_only():
    """Gradients are not formed where they can be measured without."""
    with ExitStack() as stack:
        for kind in (Outer, ConvolutionWeight, GroupedWeight):
            stack.enter_context(patch.object(kind, "prefers_instances", lambda *_: False))
        stack.enter_context(patch.object(joint, "KEPT", 10))
        yield


def _sum(model, inputs, weights, keep, case):
    turns = case.place == "its loss, in turns"
    with ExitStack() as stack:
        if not case.formed:
            stack.enter_context(measured_only())
        stack.enter_context(patch.object(_weigh, "signs", _signs if turns else torch.ones_like))
        return ours(model, (weights, *inputs), _called, Clipping(), CLIP, "sum", keep)


def _called(model, weights, *inputs):
    return _loss(model, weights, *inputs)


def check(case: Case) -> bool:
    """Assert all three; whether the case is one (a layer of whole numbers has no float input to poison)."""
    model, inputs = _made(case.layer)
    weights = torch.ones(RECORDS)
    bad, heavy = inputs, weights
    if case.place.startswith("its loss"):
        heavy = weights.clone()
        heavy[0] = VALUES[case.value]
    elif any(x.is_floating_point() for x in inputs):
        bad = [_poisoned(x, case) if x.is_floating_point() else x for x in inputs]
    else:
        return False
    others = torch.ones(RECORDS)
    others[0] = 0.0
    alone = _sum(model, [x[1:] for x in inputs], weights[1:], None, case)
    without = _sum(model, bad, heavy, others, case)
    with_it = _sum(model, bad, heavy, None, case)
    assert torch.isfinite(with_it).all(), f"{case}: the sum is not finite"
    apart = float((without.double() - alone.double()).norm())
    assert apart <= OTHERS * CLIP * RECORDS, f"{case}: what others add up to moves by {apart:.3g} clip norms"
    moved = float((with_it.double() - alone.double()).norm()) / CLIP
    assert moved <= 1 + WIDENED, f"{case}: the sum moves by {moved:.6g} clip norms"
    return True
