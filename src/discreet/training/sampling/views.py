"""Augmentation multiplicity: several views of a record share one clip.

A record's gradient is the mean of the gradients of its views (a picture as it is, mirrored, shifted), and that mean is
clipped. A record counts as one however many views it has, so the price is that of one; the gradient that is clipped is
less a matter of chance. A record's views follow one another: ``Augmented`` makes them, [views, ...] a record, and
``ManyViews`` folds those of a batch into its rows for the length of a call. The loader hands out records, so sampling,
clipping and verification are of records with all their views.

Reference: De, Berrada, Hayes, Smith and Balle (2022), "Unlocking high-accuracy differentially private image
classification through scale", Section 3; Fort et al. (2021).

Decision 424.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, cast

from discreet.errors import extra, whole

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import Dataset

__all__ = ["Augmented", "ManyViews"]


class Augmented(Dataset[Any]):
    """A dataset of (input, ...) whose inputs are ``views`` views of each, one after another; targets stay.

    ``augment`` makes one view of one input: it may use chance, and must not look at other records.

    >>> data = [(torch.ones(2), 0), (torch.zeros(2), 1)]
    >>> Augmented(data, lambda x: x + torch.randn(2), views=4)[0][0].shape
    torch.Size([4, 2])
    """

    def __init__(self, records: Any, augment: Callable[[Tensor], Tensor], *, views: int) -> None:
        self.records, self.augment, self.views = records, augment, whole("views", views, low=1)

    def __len__(self) -> int:
        return len(cast(Sized, self.records))

    def __getitem__(self, index: int) -> Any:
        first, *rest = self.records[index]
        return (torch.stack([self.augment(first) for _ in range(self.views)]), *rest)


class ManyViews(nn.Module):
    """A model for [records, views, ...]: each view goes through ``model``, and out comes [records, views, ...].

    Give it to ``make_private`` in place of the model, with a loss that is a mean over views:
    ``cross_entropy(out.flatten(0, 1), y.repeat_interleave(views))`` is. For one view a record call ``model`` itself,
    whose parameters these are.

    >>> net = torch.nn.Linear(2, 3)
    >>> ManyViews(net)(torch.zeros(5, 4, 2)).shape
    torch.Size([5, 4, 3])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Every view is a row of one call."""
        answers: Tensor = self.model(x.flatten(0, 1))
        return answers.unflatten(0, x.shape[:2])
