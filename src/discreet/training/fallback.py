"""Calls without a rule: the call alone, once more, one record at a time under ``vmap``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from discreet.errors import extra
from discreet.training.rules import Rule

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Broadcast", "Recomputed"]


class Recomputed(Rule):
    """Gradients of one call by calling it again for each record. Exact for any function that treats records apart."""

    eager = True

    def __init__(self, run: Callable[..., Tensor], shared: tuple[Tensor, ...], wanted: int) -> None:
        self.run, self.shared, self.wanted = run, shared, wanted

    def _pull(self, gradient: Tensor, *parts: Tensor) -> Tensor:
        others = list(self.shared)

        def of_one(tensor: Tensor) -> Tensor:
            others[self.wanted] = tensor
            return self.run(others, [part.unsqueeze(0) for part in parts])

        _, back = torch.func.vjp(of_one, self.shared[self.wanted])
        return back(gradient.unsqueeze(0))[0]  # type: ignore[no-any-return]

    def instantiate(self, activations: list[Tensor], output_gradients: Tensor) -> Tensor:
        """Under ``vmap``; functions it does not know, in a loop."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # vmap warns where it would loop itself, more slowly
                return torch.func.vmap(self._pull, randomness="different")(  # type: ignore[no-any-return]
                    output_gradients, *activations)
        except (RuntimeError, UserWarning):
            rows = zip(output_gradients, *activations, strict=True)
            return torch.stack([self._pull(g, *parts) for g, *parts in rows])


class Broadcast(Rule):
    """A call on shared tensors alone whose output has records (an unusual ``expand``): each record's part, pulled back."""

    eager = True

    def __init__(self, output: Tensor, target: Tensor, apart: Callable[[Tensor], Tensor]) -> None:
        self.output, self.target, self.apart = output, target, apart

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """One backward pass a record."""
        found = []
        for i, gradient in enumerate(output_gradients):
            alone = torch.zeros_like(self.output)
            self.apart(alone)[i] = gradient
            found.append(torch.autograd.grad(self.output, self.target, alone, retain_graph=True)[0])
        return torch.stack(found)
