"""The loop's own code between a batch and a step, written down: calls of the model, calls of torch functions, backward
passes.

Only what happens outside modules is written down call by call; a call of the model is one entry, with what chance drew
inside. ``replay`` computes it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.errors import PrivateTrainingError
from discreet.training.gradients.trace.random_draws import CHANCE, Draws, by_chance, drawn
from discreet.training.gradients.trace.trees import numbers, tensors
from discreet.training.gradients.trace.watch import CallListener
from discreet.training.verification.listening import Listening, written_tensors
from discreet.training.verification.outside import OutsideTraining

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.autograd.graph import _engine_run_backward
    from torch.overrides import _get_current_function_mode_stack

__all__ = ["LossTape", "TapeEntry", "Write", "run_backward"]

_SIZES = {Tensor.size, Tensor.__len__, Tensor.numel, Tensor.nelement, torch.numel, Tensor.shape.__get__}  # type: ignore[attr-defined]
_GRAD, _SET_GRAD = Tensor.grad.__get__, Tensor.grad.__set__  # type: ignore[union-attr]
_BACKWARD = {"grad_tensors": "gradient"}  # names of torch.autograd.backward, in those of Tensor.backward
READS = frozenset(
    {
        *("__array__", "__bool__", "__complex__", "__float__", "__index__", "__int__"),
        *("allclose", "equal", "is_nonzero", "item", "numpy", "tolist"),
    }
)
"""Torch functions that tell Python values."""

RAGGED = frozenset({"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive"})
"""Torch functions whose result has as many entries as the values say."""

HALVES = frozenset({torch.bfloat16, torch.float16})

MUCH = 4 << 20  # numbers
LONGEST = 5_000  # calls that are written down
OVERWRITING = frozenset({"copy_", "fill_", "zero_"})


@dataclass(slots=True)
class TapeEntry:
    """An entry of the tape: a torch function, or a module called from outside."""

    func: Any
    args: Any
    kwargs: Any
    outputs: list[Tensor]
    inputs: list[Tensor]  # the tensors among its arguments
    graded: bool = field(default_factory=torch.is_grad_enabled)
    half: torch.dtype | None = field(default_factory=lambda: _autocast())  # what autocast was on for
    draws: Draws = field(default_factory=list)
    chance: Any = None  # states of Python's and numpy's generators, of a module's call

    @property
    def is_module(self) -> bool:
        """Whether it is a call of the model or of one of its modules."""
        return isinstance(self.func, nn.Module)

    @property
    def name(self) -> str:
        """The torch function's."""
        return getattr(self.func, "__name__", "")

    def again(self, args: Any, kwargs: Any, run: Callable[[TapeEntry, Any, Any], list[Tensor]]) -> list[Tensor]:
        """Make the call with other arguments; ``run`` makes those of the model."""
        cast = nullcontext() if self.half is None else torch.autocast("cpu", dtype=self.half)
        with torch.set_grad_enabled(self.graded), cast:
            if self.is_module:
                return run(self, args, kwargs)
            return tensors(self.func(*args, **kwargs)) or tensors(args[:1])  # what writes may return nothing


def _autocast() -> torch.dtype | None:
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


@dataclass(frozen=True, slots=True)
class Write:
    """A call of the loop's own that writes into a tensor."""

    target: Tensor
    of_data: bool  # whether the batch is among what is written
    numbers: tuple[float, ...]  # of Python's that take part


class LossTape(Listening, CallListener):
    """Writes down what a loop does with a batch of ``records``, from the loader's ``yielded`` tensors to ``step``.

    ``data`` holds, by identity, what was computed from the batch; ``after`` what was computed from outputs of the model
    that carry gradients; ``alone`` gives records as they are collated alone.
    """

    def __init__(
        self,
        records: int,
        yielded: Any = (),
        parameters: Container[int] = (),
        before_forward: Callable[[], None] | None = None,
        alone: Callable[[Sequence[int]], list[Tensor] | None] | None = None,
        outside: OutsideTraining | None = None,
    ) -> None:
        super().__init__()
        self.records, self.given, self.alone = records, tensors(yielded), alone
        self.parameters, self._before_forward, self._outside = parameters, before_forward, outside
        self._before = [x.detach().clone() for x in self.given]
        self.calls: list[TapeEntry] = []
        self.backwards: list[tuple[Tensor, Tensor | None]] = []
        self.drawn: set[int] = set()  # tensors that chance made outside the model: taken as they are, like the data
        self.data: set[int] = {id(x) for x in self.given}
        self.after: set[int] = set()
        self.originals: dict[int, Tensor] = {}  # of tensors that were written over
        self.sizes: list[float] = []  # that Python asked for
        self._ragged: set[int] = set()  # tensors whose size tells values
        self.values_asked = self.values_asked_before_backward = False  # whether Python asked for values of records
        self.gradients_read = False  # whether a parameter's gradient was asked for before step
        self.writes: list[Write] = []  # of the loop's own, into whatever
        self.too_long = False  # to be computed again
        self.halves: set[torch.dtype] = set()  # half precisions that anything was computed in
        self._inside: TapeEntry | None = None
        self._in_backward = False

    def before(self) -> Iterator[tuple[Tensor, Tensor]]:
        """What the loader gave, and how it was then: the loop may have written into it."""
        return zip(self.given, self._before, strict=False)

    @property
    def large(self) -> bool:
        """Whether it holds so many numbers that memory should be returned before more is taken: fewer the next step
        uses again."""
        held = [*self.given, *(x for call in self.calls for x in call.outputs)]
        return sum(x.numel() for x in held) > MUCH

    def forget(self) -> None:
        """Backward passes so far do not count."""
        self.backwards.clear()

    # --- what led to the losses ------------------------------------------------------------------------------------

    @property
    def wanted(self) -> list[Tensor]:
        """What backward passes began with: losses, and the weights of their entries."""
        return [x for pair in self.backwards for x in pair if x is not None]

    def calls_of_losses(self) -> list[TapeEntry]:
        """The calls that lead to the losses, in order."""
        return self.calls_leading_to(self.wanted, lambda ids: True)

    def calls_leading_to(self, wanted: Iterable[Tensor], made_again: Callable[[set[int]], bool]) -> list[TapeEntry]:
        """The calls that lead to the wanted tensors, in order, of those whose outputs are to be ``made_again``."""
        needed, calls = {id(x) for x in wanted}, []
        for call in reversed(self.calls):
            ids = {id(x) for x in call.outputs}
            if ids & needed and made_again(ids):
                calls.append(call)
                needed |= {id(x) for x in call.inputs}
        return calls[::-1]

    def ancestors(self) -> set[int]:
        """Everything that a loss was computed from, by identity, as it was when the batch began: not what a call has
        written over before."""
        used, fresh = set[int](), set[int]()
        for call in self.calls_of_losses():
            inputs = {id(x) for x in call.inputs}
            fresh |= {id(call.args[0])} if call.name in OVERWRITING else set()
            used |= inputs - fresh
            fresh |= {id(x) for x in call.outputs} - inputs
        return used | {id(x) for x in self.wanted} - fresh

    # --- calls of the model ----------------------------------------------------------------------------------------

    def called(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A call of the model begins."""
        if self._in_backward or self.finished:
            return
        if self._before_forward is not None:  # the first one: the model is as the batch meets it
            look, self._before_forward, self.paused = self._before_forward, None, True
            try:
                look()
            finally:
                self.paused = False
        chance = random.getstate(), np.random.get_state()  # noqa: NPY002  (the user's generator, not ours)
        self._inside = TapeEntry(module, args, kwargs, [], tensors((args, kwargs)), chance=chance)

    def answered(self, output: Any) -> None:
        """It ends."""
        call, self._inside = self._inside, None
        if call is not None:
            self._write_down(replace(call, outputs=tensors(output)))

    # --- calls of torch functions ----------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.finished or self.paused:
            return func(*args, **kwargs)
        if self._inside is not None or self._in_backward:  # there, checkpointed modules run again, and draw the same
            output = drawn(func, args, kwargs, self._draw, self) if by_chance(func) else func(*args, **kwargs)
            self.halves |= {output.dtype} & HALVES if isinstance(output, Tensor) else set()
            return output
        if func is Tensor.backward or func is torch.autograd.backward:
            return self._backward(*args, **{_BACKWARD.get(key, key): value for key, value in kwargs.items()})
        if func == _GRAD and self.backwards and id(args[0]) in self.parameters:
            self.gradients_read = True
        inputs, written = tensors((args, kwargs)), written_tensors(func, args, kwargs)
        for target in written:
            self._note_write(target, inputs, numbers((args, kwargs)))
        output = func(*args, **kwargs)
        if func == _SET_GRAD and self._outside is not None:  # taken away, though this tape may hold it
            self._outside.compare(id(args[0]))
        call = TapeEntry(func, args, kwargs, written or tensors(output), inputs)
        self._note_asked(call, output)
        self._write_down(call)
        return output

    def _note_write(self, target: Tensor, inputs: list[Tensor], numbers: list[float]) -> None:
        """What is written over is kept as it was, where later entries are computed from it."""
        self.writes.append(Write(target, any(id(x) in self.data for x in inputs), tuple(numbers)))
        if id(target) not in self.after | self.originals.keys() and any(id(x) in self.after for x in inputs):
            self.originals[id(target)] = target.detach().clone()

    def _note_asked(self, call: TapeEntry, output: Any) -> None:
        """What Python asked for: values of records, sizes, and sizes that tell values."""
        self.values_asked |= call.name in READS and any(id(x) in self.data for x in call.inputs)
        if call.func in _SIZES:
            self.values_asked |= id(call.args[0]) in self._ragged
            self.sizes += map(float, output) if isinstance(output, tuple) else [float(output)]
        masks = call.name == "__getitem__" and any(x.dtype == torch.bool for x in tensors(call.args[1:]))
        if masks or call.name in RAGGED or any(id(x) in self._ragged for x in call.inputs):
            self._ragged |= {id(x) for x in call.outputs}

    def _draw(self, draw: Callable[[], Tensor]) -> Tensor:
        made = draw()
        if self._inside is not None:
            self._inside.draws.append(made.detach().clone())
        return made

    def _backward(
        self,
        loss: Tensor | Sequence[Tensor],
        gradient: Tensor | Sequence[Tensor | None] | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """What ``backward`` was given; a parameter is no leaf of the graph, so one among ``inputs`` would get
        nothing."""
        if inputs is not None:
            raise PrivateTrainingError(
                "backward was given inputs=, but must go through the whole graph: the gradients of "
                "parameters are collected on the way. Call backward without it."
            )
        losses = [loss] if isinstance(loss, Tensor) else list(loss)
        gradients = [gradient] * len(losses) if gradient is None or isinstance(gradient, Tensor) else list(gradient)
        self.backwards += list(zip(losses, gradients, strict=True))
        self.values_asked_before_backward |= self.values_asked
        reached = [] if self._outside is None else self._outside.reached(self, losses)
        self._in_backward = True
        below = [mode for mode in _get_current_function_mode_stack() if isinstance(mode, LossTape)]
        try:
            if any(not mode.finished for mode in below):  # another run's, which must hear of it too
                torch.autograd.backward(losses, gradients, retain_graph, create_graph)
            else:
                with self:
                    run_backward(losses, gradients, retain_graph=retain_graph, create_graph=create_graph)
        finally:
            self._in_backward = False
        if self._outside is not None:
            self._outside.note(reached)

    def _write_down(self, call: TapeEntry) -> None:
        if not call.outputs:
            return
        ids, inputs = {id(x) for x in call.outputs}, call.inputs
        self.halves |= {x.dtype for x in call.outputs} & HALVES
        if not call.is_module and call.name in CHANCE:
            self.drawn |= ids
        if call.is_module or any(id(x) in self.data for x in inputs):
            self.data |= ids
        if (call.is_module and call.graded) or any(id(x) in self.after for x in inputs):
            self.after |= ids
        self.calls.append(call)
        if len(self.calls) > LONGEST:
            self.too_long = True
            self.calls.clear()


def run_backward(
    losses: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """``torch.autograd.backward`` with modes left on, so that they see modules that run again (checkpoints)."""
    if any(g is None and loss.numel() != 1 for loss, g in zip(losses, gradients, strict=True)):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    weights = tuple(torch.ones_like(loss) if g is None else g for loss, g in zip(losses, gradients, strict=True))
    retain = create_graph if retain_graph is None else retain_graph
    _engine_run_backward(tuple(losses), weights, retain, create_graph, (), allow_unreachable=True, accumulate_grad=True)
