"""Parameters written into tensors: ``x[:, 0] = self.token``, ``x[mask] = self.token``, ``x.copy_(self.table)``.

Each is a function that is not in place, whose result is then copied to where it was wanted: a part of the tensor and
what takes its place (``written``), or a choice between the two (``torch.where``). Both have rules.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.errors import PrivateTrainingError

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.overrides import handle_torch_function, has_torch_function

__all__ = ["assign", "written"]


def written(x: Tensor, value: Tensor, non_blocking: bool = False) -> Tensor:
    """What ``x.copy_(value)`` leaves in x."""
    if has_torch_function((x, value)):
        return handle_torch_function(written, (x, value), x, value)  # type: ignore[no-any-return]
    return value.to(x.dtype).expand_as(x)


def assign(x: Tensor, index: Any, value: Any) -> Tensor:
    """``x[index] = value``; returns what was written to."""
    if not isinstance(value, Tensor):
        value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, (Tensor, list)) for part in parts):
        part = x[index]
        while value.dim() > part.dim() and value.shape[0] == 1:  # as torch does
            value = value[0]
        return part.copy_(value)
    return x.copy_(torch.where(_mask(x, index), _trailing(x, parts, value), x))


def _mask(x: Tensor, index: Any) -> Tensor:
    """Where an index takes something."""
    mask = torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    mask[index] = True
    return mask


def _trailing(x: Tensor, parts: tuple[Any, ...], value: Tensor) -> Tensor:
    """A value for every place alike: of dimensions that the index leaves alone, which come last."""
    taken = sum(part.dim() if isinstance(part, Tensor) and part.dtype == torch.bool else 1 for part in parts)
    while value.dim() and value.shape[0] == 1:
        value = value[0]
    if any(part is None or part is Ellipsis for part in parts) or value.dim() > x.dim() - taken:
        raise PrivateTrainingError(
            "forward writes a tensor made of parameters to places picked by a tensor (x[index] = value), with another "
            "value for each place: whose gradient it is cannot be told. Write torch.where(mask, value, x), with a mask "
            "and a value that have the records' dimension."
        )
    return value
