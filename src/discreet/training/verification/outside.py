"""Parameters outside the private model that the loop trains with gradients of records.

A head after the model, or an encoder before it: its gradient has no noise, and the model's next gradients go through
what it learned. Seen where all of this holds of a parameter, which no loop that treats records apart needs: it meets
records on the way to a loss, between which and the model's parameters it stands; it did so on an earlier batch, too
(what is made for one batch is that batch's); and it changes while its gradient is still the one that this loss gave it.

Who changes it does not matter: an optimiser of torch's, one that writes to ``.data``, a line of the loop's own. So its
values are compared: when that gradient goes away (a weak reference tells, or the tape), and before the model's step.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from discreet.errors import extra
from discreet.training.errors import OUTSIDE, PrivateTrainingError
from discreet.training.gradients.trace.trees import same_bits

with extra("torch"):
    import torch
    from torch import Tensor, nn

if TYPE_CHECKING:
    from discreet.training.verification.tape import LossTape, TapeEntry

__all__ = ["OutsideTraining"]

FIRST_ALONE = frozenset({"expand_as", "reshape_as", "to", "type_as", "view_as"})
"""Torch functions that take no more than the kind or the shape of their other arguments."""


class _Gradient(NamedTuple):
    """A gradient that a loss gave to a parameter, and what the parameter was then."""

    of: weakref.ref[Tensor]
    parameter: weakref.ref[Tensor]
    before: Tensor


class OutsideTraining:
    """Which parameters outside the model one run's losses reached, and the gradients that they have from them."""

    def __init__(self) -> None:
        self._earlier: dict[int, weakref.ref[Tensor]] = {}  # met on an earlier batch
        self._met: dict[int, weakref.ref[Tensor]] = {}  # on this one
        self._gradients: dict[int, _Gradient] = {}  # by the parameter's identity
        self._trained = False  # whether a parameter changed while it had such a gradient

    def begin(self) -> None:
        """A verified batch begins."""
        self._earlier, self._met = self._earlier | self._met, {}

    def reached(self, tape: LossTape, losses: Sequence[Tensor]) -> list[tuple[Tensor, object]]:
        """The parameters that these losses are about to reach, with what tells their gradients now from later ones."""
        found = {id(p): p for call in _between(tape, losses) for p in call.inputs if _is_outside(p, tape)}
        return [(p, _state_of(p.grad)) for p in found.values()]

    def note(self, reached: Iterable[tuple[Tensor, object]]) -> None:
        """The backward pass is over, and some of them have gradients from it."""
        for p, before in reached:
            self._met[id(p)] = weakref.ref(p)
            earlier = self._earlier.get(id(p))
            if earlier is not None and earlier() is p and p.grad is not None and _state_of(p.grad) != before:
                self.compare(id(p))
                gone = weakref.ref(p.grad, partial(self.compare, id(p)))
                self._gradients[id(p)] = _Gradient(gone, weakref.ref(p), p.detach().clone())

    def refuse_trained(self) -> None:
        """Refuse to go on where a parameter has changed that had such a gradient."""
        for place in list(self._gradients):
            self.compare(place)
        if self._trained:
            raise PrivateTrainingError(OUTSIDE)

    def compare(self, place: int, _: object = None) -> None:
        """Look whether a parameter has changed since it got its gradient; for the last time if it has another now."""
        noted = self._gradients.pop(place, None)
        p = None if noted is None else noted.parameter()
        if noted is None or p is None:
            return
        with torch.no_grad(), torch._C.DisableTorchFunction():
            self._trained |= not _same(p.detach(), noted.before)
            gradient = noted.of()
            if gradient is not None and p.grad is gradient:
                self._gradients[place] = noted


def _same(x: Tensor, before: Tensor) -> bool:
    if x.shape != before.shape:
        return False
    x = x.to(before)
    return same_bits(x, before) or bool(((x == before) | (x.isnan() & before.isnan())).all())


def _state_of(gradient: Tensor | None) -> object:
    """Another one after every backward pass that reached the parameter."""
    return None if gradient is None else (id(gradient), gradient._version)


def _is_outside(x: Tensor, tape: LossTape) -> bool:
    return isinstance(x, nn.Parameter) and x.requires_grad and id(x) not in tape.parameters


def _between(tape: LossTape, losses: Sequence[Tensor]) -> list[TapeEntry]:
    """The calls with records on the way to these losses that the gradients of the model's parameters go through, or
    that made what the model was given."""
    leading = [call for call in tape.calls_leading_to(losses, lambda ids: True) if call.graded]
    graded_calls = [call for call in leading if call.is_module]
    into = tape.calls_leading_to([x for call in graded_calls for x in call.inputs], lambda ids: True)
    before, records, graded, found = {id(call) for call in into}, _of_records(tape), _graded(tape), []
    for call in leading:
        of_records = [x for x in call.inputs if id(x) in records]
        if of_records and not call.is_module and (any(id(x) in graded for x in of_records) or id(call) in before):
            found.append(call)
    return found


def _of_records(tape: LossTape) -> set[int]:
    """What was computed from values of the batch, by identity; not what has its shape or kind alone."""
    records = {id(x) for x in tape.given}
    for call in tape.calls:
        if call.name.endswith("_like") or call.name.startswith("new_"):
            continue
        if any(id(x) in records for x in (call.inputs[:1] if call.name in FIRST_ALONE else call.inputs)):
            records |= {id(x) for x in call.outputs}
    return records


def _graded(tape: LossTape) -> set[int]:
    """What sends gradients back to the model, by identity: nothing that was detached on the way."""
    graded = set[int]()
    for call in tape.calls:
        if call.graded and (call.is_module or any(id(x) in graded for x in call.inputs)):
            graded |= {id(x) for x in call.outputs if x.requires_grad}
    return graded
