"""One call of a model, seen from inside: every torch function that touches a parameter goes through an
``Interception``.

The function runs on the parameter's value, detached: autograd then never computes an ordinary weight gradient. The
output carries a hook that receives its gradient, and the pair of what the call saw and what came back is a ``Use``,
from which the records' gradients follow by the call's handler. Where the records of a tensor are is read by ``Places``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.rules.fallback import SPREAD, recomputed, spread
from discreet.training.gradients.rules.handlers import CALL_HANDLERS, LAYERS, Call, Layout, PendingUse, arguments
from discreet.training.gradients.trace.dispatch import PICKS, RowOwners
from discreet.training.gradients.trace.functions import (
    WITH_PARAMETERS,
    is_vectorised,
    on_whole_tensors,
    only_asks,
    out_of_place,
    without_saved_tensors,
)
from discreet.training.gradients.trace.places import Place, Places, Positions, records_of
from discreet.training.gradients.trace.random_draws import by_chance
from discreet.training.gradients.trace.trees import detached, differentiable, mapped, tensors
from discreet.training.gradients.uses import Uses, tap

with extra("torch"):
    import torch
    from torch import Size, Tensor, nn
    from torch._C._functorch import peek_interpreter_stack
    from torch.overrides import TorchFunctionMode

__all__ = ["Interception", "Pass"]


class Pass:
    """What the calls of a model on one batch leave behind: the uses of its parameters.

    ``shared`` holds the parameters and what was made of parameters alone, by identity.
    """

    def __init__(self, parameters: Mapping[int, Tensor], records: int | None, rows: set[Size]) -> None:
        self.parameters, self.records, self.rows = parameters, records, rows
        self.uses = Uses()
        self.shared: dict[int, Tensor] = dict(parameters)
        self.over = False  # a backward pass through an earlier batch's graph is refused

    def clear(self) -> None:
        """Forget every use."""
        self.uses.clear()
        if len(self.shared) > len(self.parameters):  # what was made of parameters
            self.shared = dict(self.parameters)

    def learn_records(self, records: int) -> None:
        """The number of records, which a call of the model has shown."""
        self.records = records

    def end(self) -> None:
        """The batch had its step."""
        self.clear()
        self.records = None

    def close(self) -> None:
        """Another batch has come: a backward pass through this one is refused from now on."""
        self.over = True


class Interception(TorchFunctionMode):
    """Sees the torch functions of one call of a model on the records of ``batch``."""

    def __init__(self, batch: Pass, places: Places, location: Callable[[], str], anchor: Tensor) -> None:
        super().__init__()
        self.batch, self.places, self.location = batch, places, location
        self.positions = Positions()
        self._owners: RowOwners | None = None  # made where a call picks rows: most models never do
        self.handled: nn.Module | None = None  # a module with handlers of its own that is running
        self._anchor = anchor

    # --- modules with handlers of their own ------------------------------------------------------------------------

    def open(self, module: nn.Module) -> None:
        """Such a module begins: its calls are not looked at."""
        self.handled = module
        for p in module.parameters():
            p.requires_grad_(False)

    def close(self, module: nn.Module, args: Any, output: Any) -> Any:
        """It ends, and its output hands its gradient to the handlers."""
        self.handled, ours = None, self.batch.shared
        for p in module.parameters():
            if id(p) in ours:
                p.requires_grad_(True)
        if output is None:
            return None
        handlers = LAYERS[type(module)]
        pending = [
            PendingUse(p, handlers[name], mapped(Tensor.detach, args[0]), lambda g: g)
            for name, p in module.named_parameters()
            if id(p) in ours
        ]
        return self._tap(output, pending, alone=not output._is_view())

    # --- one call --------------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, opened = kwargs or {}, func in WITH_PARAMETERS
        if self.handled is not None or (not opened and only_asks(func, len(args) + len(kwargs))):
            return func(*args, **kwargs)
        self.positions.advance(func)
        if torch.is_grad_enabled() and touches(args, kwargs, self.batch.shared):
            if not opened:
                return self._shared_call(func, args, kwargs)
            with self.positions.inside(), self:
                output = WITH_PARAMETERS[func](*args, **kwargs)
            if func is Tensor.__setitem__ and id(output) in self.batch.shared:  # the part that was written
                self.batch.shared[id(args[0])] = args[0]
            return output
        output = func(*args, **kwargs)
        if func in PICKS or self._owners:
            if self._owners is None:
                self._owners = RowOwners(self.batch.records or 0)
            self._owners.follow(func, args, kwargs, output, self._source_layout)
        return output

    def _source_layout(self, source: Tensor, number: int) -> Layout | None:
        """Where the records are in the tensor of this number whose rows a module picks."""
        place = self.positions.source(number)
        try:
            found = self.places.find(
                place, Tensor.__getitem__, [source], self.batch.records or 1, self._guess, self.location
            )
        except MixedRecords:  # no rows of records: whatever is made of them has none either
            return None
        return found[0]

    def _in_place(self, func: Any, ordinary: Any, args: Any, kwargs: Any) -> Any:
        """The ordinary function in its place; its result is written where it was wanted: over what a handler may have
        saved."""
        x, shared = args[0], self.batch.shared
        kept = args if id(x) in shared else (x.clone(), *args[1:])
        result = self._shared_call(ordinary, kept, kwargs, func)
        if self.batch.records == 0:
            return x.copy_(result)
        if id(result) in shared or (id(x) in shared and not result.requires_grad):  # made of parameters alone
            with without_saved_tensors():
                x.copy_(result)
            if x.requires_grad:
                shared[id(x)] = x
            return x
        if id(x) in shared:
            raise MixedRecords(
                f"{getattr(func, '__name__', func)} at {self.location()} writes something made of records into "
                "something made of parameters alone. Make a new tensor of both (torch.where, torch.cat)."
            )
        with self.positions.inside(), self:
            return x.copy_(result)

    def _shared_call(self, func: Any, args: Any, kwargs: Any, noted: Any = None) -> Any:
        """A call on shared tensors; a probe may have ``noted`` it under another name."""
        inputs = tensors((args, kwargs)) if kwargs else tensors(args)
        if peek_interpreter_stack() is not None and is_vectorised(inputs):
            return on_whole_tensors(
                lambda run, rows: self._shared_call(run, rows, {}, func), func, args, kwargs, self.location()
            )
        # what is noted under another name is made anew in every call, and holds its tensors: no cache may meet it
        ordinary = None if noted is not None else out_of_place(func)
        if ordinary is not None:
            return self._in_place(func, ordinary, args, kwargs)
        shared, records = self.batch.shared, self.batch.records
        if by_chance(noted or func) and made_of(args, kwargs, shared):  # run once: a second run would draw again
            return self._derive(func, args, kwargs, inputs)
        output = func(*detached(args, shared), **detached(kwargs, shared))
        outputs = tensors(output)
        if not any(differentiable(x) for x in outputs):
            return output
        if records == 0:  # nobody has a gradient
            return mapped(lambda x: self._tap(x, [], inputs) if differentiable(x) else x, output)

        def guess(leaf: Tensor) -> Place | None:
            """Without a probe, something made of parameters has no records, whatever its size, unless it is spread."""
            alone = all(id(x) in shared or not x.dim() for x in inputs)
            return None if alone and func not in SPREAD else self._guess(leaf)

        owned = self._owners.layouts(inputs, outputs) if self._owners else None
        found = owned or self.places.find(
            self.positions.now, noted or func, inputs + outputs, records or 1, guess, self.location
        )
        layouts = {id(x): place for x, place in zip(inputs, found, strict=False) if place is not None}
        where = found[len(inputs) :]
        if not any(where):
            return self._derive(func, args, kwargs, inputs)
        if not layouts:
            assert where[0] is not None
            return self._tap(output, spread(func, args, kwargs, output, where[0], shared), inputs)
        answer = self._tap_answer(func, args, kwargs, inputs, output, layouts, where)
        return self._owners.hand_on(inputs, answer) if self._owners else answer

    def _tap_answer(
        self,
        func: Any,
        args: Any,
        kwargs: Any,
        inputs: list[Tensor],
        output: Any,
        layouts: dict[int, Layout],
        where: list[Layout | None],
    ) -> Any:
        """The output of a call on parameters and records, which hands its gradient to the call's handlers."""
        outputs, shared = tensors(output), self.batch.shared
        if func in CALL_HANDLERS and len(outputs) == 1:
            named, records = arguments(func, args, kwargs), self.batch.records or 0
            call = Call(func, named, records, shared, layouts, self.location)
            pending = CALL_HANDLERS[func](call)
            if pending is not None:
                return self._tap(output, pending, inputs)
        answers = recomputed(func, args, kwargs, layouts, where, outputs, shared, self.location())
        tapped = {
            id(x): x if pending is None else self._tap(x, pending, inputs, alone=len(outputs) == 1)
            for x, pending in zip(outputs, answers, strict=True)
        }
        return mapped(lambda x: tapped[id(x)], output)

    def _guess(self, leaf: Tensor) -> Place | None:
        dim = None if id(leaf) in self.batch.shared else records_of(leaf, self.batch.records)
        return None if dim is None else Place(dim)

    def _derive(self, func: Any, args: Any, kwargs: Any, inputs: list[Tensor]) -> Any:
        """Something made of parameters alone: it keeps its graph, and its uses are pulled back through it."""
        shared = self.batch.shared
        if any(x.requires_grad and id(x) not in shared for x in inputs):  # what parameters made of records
            raise MixedRecords(
                f"{getattr(func, '__name__', func)} at {self.location()} uses a parameter and a tensor in which no "
                "records were found: whose gradient it is cannot be told. Keep the records in a dimension of their own "
                "there."
            )
        with without_saved_tensors():
            output = func(*args, **kwargs)
        for x in tensors(output):
            if x.requires_grad:
                shared[id(x)] = x
        return output

    def _tap(
        self, output: Tensor, pending: list[PendingUse], inputs: Sequence[Tensor] = (), *, alone: bool = True
    ) -> Tensor:
        """The output, which will hand its gradient to the handlers."""
        done, batch = False, self.batch

        def receive(gradient: Tensor) -> None:
            nonlocal done
            if batch.over:
                raise MixedRecords(
                    "A backward pass went through a forward pass of an earlier batch, but a batch may be used "
                    "for one step only. Call the model on this batch."
                )
            if done or torch.is_grad_enabled():
                raise MixedRecords(
                    "A backward pass went through the same forward pass twice, or will itself be "
                    "differentiated (a gradient penalty): add the losses up and call backward once."
                )
            done = True
            for use in pending:
                batch.uses.add(use, use.view(gradient))
            pending.clear()

        return tap(output, inputs, receive, self._anchor, alone=alone)


def touches(args: Any, kwargs: Any, shared: Mapping[int, Tensor]) -> bool:
    """Whether a call has a shared tensor among its arguments."""
    for x in args:
        if id(x) in shared or (type(x) in (list, tuple) and any(id(y) in shared for y in x)):
            return True
    return bool(kwargs) and any(id(x) in shared for x in kwargs.values())


def made_of(args: Any, kwargs: Any, shared: Mapping[int, Tensor]) -> bool:
    """Whether every tensor of a call is shared."""
    return all(id(x) in shared for x in tensors((args, kwargs)))
