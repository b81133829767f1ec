r"""Terms of one record that cancel: a gradient that is small though what it is the sum of is huge.

A row of a table that is looked up twice with gradients :math:`G` and :math:`-G`, steps of a sequence, windows of a
convolution: the norm may be zero, so that clipping keeps all of it, while a float sum over records loses everything
below the last place of :math:`G`, which is what other records added. Two guards:

* a norm far below the length of its terms is rounded outward by what rounding may have hidden (``outward``);
* a record whose terms weigh more than ``LIGHT`` clip norms in the sum is not added up together with others: its own
  gradient is formed first, from itself alone, and that is at most a clip norm long (``contraction``).

So what one record takes from the others by rounding is at most ``LIGHT`` units in the last place of the clip norm for
each number that is added.

Decision 410.
"""

from __future__ import annotations

from typing import TypeAlias

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["LIGHT", "Measured", "outward"]

LIGHT = 2.0**7
"""Clip norms. Terms of an honest record of T steps are about √T times as long as their sum, so few are formed alone."""

Measured: TypeAlias = tuple[Tensor, Tensor | None]
"""Each record's squared norm, and the length of its terms added up; none where a record is one term."""


def outward(norms: Tensor, terms: Tensor) -> Tensor:
    """Squared norms; far below its terms, a norm has what rounding may have added or hidden, too."""
    hidden = norms * LIGHT < terms
    # where, not times: what is not hidden may have endless terms
    return (norms + torch.where(hidden, 4 * torch.finfo(norms.dtype).eps * terms, 0)).square()
