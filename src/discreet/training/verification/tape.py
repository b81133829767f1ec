"""The loop's own code between a batch and a step, written down: calls of the model, calls of torch functions, backward
passes.

Only what happens outside modules is written down call by call; a call of the model is one entry, with what chance drew
inside. ``replay`` computes it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.errors import PrivateTrainingError
from discreet.training.gradients.trace.functions import out_of_place
from discreet.training.gradients.trace.random_draws import CHANCE, Draws, by_chance, drawn
from discreet.training.gradients.trace.trees import numbers, tensors
from discreet.training.verification.listening import Listening, written_tensors

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.autograd.graph import _engine_run_backward
    from torch.overrides import _get_current_function_mode_stack

__all__ = ["LossTape", "TapeEntry", "Write", "run_backward"]

_SIZES = {Tensor.size, Tensor.__len__, Tensor.numel, Tensor.nelement, torch.numel, Tensor.shape.__get__}  # type: ignore[attr-defined]
_GRAD = Tensor.grad.__get__  # type: ignore[union-attr]
_BACKWARD = {"grad_tensors": "gradient"}  # names of torch.autograd.backward, in those of Tensor.backward
READS = frozenset(
    {
        "__array__",
        "__bool__",
        "__complex__",
        "__float__",
        "__index__",
        "__int__",
        "allclose",
        "equal",
        "is_nonzero",
        "item",
        "numpy",
        "tolist",
    }
)
"""Torch functions that tell Python values."""

RAGGED = frozenset({"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive"})
"""Torch functions whose result has as many entries as the values say."""

HALVES = frozenset({torch.bfloat16, torch.float16})

MUCH = 4 << 20  # numbers
LONGEST = 5_000  # calls that are written down


@dataclass(slots=True)
class TapeEntry:
    """An entry of the tape: a torch function, or a module called from outside."""

    func: Any
    args: Any
    kwargs: Any
    outputs: list[Tensor]
    graded: bool
    casts: tuple[bool, torch.dtype]  # whether autocast was on, and to what
    draws: Draws = field(default_factory=list)
    chance: Any = None  # states of Python's and numpy's generators, of a module's call
    inputs: list[Tensor] = field(default_factory=list)  # the tensors among its arguments

    @property
    def is_module(self) -> bool:
        """Whether it is a call of the model or of one of its modules."""
        return isinstance(self.func, nn.Module)


@dataclass(frozen=True, slots=True)
class Write:
    """A call of the loop's own that writes into a tensor."""

    target: Tensor
    of_data: bool  # whether the batch is among what is written
    numbers: tuple[float, ...]  # of Python's that take part


class LossTape(Listening):
    """Writes down what a loop does with a batch, from the loader's ``yielded`` tensors to ``step``.

    ``data`` holds, by identity, what was computed from the batch; ``after`` what was computed from outputs of the model
    that carry gradients.
    """

    def __init__(
        self,
        yielded: Any,
        parameters: Container[int],
        begun: Callable[[], None] | None = None,
        alone: Callable[[Sequence[int]], list[Tensor] | None] | None = None,
        *,
        counted: bool = False,
    ) -> None:
        super().__init__()
        self.given, self._parameters, self._begun = tensors(yielded), parameters, begun
        self._before = [x.detach().clone() for x in self.given]
        self.calls: list[TapeEntry] = []
        self.backwards: list[tuple[Tensor, Tensor | None]] = []
        self.drawn: set[int] = set()  # tensors that chance made outside the model: taken as they are, like the data
        self.data: set[int] = {id(x) for x in self.given}
        self.after: set[int] = set()
        self.originals: dict[int, Tensor] = {}  # of tensors that were written over
        self.counted = counted  # whether Python was told a size
        self.told: list[float] = []  # the sizes it was told
        self._ragged: set[int] = set()  # tensors whose size tells values
        self.read = self.reading = False  # whether it was told values of records: before a backward pass, or at all
        self.gradients_read = False  # whether a parameter's gradient was asked for before step
        self.writes: list[Write] = []  # of the loop's own, into whatever
        self.alone = alone  # gives records as they are collated alone
        self.unjudged = ""  # why nothing can be said, if so
        self.halves: set[torch.dtype] = set()  # half precisions that the model computed in, whatever it gave back
        self._inside: TapeEntry | None = None
        self._in_backward = False

    def before(self) -> Iterator[tuple[Tensor, Tensor]]:
        """What the loader gave, and how it was then: the loop may have written into it."""
        return zip(self.given, self._before, strict=False)

    @property
    def wanted(self) -> list[Tensor]:
        """What backward passes began with: losses, and the weights of their entries."""
        return [x for pair in self.backwards for x in pair if x is not None]

    @property
    def numbers(self) -> int:
        """How many it holds."""
        return sum(x.numel() for call in self.calls for x in call.outputs) + sum(x.numel() for x in self.given)

    @property
    def large(self) -> bool:
        """Whether that is so much that memory should be returned before more is taken: less the next step uses
        again."""
        return self.numbers > MUCH

    def forget(self) -> None:
        """Backward passes so far do not count."""
        self.backwards.clear()

    # --- calls of the model ----------------------------------------------------------------------------------------

    def called(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A call of the model begins."""
        if not self._in_backward and not self.finished:
            if self._begun is not None:
                begun, self._begun, self.paused = self._begun, None, True
                try:
                    begun()  # the first one: the model is as the batch meets it
                finally:
                    self.paused = False
            chance = random.getstate(), np.random.get_state()  # noqa: NPY002  (the user's generator, not ours)
            self._inside = TapeEntry(module, args, kwargs, [], torch.is_grad_enabled(), _casts(), chance=chance)

    def answered(self, output: Any) -> None:
        """It ends."""
        call, self._inside = self._inside, None
        if call is not None:
            self._write(replace(call, outputs=tensors(output)))

    # --- calls of torch functions ----------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.finished or self.paused:
            return func(*args, **kwargs)
        if self._inside is not None or self._in_backward:  # there, checkpointed modules run again, and draw the same
            found = drawn(func, args, kwargs, self._draw, self) if by_chance(func) else func(*args, **kwargs)
            self.halves |= {found.dtype} & HALVES if isinstance(found, Tensor) else set()
            return found
        if func is Tensor.backward or func is torch.autograd.backward:
            return self._backward(*args, **{_BACKWARD.get(key, key): value for key, value in kwargs.items()})
        if func == _GRAD and self.backwards and id(args[0]) in self._parameters:
            self.gradients_read = True
        inputs, name = tensors((args, kwargs)), getattr(func, "__name__", "")
        if name in READS and any(id(x) in self.data for x in inputs):
            self.reading = True
        for target in written_tensors(func, args, kwargs):
            of_data = any(id(x) in self.data for x in inputs)
            self.writes.append(Write(target, of_data, tuple(numbers((args, kwargs)))))
        written = self._keep_original(func, args, inputs)
        output = func(*args, **kwargs)
        if func in _SIZES:
            self.counted, self.reading = True, self.reading or id(args[0]) in self._ragged
            self.told += map(float, output) if isinstance(output, tuple) else [float(output)]
        call = TapeEntry(func, args, kwargs, written or tensors(output), torch.is_grad_enabled(), _casts())
        masks = name == "__getitem__" and any(x.dtype == torch.bool for x in tensors(args[1:]))
        if masks or name in RAGGED or any(id(x) in self._ragged for x in inputs):
            self._ragged |= {id(x) for x in call.outputs}
        self._write(call, inputs)
        return output

    def _draw(self, draw: Callable[[], Tensor]) -> Tensor:
        made = draw()
        if self._inside is not None:
            self._inside.draws.append(made.detach().clone())
        return made

    def _keep_original(self, func: Any, args: Any, inputs: list[Tensor]) -> list[Tensor]:
        """What a call writes over, if it writes; kept as it was where later entries are computed from it."""
        setting = getattr(func, "__name__", "") == "__setitem__"
        if not setting and (out_of_place(func) is None or not args or not isinstance(args[0], Tensor)):
            return []
        x = args[0]
        if id(x) not in self.after and id(x) not in self.originals and any(id(y) in self.after for y in inputs):
            self.originals[id(x)] = x.detach().clone()
        return [x]

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
                "parameters are collected on the way. TapeEntry backward without it."
            )
        losses = [loss] if isinstance(loss, Tensor) else list(loss)
        gradients = [gradient] * len(losses) if gradient is None or isinstance(gradient, Tensor) else list(gradient)
        self.backwards += list(zip(losses, gradients, strict=True))
        self.read, self._in_backward = self.read or self.reading, True
        below = [
            mode for mode in _get_current_function_mode_stack() if isinstance(mode, LossTape) and not mode.finished
        ]
        try:
            if below:  # another run's, which must hear of it too
                torch.autograd.backward(losses, gradients, retain_graph, create_graph)
                return
            with self:
                run_backward(losses, gradients, retain_graph=retain_graph, create_graph=create_graph)
        finally:
            self._in_backward = False

    def _write(self, call: TapeEntry, inputs: list[Tensor] | None = None) -> None:
        if not call.outputs:
            return
        ids = {id(x) for x in call.outputs}
        inputs = tensors((call.args, call.kwargs)) if inputs is None else inputs
        call = replace(call, inputs=inputs)
        if not call.is_module and getattr(call.func, "__name__", "") in CHANCE:
            self.drawn |= ids
        if call.is_module or any(id(x) in self.data for x in inputs):
            self.data |= ids
        if (call.is_module and call.graded) or any(id(x) in self.after for x in inputs):
            self.after |= ids
        self.calls.append(call)
        if len(self.calls) > LONGEST:
            self.unjudged = f"it makes more than {LONGEST} calls"
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


def _casts() -> tuple[bool, torch.dtype]:
    return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
