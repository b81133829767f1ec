"""Which call of a pass is which, and what the tensors of a probe are made of: records, or parameters and constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.trace.functions import out_of_place
from discreet.training.gradients.trace.trees import tensors

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.autograd.graph import saved_tensors_hooks

__all__ = ["Origins", "Positions", "without_saved_tensors"]


class Positions:
    """Where a pass is: in which module, in which of its calls, at which call of which torch function.

    Counted alike in a probe and in a real pass, or calls would be taken for others. A module that calls more functions
    for other records (experts, of which only some are hit; a mask that is left out) puts nothing off outside of it, and
    no other function inside.
    """

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._outside: list[tuple[Any, Any, dict[Any, int]]] = []
        self._frame: Any = None
        self._function: Any = None
        self._counts: dict[Any, int] = {}

    @property
    def now(self) -> tuple[Any, ...]:
        """The current function: which module's call it is in, and its number among that function's calls there."""
        return self._frame, self._function, self._counts.get(self._function, 0)

    def source(self, number: int) -> tuple[Any, ...]:
        """The place of the tensor of this number whose rows the current module picks."""
        return self._frame, "source", number

    def advance(self, function: Any) -> None:
        """The next function."""
        self._function = function
        self._counts[function] = self._counts.get(function, 0) + 1

    def enter(self, module: str) -> None:
        """A module inside the current one begins."""
        before = self._calls.get(module, 0)
        self._begin((module, before))
        self._calls[module] = before + 1

    def leave(self) -> None:
        """It ends."""
        if self._outside:
            self._frame, self._function, self._counts = self._outside.pop()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Functions that the current function calls: they are counted by themselves."""
        self._begin(self.now)
        try:
            yield
        finally:
            self.leave()

    def _begin(self, frame: Any) -> None:
        self._outside.append((self._frame, self._function, self._counts))
        self._frame, self._function, self._counts = frame, None, {}


def without_saved_tensors() -> Any:
    """What is saved for a backward pass stays out of sight of whoever counts it: gradient checkpointing would compute a
    whole block again for a graph of parameters alone."""
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is None:  # type: ignore[attr-defined]
        return nullcontext()
    # Detached, because a node that saves its own output as it is would keep itself alive.
    return saved_tensors_hooks(Tensor.detach, lambda x: x)


class Origins:
    """The tensors of a probe that come from its records. What does not, is made of parameters and constants, like
    them."""

    def __init__(self, inputs: Iterable[Tensor] = ()) -> None:
        self._from_records = {id(x): x for x in inputs}  # held: an identity is one while the tensor lives

    def follow(self, func: Any, args: Any, kwargs: Any, output: Any) -> bool:
        """Whether a call took something that comes from records; what it gave does then, too."""
        known = self._from_records
        if not any(id(x) in known for x in tensors((args, kwargs))):
            return False
        changed = getattr(func, "__name__", "") == "__setitem__" or out_of_place(func) is not None
        known |= {id(x): x for x in tensors((output, args[0] if changed else ()))}
        return True
