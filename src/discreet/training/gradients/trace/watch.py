"""Seeing every use of every parameter in a forward pass, without touching the model.

``Watch`` holds the hooks on a model's modules, and knows which module runs. What happens in between is the matter of
others: an ``Interception`` sees the torch functions of one outermost call, a ``probe`` reads where the records are the
first time a module is called in a way, and a ``Tape`` writes down outermost calls for verification, if there is one.

Decision 71.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from discreet.errors import extra
from discreet.training.errors import MixedRecords, PrivateTrainingError
from discreet.training.gradients.rules.handlers import LAYERS
from discreet.training.gradients.trace.interception import Interception, Pass
from discreet.training.gradients.trace.places import Places, records_of
from discreet.training.gradients.trace.probe import probe_records
from discreet.training.gradients.trace.trees import tensors
from discreet.training.gradients.uses import Uses

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.nn.parallel import DistributedDataParallel

__all__ = ["CallListener", "Watch"]

_NOTHING = nullcontext()


class CallListener:
    """Is told of outermost calls of a model and its modules; not of what a probe does, when it is paused. This one does
    nothing."""

    def pause(self) -> None:
        """Hear nothing until ``resume``."""

    def resume(self) -> None:
        """Hear again."""

    def called(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A call begins."""

    def answered(self, output: Any) -> None:
        """It ends."""


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


class Watch:
    """Collects the uses of ``parameters`` in forward and backward passes over the records of a batch."""

    def __init__(self, parameters: Mapping[str, Tensor], admit_wrapper: Callable[[Any], None] | None = None) -> None:
        self.parameters = dict(parameters)
        self.listener: CallListener | None = None
        self.depth = 0
        self.plain = False  # whether modules run as if nobody watched
        self.tried = 0  # how often a module was tried out, to see where its records are
        self._admit_wrapper = admit_wrapper or _refuse_wrapper
        self._path: list[str] = []
        self._mode: Any = None  # what is told of modules with handlers of their own
        self._entered: Interception | None = None
        self._compiled = False
        self._uncompiled: ExitStack | None = None
        self._known: dict[tuple[Any, ...], Places] = {}
        self._by_id = {id(p): p for p in self.parameters.values()}
        self._anchor = torch.zeros((), requires_grad=True)
        self._batch = Pass(self._by_id, None, set())

    # --- batches ---------------------------------------------------------------------------------------------------

    @property
    def records(self) -> int | None:
        """Of the batch; unknown until it, or a call of the model, has come."""
        return self._batch.records

    @property
    def uses(self) -> Uses:
        """What the backward passes over this batch brought."""
        return self._batch.uses

    def begin(self, records: int, yielded: Any = ()) -> None:
        """A new batch, as the loader gave it."""
        self._batch.close()
        rows = {x.shape[1:] for x in tensors(yielded) if x.dim() and x.shape[0] == records}
        self._batch = Pass(self._by_id, records, rows)

    def clear(self) -> None:
        """Forget every use."""
        self._batch.clear()

    def end(self) -> None:
        """The batch had its step."""
        self._batch.end()

    def listen(self, listener: CallListener | None) -> None:
        """Tell somebody of outermost calls, or nobody any more."""
        self.listener = listener

    @contextmanager
    def trial(self, records: int) -> Iterator[Uses]:
        """A batch beside the current one, for the length of a block; its uses."""
        kept, self._batch = self._batch, Pass(self._by_id, records, set())
        try:
            yield self._batch.uses
        finally:
            self._batch = kept

    @contextmanager
    def without_watching(self) -> Iterator[None]:
        """Modules run as if nobody watched, for the length of a block; only outermost calls are told of."""
        self.plain = True
        try:
            yield
        finally:
            self.plain = False

    # --- entering and leaving modules ------------------------------------------------------------------------------

    def attach(self, model: nn.Module) -> list[Any]:
        """Watch every call of the model or of one of its modules; returns the handles that undo it.

        First of all hooks before a call, so that what other hooks do to its inputs is seen, too.
        """
        handles: list[Any] = []
        self._compiled = any(type(module).__name__ == "OptimizedModule" for module in model.modules())
        for name, module in model.named_modules():
            enter = _Hook(self._entering(name, type(module)))
            handles.append(module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True))
            handles.append(module.register_forward_hook(_Hook(self._leaving), always_call=True))
        return handles

    def _entering(self, name: str, kind: type) -> Callable[..., None]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            self._path.append(name)
            self.depth += 1
            if self.depth == 1 or type(module) is not kind:
                self._look_around(module, kind, name)
            if self.depth == 1:  # compiled code is off before the module is tried out, and tried out before it is heard
                self._uncompiled = _uncompiled() if self._compiled and torch.is_grad_enabled() else None
                places = Places()
                if torch.is_grad_enabled() and not self.plain:
                    with _NOTHING if self.listener is None else self._silence():
                        places = self._read(module, args, kwargs)
                if self.listener is not None:
                    self.listener.called(module, args, kwargs)
            if self.plain:
                return
            if self.depth == 1:
                self._mode = self._entered = Interception(self._batch, places, self._location, self._anchor)
                self._entered.__enter__()
            self._mode.positions.enter(name)
            if type(module) in LAYERS and torch.is_grad_enabled() and self._mode.handled is None:
                self._mode.open(module)

        return enter

    def _look_around(self, module: nn.Module, kind: type, name: str) -> None:
        """Refuse a module that was put in shards after it became private; look at what is around the model."""
        if type(module) is not kind:
            raise PrivateTrainingError(
                f"Module {name or 'model'!r} became a {type(module).__name__} after make_private (fully_shard?), so "
                "its parameters are others now. First fully_shard(model), then the optimizer, then make_private."
            )
        if DistributedDataParallel._active_ddp_module is not None:
            self._admit_wrapper(DistributedDataParallel._active_ddp_module)

    def _leaving(self, module: nn.Module, args: Any, output: Any) -> Any:
        self.depth -= 1
        if self._path:
            self._path.pop()
        answer = None
        if not self.plain and self._mode is not None:
            self._mode.positions.leave()
        if not self.plain and self._mode is not None and self._mode.handled is module:
            answer = self._mode.close(module, args, output)
        if self.depth == 0:
            if self._uncompiled is not None:
                self._uncompiled.close()
            entered, self._entered, self._mode = self._entered, None, None
            if entered is not None:
                entered.__exit__(None, None, None)
            if self.listener is not None:
                self.listener.answered(output if answer is None else answer)
        return answer

    def _location(self) -> str:
        return f"module {self._path[-1]!r}" if self._path and self._path[-1] else "the model"

    # --- where the records are -------------------------------------------------------------------------------------

    def _read(self, module: nn.Module, args: Any, kwargs: Any) -> Places:
        """Where the records are in the calls of a module; probed the first time it is called in this way."""
        inputs = [leaf for leaf in (tensors((args, kwargs)) if kwargs else tensors(args)) if leaf.dim()]
        batch = self._batch
        if batch.records is None and inputs:
            batch.learn_records(inputs[0].shape[0])
        elif inputs and not any(x.shape[0] == batch.records for x in inputs):
            self._refuse_part(inputs)
        if not batch.records:
            return Places()
        key = (id(module), module.training, tuple((x.dim(), x.dtype) for x in inputs))
        known = self._known.get(key)
        if known is None or (known.doubtful and batch.records > 1):
            self.tried += 1
            known = self._known[key] = probe_records(module, args, kwargs, batch.records, batch.shared, self._using)
        return known

    @property
    def doubtful(self) -> bool:
        """Whether a module will be tried out again."""
        return any(known.doubtful for known in self._known.values())

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """The listener does not hear what the watch itself does."""
        listener = self.listener
        if listener is not None:
            listener.pause()
        try:
            yield
        finally:
            if listener is not None:
                listener.resume()

    @contextmanager
    def _using(self, mode: Any) -> Iterator[None]:
        """Tell another mode of modules with handlers of their own, and no listener of anything."""
        before = self._mode, self.listener, self.depth, list(self._path)
        self._mode, self.listener = mode, None
        try:
            yield
        finally:
            self._mode, self.listener, self.depth, self._path = before

    def _refuse_part(self, inputs: list[Tensor]) -> None:
        """Refuse a call on some rows of the batch; records in the second dimension are those of a batch that was
        turned."""
        records, rows = self.records or 0, self._batch.rows
        parts = [x for x in inputs if x.dim() > 1 and x.shape[1:] in rows]
        if parts or not any(records_of(x, records) == 1 for x in inputs):
            raise MixedRecords(
                f"The model was called on inputs of shape {tuple((parts or inputs)[0].shape)}, but the batch "
                f"has {records} records. Call it on the batch as the loader gave it; for pieces use "
                "max_physical_batch_size."
            )


def _uncompiled() -> ExitStack:
    """Until it is closed, compiled modules run as written: inside fused code no use of a parameter is seen."""
    stack = ExitStack()
    # compiled code would hide the calls that are watched: decision 443
    stack.enter_context(torch.compiler.set_stance("force_eager"))
    return stack


def _refuse_wrapper(wrapper: Any) -> None:
    """Refuse what averages gradients by itself."""
    raise PrivateTrainingError(
        "The model runs inside a DistributedDataParallel, which averages gradients as a backward pass makes them; "
        "those of a private step are made later, in step. Train it by make_private, which turns that off."
    )
