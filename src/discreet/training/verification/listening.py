"""What hears of torch functions while a loop runs, and which tensors of a model they write into.

``Afterwards`` listens from a verified step to the next batch: what the loop makes of the batch then must neither be
written into the model nor be used on later batches.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.state import named_tensors, path_of
from discreet.training.gradients.trace.functions import out_of_place
from discreet.training.gradients.trace.trees import tensors

with extra("torch"):
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

__all__ = ["Afterwards", "Listening", "ModelTensors", "sweep", "written_tensors"]

_SET_DATA = Tensor.data.__set__  # type: ignore[attr-defined]


class Listening(TorchFunctionMode):
    """A mode that a loop runs under, perhaps until after it was left."""

    finished = paused = False

    def pause(self) -> None:
        """Hear nothing until ``resume``."""
        self.paused = True

    def resume(self) -> None:
        """Hear again."""
        self.paused = False

    def finish(self) -> None:
        """Hear nothing any more; ``sweep`` takes it off torch's stack of modes."""
        self.finished = True


def sweep() -> None:
    """Take every finished listener off torch's stack of modes, also from under modes that came later."""
    above = []
    while any(isinstance(mode, Listening) and mode.finished for mode in _get_current_function_mode_stack()):
        mode = _pop_mode()
        if not (isinstance(mode, Listening) and mode.finished):
            above.append(mode)
    for mode in reversed(above):
        _push_mode(mode)


def written_tensors(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a call of a torch function writes into.

    >>> import torch
    >>> x = torch.zeros(2)
    >>> written_tensors(Tensor.add_, (x, 1), {})[0] is x, written_tensors(Tensor.add, (x, 1), {})
    (True, [])
    """
    name = getattr(func, "__name__", "")
    of_lists = name.startswith(("_foreach_", "_fused_")) and name.endswith("_")
    if of_lists or name == "__setitem__" or func == _SET_DATA or out_of_place(func) is not None:
        return tensors(args[:1])
    return tensors(kwargs["out"]) if kwargs.get("out") is not None else []


class ModelTensors:
    """A model's parameters and buffers by name, and which of them were written over by torch's own count of writes:
    cheap enough for every step."""

    def __init__(self, model: nn.Module) -> None:
        self._held = [(path_of(place), owner, key) for place, owner, key in named_tensors(model)]
        self.begin()

    def begin(self) -> None:
        """Count writes from now on."""
        self._before = self._versions()

    def rewritten(self) -> list[str]:
        """The names of what was written over, or replaced."""
        now = self._versions()
        if now == self._before:
            return []
        return [name for (name, *_), one, other in zip(self._held, now, self._before, strict=True) if one != other]

    def _versions(self) -> list[tuple[int, int]]:
        now = [owner.get(key) for _, owner, key in self._held]
        return [(id(x), 0 if x is None else x._version) for x in now]

    def __contains__(self, name: object) -> bool:
        return any(name == held for held, *_ in self._held)

    def name_of(self, x: Tensor) -> str | None:
        """The name of what a tensor is, or a view of."""
        place = _place(x)
        for name, owner, key in self._held:
            own = owner.get(key)
            if own is x or (own is not None and own.numel() and place == _place(own)):
                return name
        return None


def _place(x: Tensor) -> int:
    try:
        return x.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # of a kind that has none
        return id(x)


class Afterwards(Listening):
    """Follows what a loop makes of a batch after its step."""

    def __init__(self, batch: Iterable[Tensor]) -> None:
        super().__init__()
        self._made = {id(x): weakref.ref(x) for x in batch}
        self.written: list[Tensor] = []  # what the loop wrote the batch into

    @property
    def made(self) -> list[Tensor]:
        """What is left of the batch, and of what it was made into."""
        return [x for x in (ref() for ref in self._made.values()) if x is not None]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        if self.finished or self.paused:
            return output
        known = [self._made.get(id(x)) for x in tensors((args, kwargs))]
        if any(ref is not None and ref() is not None for ref in known):
            targets = written_tensors(func, args, kwargs)
            self.written += targets
            self._made |= {id(x): weakref.ref(x) for x in [*tensors(output), *targets]}
        return output
