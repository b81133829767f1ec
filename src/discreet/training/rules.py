r"""From what a call saw and what came back to per-record gradients: one rule a kind of call.

A rule knows one shared tensor (a weight, a bias) of one call. Given the activations it saved on the way forward and the
gradients that reached the call's output, both with the record as first dimension, it gives

``squared_norms``
    the squared norm of each record's gradient, without forming the gradients where that is cheaper;
``weighted_sum``
    :math:`\sum_i w_i G_i`, by one contraction of the size of an ordinary weight gradient;
``instantiate``
    the gradients :math:`G_i` themselves.

Most weights are used through outer products, :math:`G_i = \sum_t u_{it} v_{it}^\top`, and

.. math:: \|G_i\|^2 = \sum_{s,t} \langle u_{is}, u_{it}\rangle \langle v_{is}, v_{it}\rangle

needs T² numbers a record instead of the m·n of the gradient (Goodfellow 2015; Li et al. 2021). Where such a sum cancels,
rounding could make a norm look smaller than it is; those records are measured again in double precision and outward.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Affine", "Bias", "LinearWeight", "Normalised", "Outer", "Rows", "Rule", "Spread"]

CANCELLED = 2.0**-10  # below this share of its own terms a sum of products is measured again
KEPT = 1 << 22  # numbers of instantiated gradients of one tensor that may be kept
TALL, THIN = 256, 16  # rows a thread and columns for which a product is made in parts
PART = 1 << 20  # numbers of instantiated gradients that are measured at a time, as many as caches hold


class Rule:
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

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """The sum of the records' gradients, each times its weight, in the shape of the shared tensor."""
        return weighted_instances(self.instantiate(activations, output_gradients), weights)


def flattened(instances: Tensor) -> Tensor:
    """Gradients as rows, in the order in which they lie in memory, so that nothing is copied."""
    return instances if instances.dim() == 2 else instances.permute(0, *_memory_order(instances)).flatten(1)


def weighted_instances(instances: Tensor, weights: Tensor) -> Tensor:
    """The sum over records of gradients times weights."""
    if instances.dim() == 2:
        return weights @ instances
    order = _memory_order(instances)
    total = (weights @ flattened(instances)).view([instances.shape[d] for d in order])
    return total.permute([order.index(d) for d in range(1, instances.dim())])


def _memory_order(instances: Tensor) -> list[int]:
    return sorted(range(1, instances.dim()), key=lambda d: -instances.stride()[d])


class Outer(Rule):
    """A rule whose gradients are sums of outer products; ``factors`` gives u [B, T, m] and v [B, T, n]."""

    def factors(self, activations: Any, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """The two factors."""
        raise NotImplementedError

    def prefers_instances(self, activations: Any, output_gradients: Tensor) -> bool:
        """Where the gradients take no more memory than the factors they replace, they save a second contraction."""
        u, v = self.factors(activations, output_gradients)
        (records, steps, m), n = u.shape, v.shape[2]
        return steps > 1 and records * m * n <= max(KEPT // 16, u.numel() + v.numel())

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """One batched matrix product."""
        u, v = self.factors(activations, output_gradients)
        return torch.bmm(u.transpose(1, 2), v)

    def squared_norms(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """Without the gradients."""
        return outer_norms(*self.factors(activations, output_gradients))

    def weighted_factors(self, activations: Any, output_gradients: Any, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The two factors, whose ``product`` is the weighted sum; the thinner one has the weights."""
        u, v = self.factors(activations, output_gradients)
        scale = weights[:, None, None]
        return (u * scale, v) if u.shape[2] <= v.shape[2] else (u, v * scale)

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """One matrix product."""
        u, v = self.weighted_factors(activations, output_gradients, weights)
        return product(u, v, u.new_empty(u.shape[-1], v.shape[-1]))


def product(u: Tensor, v: Tensor, out: Tensor) -> Tensor:
    """The sum over all but the last dimension of outer products: uᵀv of two tall matrices.

    Where one is thin torch makes it on one thread: there each thread multiplies a part.
    """
    if u.dim() == 3:
        if not (u.is_contiguous() and v.is_contiguous()):  # matrices of one record each: nothing is copied
            return torch.addbmm(out, u.mT, v, beta=0, out=out)
        u, v = u.flatten(0, 1), v.flatten(0, 1)
    threads = torch.get_num_threads()
    each = u.shape[0] // threads
    if each < TALL or threads == 1 or min(u.shape[1], v.shape[1]) > THIN:
        return torch.mm(u.T, v, out=out)
    if rest := u.shape[0] % threads:
        return product(u[:-rest], v[:-rest], out).addmm_(u[-rest:].T, v[-rest:])
    parts = torch.bmm(u.view(threads, each, -1).mT, v.view(threads, each, -1))
    return torch.sum(parts, 0, out=out)


def outer_norms(u: Tensor, v: Tensor) -> Tensor:
    """Squared norms of the sums of outer products of u [B, T, m] and v [B, T, n], never below the truth's."""
    if u.shape[1] == 1:
        return _product_norms(u[:, 0], v[:, 0])
    if u.shape[2] * v.shape[2] < 1.2 * u.shape[1] * (u.shape[2] + v.shape[2]):
        return _in_parts(u, v)
    found, terms = _gram(u, v)
    cancelled = found < CANCELLED * terms.square()
    for i in torch.nonzero(cancelled).flatten().tolist():  # one by one: twice the precision takes twice the memory
        exact = _gram(u[i:i + 1].double(), v[i:i + 1].double())[0].clamp(min=0).sqrt()
        found[i] = (exact + 4 * torch.finfo(u.dtype).eps * terms[i]).square().to(found.dtype)[0]
    return found


def _product_norms(u: Tensor, v: Tensor, *, biased: bool = False) -> Tensor:
    """Squared norms of the outer products of u [B, m] and v [B, n], or of u and (v, 1)."""
    return squares(v).add_(1 if biased else _vanished(v)).mul_(squares(u))


def _vanished(v: Tensor) -> float:
    """The most that inputs whose squares are too small for their precision take from a squared length: u may be huge."""
    return v.shape[-1] * torch.finfo(v.dtype).tiny


def squares(x: Tensor) -> Tensor:
    """Squared lengths along the last dimension, by the way that is fastest for its size."""
    if x.shape[-1] <= 16:
        return x.square() @ _ones(x.shape[-1], x.dtype, x.device)
    return torch.linalg.vector_norm(x, dim=-1).square_()


@cache
def _ones(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(size, dtype=dtype, device=device)


def _gram(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Squared norms, and the norms of the terms added up: those of a step with itself are on the diagonal."""
    one, two = torch.bmm(u, u.mT), torch.bmm(v, v.mT)
    lengths = [x.diagonal(dim1=1, dim2=2) for x in (one, two)]
    terms = (lengths[0].sqrt() * lengths[1].sqrt()).sum(1)
    vanished = u.shape[1] * _vanished(v) * lengths[0].sum(1)
    return one.mul_(two).flatten(1).sum(1).add_(vanished), terms


def _in_parts(u: Tensor, v: Tensor) -> Tensor:
    """Norms of instantiated gradients, a few records at a time, where all of them would not fit."""
    eps = torch.finfo(u.dtype).eps
    found = []
    for a, b in zip(*(in_parts(x, PART // (u.shape[2] * v.shape[2])) for x in (u, v)), strict=True):
        norms = torch.bmm(a.transpose(1, 2), b).flatten(1).norm(dim=1)
        terms = torch.linalg.vector_norm(a, dim=(1, 2)) * torch.linalg.vector_norm(b, dim=(1, 2))
        hidden = norms < 2.0**-7 * terms  # far below its terms: what rounding may have added or hidden counts too
        found.append((norms + hidden * 4 * eps * terms).square())
    return torch.cat(found) if found else u.new_zeros(0)


def in_parts(x: Tensor, most: int) -> tuple[Tensor, ...]:
    """Parts of about ``most`` records, of one size that torch's threads can share evenly."""
    threads, records = torch.get_num_threads(), x.shape[0]
    parts = -(-records // _multiple(most, threads)) or 1
    return x.split(_multiple(-(-records // parts), threads))


def _multiple(size: int, of: int) -> int:
    return max(1, -(-size // of)) * of


class LinearWeight(Outer):
    """The weight of ``linear``: activations [B, T, n], output gradients [B, T, m]."""

    def factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """Output gradients and activations as they are."""
        return output_gradients, activations


class Affine(Outer):
    """``linear`` on one vector a record: activations [B, n], output gradients [B, m].

    A bias is the weight of a constant one; where the rule is ``biased``, both are measured together.
    """

    def __init__(self, biased: bool) -> None:
        self.biased = biased

    def factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """One step."""
        return output_gradients.unsqueeze(1), activations.unsqueeze(1)

    def prefers_instances(self, activations: Tensor, output_gradients: Tensor) -> bool:
        """Never: a gradient is larger than its two factors."""
        return False

    def squared_norms(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """The product of two squared lengths."""
        return _product_norms(output_gradients, activations, biased=self.biased)

    def weighted_factors(self, activations: Tensor, output_gradients: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Without the dimension of steps."""
        scale = weights.unsqueeze(1)
        if output_gradients.shape[1] <= activations.shape[1]:
            return output_gradients * scale, activations
        return output_gradients, activations * scale


class Bias(Rule):
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


class Normalised(Rule):
    """The scale of a normalisation: output gradients times normalised inputs, summed over all but ``kept`` dimensions."""

    eager = True

    def __init__(self, normalise: Any, kept: tuple[int, ...]) -> None:
        self.normalise, self.kept = normalise, kept

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """The normalised input is computed again: cheaper than keeping it."""
        product = output_gradients if activations is None else output_gradients * self.normalise(activations)
        kept = {d % product.dim() for d in self.kept}
        others = [d for d in range(1, product.dim()) if d not in kept]
        return product.sum(others) if others else product


class Rows(Rule):
    """Rows of a table that were looked up. Activations: the record and the row of each look-up, and its coefficient."""

    def __init__(self, shape: torch.Size) -> None:
        self.shape = shape

    def _merged(self, activations: Any, output_gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Each row a record touched, once: records [U], rows [U], gradients [U, D]."""
        records, rows, coefficients = activations
        values = output_gradients if coefficients is None else output_gradients * coefficients[:, None]
        keys, places = torch.unique(records * self.shape[0] + rows, return_inverse=True)
        merged = values.new_zeros(len(keys), values.shape[1]).index_add_(0, places, values)
        return keys // self.shape[0], keys % self.shape[0], merged

    def squared_norms(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """A row that was looked up twice counts as one row."""
        records, _, merged = self._merged(activations[:3], output_gradients)
        return merged.new_zeros(activations[3]).index_add_(0, records, squares(merged))

    def weighted_sum(self, activations: Any, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """Rows added where they belong."""
        records, rows, coefficients = activations[:3]
        scale = weights[records] if coefficients is None else weights[records] * coefficients
        return output_gradients.new_zeros(self.shape).index_add_(0, rows, output_gradients * scale[:, None])

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """A whole table a record."""
        records, rows, merged = self._merged(activations[:3], output_gradients)
        result = merged.new_zeros(activations[3], *self.shape)
        result[records, rows] = merged
        return result


class Spread(Rule):
    """A shared tensor repeated for every record (``expand``): each record's gradient is its part, summed to the shape."""

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
