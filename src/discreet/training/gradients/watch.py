"""Seeing every use of every parameter in a forward pass, without touching the model.

``Watch`` is a torch function mode. While a watched module runs, each torch function that is called on a parameter (or
on something made of parameters alone) goes through it. The function runs on the parameter's value, detached: autograd
then never computes an ordinary weight gradient. The output carries a hook that receives its gradient, and the pair of
what the call saw and what came back is a ``Use``, from which the records' gradients follow by the call's handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from discreet.errors import extra
from discreet.training.gradients import spot_check
from discreet.training.gradients.calls import CALL_HANDLERS, LAYERS, Call, Layout, PendingUse, arguments
from discreet.training.gradients.dispatch import PICKS, Owners, picked_from
from discreet.training.gradients.fallback import SPREAD, recomputed, spread
from discreet.training.gradients.functions import OPENED, QUESTIONS, out_of_place
from discreet.training.gradients.origins import Origins, Positions, unsaved
from discreet.training.gradients.probe import Place, Places, chosen, copies, undisturbed, without_dropout
from discreet.training.gradients.trees import detached, mapped, tensors
from discreet.training.gradients.uses import GradientReceiver, Uses
from discreet.training.refusals import MixedRecords

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode

__all__ = ["Watch", "watching"]


class _Hook:
    """A hook that belongs to one model: copies and pickles of the model carry one that does nothing."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self.act = act

    def __call__(self, *args: Any) -> Any:
        return self.act(*args)

    def __reduce__(self) -> Any:
        return _Hook, (_nothing,)


def _nothing(*_: Any) -> None:
    """What a copied hook does."""


class Watch(TorchFunctionMode):
    """Collects the uses of ``parameters`` in forward and backward passes over ``records`` records."""

    def __init__(self, parameters: Mapping[str, Tensor], checks: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.records: int | None = None
        self.uses = Uses()
        self.checks = checks  # forward passes still to be checked for records that mix
        self.reduction = reduction
        self.keeps = False  # whether to keep what outermost modules were given and gave, for a check of the loss
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.depth = 0
        self._serial = 0  # of the batch: a backward pass through an earlier one's graph is refused
        self._rows: set[torch.Size] = set()  # shapes of single records as the loader gave them
        self._entered = False
        self._parameters = list(parameters.values())
        self._names = {id(p): name for name, p in parameters.items()}
        self._shared: dict[int, Tensor] = {id(p): p for p in self._parameters}
        self._anchor = torch.zeros((), requires_grad=True)
        self._positions, self._owners, self._origins = Positions(), Owners(), Origins()
        self._probing, self._comparing = False, False
        self._strict: dict[int, Tensor] = {}  # of what a probe follows as parameters, what is made of these alone
        self._known: dict[tuple[Any, ...], Places] = {}
        self._places = Places()
        self._handled: list[nn.Module] = []  # modules with a handler of their own that are running
        self._path: list[str] = []

    def clear(self) -> None:
        """Forget every use."""
        self.uses.clear()
        if len(self._shared) > len(self._parameters):  # what was made of parameters
            self._shared = {id(p): p for p in self._parameters}

    def begin(self, records: int, yielded: Any = (), *, keeps: bool = False) -> None:
        """A new batch, as the loader gave it."""
        self.clear()
        self.records, self.keeps = records, keeps
        self._serial += 1
        self._rows = {x.shape[1:] for x in tensors(yielded) if x.dim() and x.shape[0] == records}

    def end(self) -> None:
        """The batch had its step."""
        self.clear()
        self.records = None

    def forget(self) -> None:
        """Drop what was kept for a check."""
        self.keeps, self.inputs, self.outputs = False, [], []

    # --- entering and leaving modules ----------------------------------------------------------------------------

    def attach(self, model: nn.Module) -> list[Any]:
        """Watch every call of the model or of one of its modules; returns the handles that undo it."""
        handles: list[Any] = []
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(_Hook(self._entering(name)), with_kwargs=True))
            handles.append(module.register_forward_hook(_Hook(self._leaving), always_call=True))
        return handles

    def _entering(self, name: str) -> Callable[..., None]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            self._path.append(name)
            self.depth += 1
            if self.depth > 1:
                self._positions.enter(name)
            if self.depth == 1 and not self._probing:
                if torch.is_grad_enabled():
                    self._prepare(module, args, kwargs)
                self._entered = True
                self._restart(self.records)
                self.__enter__()
            if type(module) in LAYERS and torch.is_grad_enabled() and not self._handled:
                self._handled.append(module)
                for p in () if self._probing else module.parameters():
                    p.requires_grad_(False)

        return enter

    def _leaving(self, module: nn.Module, args: Any, output: Any) -> Any:
        self.depth -= 1
        if self.depth > 0:
            self._positions.leave()
        if self._path:
            self._path.pop()
        answer = None
        if self._handled and self._handled[-1] is module:
            self._handled.pop()
            if not self._probing:
                for p in module.parameters():
                    if id(p) in self._shared:
                        p.requires_grad_(True)
                answer = output if output is None else self._tapped(output, self._own_handlers(module, args))
        if self.depth == 0 and self._entered and not self._probing:
            self._entered = False
            self._owners.clear()
            self.__exit__(None, None, None)
            self.outputs += tensors(output) if self.keeps else []
        return answer

    def _own_handlers(self, module: nn.Module, args: Any) -> list[PendingUse]:
        handlers = LAYERS[type(module)]
        return [
            PendingUse(p, handlers[name], mapped(Tensor.detach, args[0]), lambda g: g)
            for name, p in module.named_parameters()
            if id(p) in self._shared
        ]

    # --- where the records are -----------------------------------------------------------------------------------

    def _prepare(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Probe a module the first time it is called in this way."""
        inputs = [leaf for leaf in (tensors((args, kwargs)) if kwargs else tensors(args)) if leaf.dim()]
        if self.records is None and inputs:
            self.records = inputs[0].shape[0]
        elif inputs and not any(x.shape[0] == self.records for x in inputs):
            self._refuse_part(inputs)
        if self.keeps:
            self.inputs += inputs
        if self.records == 0:
            return
        key = (id(module), module.training, tuple((x.dim(), x.dtype) for x in inputs))
        known = self._known.get(key)
        if known is None:
            self._places = self._known[key] = Places()
            self._probe(module, args, kwargs)
        else:
            self._places = known
        if self.checks and (self.records or 0) >= 2:
            self.checks -= 1
            found, self._places = self._places, Places()  # what is noted here does not count
            with self._quietly(module):
                spot_check.refuse_mixing(module, args, kwargs, self.records or 0, self.reduction)
            self._places = found
            self._check_gradients_do_not_cross(module, args, kwargs)

    def _refuse_part(self, inputs: list[Tensor]) -> None:
        """Refuse a call on some rows of the batch; records in the second dimension are those of a batch that was
        turned."""
        parts = [x for x in inputs if x.dim() > 1 and x.shape[1:] in self._rows]
        if parts or not any(x.dim() > 1 and x.shape[1] == self.records for x in inputs):
            raise MixedRecords(
                f"The model was called on inputs of shape {tuple((parts or inputs)[0].shape)}, but the batch "
                f"has {self.records} records. Call it on the batch as the loader gave it; for pieces use "
                "max_physical_batch_size."
            )

    def _check_gradients_do_not_cross(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Run on a few records, send back gradients for the first alone and for all, and refuse if its row changes, or
        if it reaches another's."""
        count = 5 - self._places.count  # not the number of the probe
        before = self.records, self.uses, self._shared, self.depth, list(self._path)
        rows, records, norms = torch.arange(count) % (self.records or 1), self.records or 0, []
        self.records = count
        try:
            for heard in (1, count):
                given = chosen((args, kwargs), records, rows)
                self.uses, self._shared = Uses(), dict(before[2])
                self._restart(count)
                with undisturbed(module), torch.enable_grad():
                    with self:
                        outputs = tensors(module.forward(*given[0], **given[1]))
                    self._send_back(module, [x for x in outputs if x.is_floating_point()], heard)
                norms.append([(self._names.get(id(use.target)), use.squared_norms()) for use in self.uses])
        except MixedRecords:
            raise
        except Exception:  # a model that cannot run on a few records is not judged
            return
        finally:
            self.records, self.uses, self._shared, self.depth, self._path = before
        spot_check.refuse_crossing(type(module), *norms)

    def _send_back(self, module: nn.Module, outputs: list[Tensor], heard: int) -> None:
        """A backward pass from the outputs of the first records, as far as the watch's own hooks."""
        layouts = self._places.find(0, type(module), outputs, self.records or 0, self._guess, self._location)
        gradients = [torch.zeros_like(x) for x in outputs]
        for gradient, layout in zip(gradients, layouts, strict=True):
            if layout is not None:
                parts = layout.apart(gradient)
                parts[:heard] = torch.randn_like(parts)[:heard]
        pairs = [(x, g) for x, g in zip(outputs, gradients, strict=True) if x.requires_grad]
        torch.autograd.backward([x for x, _ in pairs], [g for _, g in pairs], inputs=[self._anchor])

    def _probe(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Run the module on two copies of a record (three, where the batch has two) and note every call's tensors."""
        self._places.count = 3 if self.records == 2 else 2
        small = copies((args, kwargs), self.records or 0, self._places.count)
        try:
            with self._quietly(module, small):
                output = module.forward(*small[0], **small[1])
                self._places.note(0, type(module), [x for x in tensors(output) if x.is_floating_point()])
            if self._places.unclear:
                small, self._comparing = copies((args, kwargs), self.records or 0, self._places.count, other=True), True
                with self._quietly(module, small):
                    output = module.forward(*small[0], **small[1])
                    self._places.compare(0, type(module), [x for x in tensors(output) if x.is_floating_point()])
        except MixedRecords:
            raise
        except Exception:  # a model that cannot run on two records is read by sizes alone
            self._places.forget()
        finally:
            self._comparing = False

    @contextmanager
    def _quietly(self, module: nn.Module, given: Any = ()) -> Iterator[None]:
        """As a real pass sees it (with gradients: some modules take another way without), but leaving no trace."""
        before = self.depth, list(self._path), dict(self._shared)
        self._restart()
        self._strict, self._origins, self._probing = dict(self._shared), Origins(tensors(given)), True
        try:
            with undisturbed(module), torch.enable_grad(), self:
                yield
        finally:
            self._probing, self._strict, self._origins = False, {}, Origins()
            self.depth, self._path, self._shared = before
            self._handled.clear()

    def _restart(self, records: int | None = None) -> None:
        self._positions.restart()
        self._owners.clear(records or 0)

    def _guess(self, leaf: Tensor) -> Place | None:
        if id(leaf) in self._shared:
            return None
        dim = next((d for d in range(min(2, leaf.dim())) if leaf.shape[d] == self.records), None)
        return None if dim is None else Place(dim)

    def _location(self) -> str:
        return f"module {self._path[-1]!r}" if self._path and self._path[-1] else "the model"

    # --- one call ------------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        opened = func in OPENED
        if self._handled or (not opened and getattr(func, "__name__", "") in QUESTIONS):
            return self._followed(func, args, kwargs, func(*args, **kwargs)) if self._probing else func(*args, **kwargs)
        self._positions.advance()
        if opened and torch.is_grad_enabled() and self._touches(args, kwargs):
            with self._positions.inside(), self:
                return OPENED[func](*args, **kwargs)
        if self._probing:
            return self._followed(func, args, kwargs, self._without_chance(func, args, kwargs), looks=True)
        if torch.is_grad_enabled() and self._touches(args, kwargs):
            return self._shared_call(func, args, kwargs)
        output = func(*args, **kwargs)
        if func in PICKS or self._owners:
            self._note_source(func, args, kwargs)
            self._owners.follow(func, args, kwargs, output)
        return output

    def _followed(self, func: Any, args: Any, kwargs: Any, output: Any, *, looks: bool = False) -> Any:
        """A call of the probe. What is made of parameters and constants is followed as parameters are."""
        from_records, shared = self._origins.follow(func, args, kwargs, output), self._touches(args, kwargs)
        if looks and shared:
            self._look(self._positions.now, func, tensors((args, kwargs, output)))
        elif looks:
            self._note_source(func, args, kwargs)
        if shared and not from_records:
            self._shared |= {id(x): x for x in tensors(output)}
            if all(id(x) in self._strict for x in tensors((args, kwargs))):
                self._strict |= {id(x): x for x in tensors(output)}
        return output

    def _note_source(self, func: Any, args: Any, kwargs: Any) -> None:
        """Where the records are in a tensor whose rows are picked: noted by a probe, asked in a real pass."""
        source = picked_from(func, args, kwargs)
        if source is not None:
            self._owners.source(source, lambda number: self._source_layout(source, number))

    def _source_layout(self, source: Tensor, number: int) -> Layout | None:
        place, function = (self._positions.frame, "source", number), Tensor.__getitem__
        if self._probing:
            self._look(place, function, [source])
            return None
        try:
            return self._places.find(place, function, [source], self.records or 1, self._guess, self._location)[0]
        except MixedRecords:  # no rows of records: whatever is made of them has none either
            return None

    def _look(self, position: Any, func: Any, found: list[Tensor]) -> None:
        if self._comparing:
            self._places.compare(position, func, found)
        else:
            self._places.note(position, func, found, self._strict)

    def _without_chance(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func not in OPENED:
            return without_dropout(func, args, kwargs)
        with self._positions.inside(), self:  # frozen, so one call in a real pass: opened only for the dropout inside
            return OPENED[func](*args, **kwargs)

    def _touches(self, args: Any, kwargs: Any) -> bool:
        for x in args:
            if id(x) in self._shared or (type(x) in (list, tuple) and any(id(y) in self._shared for y in x)):
                return True
        return bool(kwargs) and any(id(x) in self._shared for x in kwargs.values())

    def _made_of_shared(self, args: Any, kwargs: Any) -> bool:
        return all(id(x) in self._shared for x in tensors((args, kwargs)))

    def _in_place(self, func: Any, ordinary: Any, args: Any, kwargs: Any) -> Any:
        """The ordinary function in its place; its result is written where it was wanted: over what a handler may have
        saved."""
        kept = args if id(args[0]) in self._shared else (args[0].clone(), *args[1:])
        result = self._shared_call(ordinary, kept, kwargs, func)
        with self._positions.inside(), self:
            return args[0].copy_(result)

    def _shared_call(self, func: Any, args: Any, kwargs: Any, noted: Any = None) -> Any:
        """A call on shared tensors; a probe may have ``noted`` it under another name."""
        ordinary = out_of_place(func)
        if ordinary is not None:
            return self._in_place(func, ordinary, args, kwargs)
        inputs = tensors((args, kwargs)) if kwargs else tensors(args)
        output = func(*detached(args, self._shared), **detached(kwargs, self._shared))
        outputs = tensors(output)
        if not any(x.is_floating_point() for x in outputs):
            return output
        if self.records == 0:  # nobody has a gradient
            return mapped(lambda x: self._tapped(x, []) if x.is_floating_point() else x, output)

        def guess(leaf: Tensor) -> Place | None:
            """Without a probe, something made of parameters has no records, whatever its size, unless it is spread."""
            alone = all(id(x) in self._shared or not x.dim() for x in inputs)
            return None if alone and func not in SPREAD else self._guess(leaf)

        places = self._owners.layouts(inputs, outputs) or self._places.find(
            self._positions.now, noted or func, inputs + outputs, self.records or 1, guess, self._location
        )
        layouts = {id(x): place for x, place in zip(inputs, places, strict=False) if place is not None}
        where = places[len(inputs) :]
        if not any(where):
            return self._derived(func, args, kwargs, inputs)
        if not layouts:
            assert where[0] is not None
            return self._tapped(output, spread(func, args, kwargs, output, where[0], self._shared))
        return self._owners.hand_on(inputs, self._answered(func, args, kwargs, output, layouts, where))

    def _answered(
        self, func: Any, args: Any, kwargs: Any, output: Any, layouts: dict[int, Layout], where: list[Layout | None]
    ) -> Any:
        """The output of a call on parameters and records, which hands its gradient to the call's handlers."""
        outputs = tensors(output)
        if func in CALL_HANDLERS and len(outputs) == 1:
            call = Call(func, arguments(func, args, kwargs), self.records or 0, self._shared, layouts, self._location)
            pending = CALL_HANDLERS[func](call)
            if pending is not None:
                return self._tapped(output, pending)
        answers = recomputed(func, args, kwargs, layouts, where, outputs, self._shared, self._location())
        tapped = {
            id(x): x if pending is None else self._tapped(x, pending)
            for x, pending in zip(outputs, answers, strict=True)
        }
        return mapped(lambda x: tapped[id(x)], output)

    def _derived(self, func: Any, args: Any, kwargs: Any, inputs: list[Tensor]) -> Any:
        """Something made of parameters alone: it keeps its graph, and its uses are pulled back through it."""
        if any(x.requires_grad and id(x) not in self._shared for x in inputs):  # what parameters made of records
            raise MixedRecords(
                f"{getattr(func, '__name__', func)} at {self._location()} uses a parameter and a tensor in which no "
                "records were found: whose gradient it is cannot be told. Keep the records in a dimension of their own "
                "there."
            )
        with unsaved():
            output = func(*args, **kwargs)
        for x in tensors(output):
            if x.requires_grad:
                self._shared[id(x)] = x
        return output

    def _tapped(self, output: Tensor, pending: list[PendingUse]) -> Tensor:
        """The output, which will hand its gradient to the handlers."""
        done, serial = False, self._serial

        def receive(gradient: Tensor) -> None:
            nonlocal done
            if serial != self._serial:
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
                self.uses.add(use, use.view(gradient))
            pending.clear()

        if output.requires_grad:  # before the function itself, after every hook on the tensor: what it changes counts
            place = output.output_nr
            output.grad_fn.register_prehook(lambda g: None if g[place] is None else receive(g[place]))  # type: ignore[union-attr]
            return output
        if output._is_view():  # a view of a parameter must not be marked as changed
            output = output.clone()
        return GradientReceiver.apply(output, self._anchor, receive)


@contextmanager
def watching(model: nn.Module, watch: Watch) -> Iterator[Watch]:
    """Watch a model for the length of a block."""
    handles = watch.attach(model)
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()
