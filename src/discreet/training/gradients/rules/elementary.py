"""Handlers of what is not a product: something added, the scale of a normalisation, rows of a table, an expansion."""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.handlers import Handler, Measured, outward, squares

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Bias", "GroupScale", "Normalised", "Rows", "Spread"]


class Bias(Handler):
    """Something added along dimension ``channel`` of the output: the gradient is the output's, summed over the rest."""

    eager = True

    def __init__(self, channel: int) -> None:
        self.channel = channel

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """Sums over all but the record and the channel."""
        kept = output_gradients.shape[self.channel]
        if output_gradients.shape[1:].numel() == kept:
            return output_gradients.reshape(-1, kept)
        return output_gradients.sum([d for d in range(1, output_gradients.dim()) if d != self.channel])


class Normalised(Handler):
    """The scale of a normalisation: output gradients times normalised inputs, summed over all but ``kept``
    dimensions."""

    eager = True

    def __init__(self, normalise: Any, kept: tuple[int, ...]) -> None:
        self.normalise, self.kept = normalise, kept

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """The normalised input is computed again: cheaper than keeping it."""
        product = output_gradients if activations is None else output_gradients * self.normalise(activations)
        kept = {d % product.dim() for d in self.kept}
        others = [d for d in range(1, product.dim()) if d not in kept]
        return product.sum(others) if others else product


class GroupScale(Handler):
    r"""The scale of a group normalisation: :math:`\sum_t g_t x_t - \mu \sum_t g_t`, over the deviation.

    One product of inputs and gradients instead of the normalised inputs: as torch's own kernel does it. Activations and
    gradients are [records, channels, ...].
    """

    eager = True

    def __init__(self, groups: int, eps: float) -> None:
        self.groups, self.eps = groups, eps

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Sums over all but the record and the channel."""
        x, g = (part.reshape(*part.shape[:2], -1) for part in (activations, output_gradients))
        # mean and one over the deviation as the forward pass has them: ``var_mean`` takes ten times as long
        records, channels, size = x.shape
        _, mean, inverse = torch.native_group_norm(
            x.contiguous(), None, None, records, channels, size, self.groups, self.eps
        )
        products, sums = (part.view(x.shape[0], self.groups, -1) for part in ((x * g).sum(2), g.sum(2)))
        return products.addcmul_(sums, mean.unsqueeze(2), value=-1).mul_(inverse.unsqueeze(2)).flatten(1)


class Rows(Handler):
    """Rows of a table that were looked up. Activations: the record and the row of each look-up, and its coefficient."""

    def __init__(self, shape: torch.Size) -> None:
        self.shape = shape

    def squared_norms(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """A row that was looked up twice counts as one row."""
        return self.measure(activations, output_gradients)[0]

    def measure(self, activations: Any, output_gradients: Tensor) -> Measured:
        """The same; the terms are the look-ups of rows that a record has looked up more than once."""
        records, rows, coefficients, count = activations
        values = output_gradients if coefficients is None else output_gradients * coefficients[:, None]
        # each row that a record touched, once: keys [U], gradients [U, D]
        keys, places, times = torch.unique(records * self.shape[0] + rows, return_inverse=True, return_counts=True)
        merged = values.new_zeros(len(keys), values.shape[1]).index_add_(0, places, values)
        squared = merged.new_zeros(count).index_add_(0, keys // self.shape[0], squares(merged))
        if len(keys) == len(values):
            return squared, None
        again = (times[places] > 1).nonzero().flatten()
        lengths = squares(values[again]).sqrt_()
        terms = squared.new_zeros(count).index_add_(0, records[again], lengths)
        return outward(squared.sqrt_(), terms), terms

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """Rows added where they belong."""
        return self.add_weighted(activations, output_gradients, weights, output_gradients.new_zeros(self.shape))

    def add_weighted(self, activations: Any, output_gradients: Tensor, weights: Tensor, out: Tensor) -> Tensor:
        """The same, added to what is there: of a large table few rows are touched."""
        records, rows, coefficients = activations[:3]
        scale = weights[records] if coefficients is None else weights[records] * coefficients
        return out.view(self.shape).index_add_(0, rows, output_gradients * scale[:, None])

    def select(self, activations: Any, output_gradients: Tensor, records: Tensor) -> tuple[Any, Tensor]:
        """The look-ups of some of the records."""
        owners, rows, coefficients, count = activations
        place = owners.new_full((count,), -1)
        place[records] = torch.arange(len(records), device=owners.device)
        own = place[owners] >= 0
        kept = None if coefficients is None else coefficients[own]
        return (place[owners[own]], rows[own], kept, len(records)), output_gradients[own]

    def blank(self, activations: Any, output_gradients: Tensor, lost: Tensor) -> tuple[Any, Tensor]:
        """Zeros in place of their look-ups' gradients and coefficients."""
        owners, rows, coefficients, count = activations
        gone = lost[owners]
        kept = None if coefficients is None else coefficients.masked_fill(gone, 0)
        return (owners, rows, kept, count), output_gradients.masked_fill(gone[:, None], 0)

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """A whole table a record."""
        return self.add_instances(
            activations, output_gradients, output_gradients.new_zeros(activations[3], *self.shape)
        )

    def add_instances(self, activations: Any, output_gradients: Tensor, out: Tensor) -> Tensor:
        """The same, added to what is there, [records, *shape] in this order in memory."""
        records, rows, coefficients = activations[:3]
        values = output_gradients if coefficients is None else output_gradients * coefficients[:, None]
        out.view(-1, values.shape[1]).index_add_(0, records * self.shape[0] + rows, values)
        return out


class Spread(Handler):
    """A shared tensor repeated for every record (``expand``): each record's gradient is its part, summed to the
    shape."""

    eager = True

    def __init__(self, shape: torch.Size) -> None:
        self.shape = shape

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """Broadcasting, backwards."""
        records = output_gradients.shape[0]
        missing = output_gradients.dim() - 1 - len(self.shape)
        if missing > 0:
            output_gradients = output_gradients.flatten(1, missing).sum(1) if missing > 1 else output_gradients.sum(1)
        return output_gradients.sum_to_size((records, *self.shape))
