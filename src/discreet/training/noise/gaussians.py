"""Gaussian noise on tensors, each on its device: drawn on the CPU by ``discreet.random.fast``, added in place.

Small tensors are drawn for together, because a draw costs some microseconds however little it fills.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.errors import extra
from discreet.random import Rng, gaussian_noise
from discreet.random.keyed import Keyed, new_key
from discreet.training.memory import SMALL, side_by_side
from discreet.training.threads import on_threads

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Gaussians"]


class Gaussians:
    """The Gaussian noise of one step, from one stream.

    ``secure`` takes the cryptographic generator; without it a faster one, keyed by the same entropy.
    """

    __slots__ = ("_rng", "_secure")

    def __init__(self, rng: Rng, secure: bool = True) -> None:
        self._rng, self._secure = rng, secure

    def add(self, tensors: Sequence[Tensor], sigma: float, scale: float = 1.0, *, subtract: bool = False) -> None:
        """Each tensor plus noise of standard deviation ``sigma``, times ``scale``; afterwards nothing holds it without.
        With ``subtract`` the noise is taken away: what the same key has added is gone."""
        small: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        large = []
        for tensor in tensors:
            if tensor.numel() > SMALL:
                large.append(tensor)
            else:
                small.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        for group in small.values():
            together = group[0] if len(group) == 1 else side_by_side(group)
            if together is not None:
                self._add(together, sigma, scale, subtract)
                continue
            flat = [tensor.view(-1) for tensor in group]
            together = torch.cat(flat)
            self._add(together, sigma, scale, subtract)
            torch._foreach_copy_(flat, together.split_with_sizes([len(part) for part in flat]))
        for tensor in large:
            self._add(tensor, sigma, scale, subtract)

    def _add(self, tensor: Tensor, sigma: float, scale: float, subtract: bool) -> None:
        here = tensor.cpu()
        gaussian_noise(
            here.numpy(),
            sigma,
            self._rng,
            secure=self._secure,
            add=True,
            subtract=subtract,
            scale=scale,
            team=on_threads,
        )
        if here is not tensor:
            tensor.copy_(here)

    def key(self) -> bytes:
        """A key for noise that will be drawn again; secret."""
        return new_key(self._rng)

    def keyed(self, key: bytes) -> Gaussians:
        """The noise of a key: the same for the same tensors, however often it is drawn."""
        return Gaussians(Keyed(key, reproducible=self._rng.reproducible), self._secure)

    def again(self) -> Gaussians:
        """The noise of a key, from its beginning."""
        assert isinstance(self._rng, Keyed)
        self._rng.rewind()
        return self

    def number(self, value: float, sigma: float) -> float:
        """A number plus noise."""
        return value + float(gaussian_noise(1, sigma, self._rng, secure=self._secure)[0])
