r"""From what a call saw and what came back to per-record gradients: one handler a kind of call.

A handler knows one shared tensor (a weight, a bias) of one call. Given the activations it saved on the way forward and
the gradients that reached the call's output, both with the record as first dimension, it gives

``squared_norms``
    the squared norm of each record's gradient, without forming the gradients where that is cheaper (ghost clipping);
``weighted_sum``
    :math:`\sum_i w_i G_i`, by one contraction of the size of an ordinary weight gradient;
``instantiate``
    the gradients :math:`G_i` themselves.

Most weights are used through outer products, and have a file of their own (``outer_products``).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.cancellation import Measured, outward
from discreet.training.gradients.trace.trees import mapped

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = [
    "KEPT",
    "Bias",
    "GroupScale",
    "Handler",
    "Normalised",
    "Rows",
    "Spread",
    "flattened",
    "squares",
    "weighted_instances",
]

KEPT = 1 << 22  # numbers of instantiated gradients of one tensor that may be kept


class Handler:
    """The gradients of one shared tensor in one call. Subclasses say at least how to ``instantiate`` them."""

    eager = False  # whether gradients are small and should be formed as soon as the output's gradient is there

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """The gradient of every record, [records, *shape of the shared tensor]."""
        raise NotImplementedError

    def prefers_instances(self, activations: Any, output_gradients: Tensor) -> bool:
        """Whether forming the gradients is cheaper, in time and memory, than measuring them without."""
        return self.eager

    def squared_norms(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """The squared norm of each record's gradient, [records]."""
        return self.instantiate(activations, output_gradients).flatten(1).square().sum(1)

    def measure(self, activations: Any, output_gradients: Tensor) -> Measured:
        """Squared norms, and how long the terms are that ``weighted_sum`` adds up for a record: where it adds several
        that may cancel, they must be told (``cancellation``)."""
        return self.squared_norms(activations, output_gradients), None

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """The sum of the records' gradients, each times its weight, in the shape of the shared tensor."""
        return weighted_instances(self.instantiate(activations, output_gradients), weights)

    def select(self, activations: Any, output_gradients: Tensor, records: Tensor) -> tuple[Any, Tensor]:
        """Activations and gradients of some of the records, by their numbers."""
        return mapped(lambda x: x[records], activations), output_gradients[records]

    def blank(self, activations: Any, output_gradients: Tensor, lost: Tensor) -> tuple[Any, Tensor]:
        """Zeros in place of what some records brought, in every tensor: zero times not-a-number is not zero."""

        def without(x: Tensor) -> Tensor:
            return x.masked_fill(lost.view(-1, *[1] * (x.dim() - 1)), 0) if x.dim() and len(x) == len(lost) else x

        return mapped(without, activations), without(output_gradients)


def flattened(instances: Tensor) -> Tensor:
    """Gradients as rows, in the order in which they lie in memory, so that nothing is copied."""
    if instances.dim() < 3:
        return instances if instances.dim() == 2 else instances[:, None]  # of a single number
    return instances.permute(0, *_memory_order(instances)).flatten(1)


def weighted_instances(instances: Tensor, weights: Tensor) -> Tensor:
    """The sum over records of gradients times weights."""
    if instances.dim() < 3:
        return weights @ instances
    order = _memory_order(instances)
    total = (weights @ flattened(instances)).view([instances.shape[d] for d in order])
    return total.permute([order.index(d) for d in range(1, instances.dim())])


def _memory_order(instances: Tensor) -> list[int]:
    return sorted(range(1, instances.dim()), key=lambda d: -instances.stride()[d])


def squares(x: Tensor) -> Tensor:
    """Squared lengths along the last dimension, by the way that is fastest for its size."""
    if x.shape[-1] <= 16:
        return x.square() @ _ones(x.shape[-1], x.dtype, x.device)
    return torch.linalg.vector_norm(x, dim=-1).square_()


@cache
def _ones(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(size, dtype=dtype, device=device)


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
