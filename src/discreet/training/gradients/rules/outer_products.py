r"""Weights that are used through outer products: linear layers, and convolutions once their windows lie side by side.

A record's gradient is :math:`G_i = \sum_t u_{it} v_{it}^\top`, output gradients times inputs over the steps of the
record, and

.. math:: \|G_i\|^2 = \sum_{s,t} \langle u_{is}, u_{it}\rangle \langle v_{is}, v_{it}\rangle

needs T² numbers a record instead of the m·n of the gradient: *ghost clipping* (Goodfellow 2015; Li et al. 2021), and
whichever of the two is smaller is taken, *mixed* ghost clipping (Bu et al. 2022). Where such a sum cancels,
rounding could make a norm look smaller than it is; those records are measured again in double precision and outward.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.gradients.cancellation import Measured, outward
from discreet.training.gradients.matrix_products import tall_product
from discreet.training.gradients.rules.handlers import KEPT, Handler, squares

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["PART", "Affine", "LinearWeight", "Outer", "by_group", "in_parts", "outer_norms", "product"]

CANCELLED = 2.0**-10  # below this share of its own terms a sum of products is measured again
TALL, THIN = 256, 16  # rows a thread and columns for which a product is made in parts
PART = 1 << 20  # numbers of instantiated gradients that are measured at a time, as many as caches hold


class Outer(Handler):
    """A handler whose gradients are sums of outer products; ``factors`` gives u [B, T, m] and v [B, T, n]."""

    def factors(self, activations: Any, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """The two factors."""
        raise NotImplementedError

    def prefers_instances(self, activations: Any, output_gradients: Tensor) -> bool:
        """Where the gradients take little more memory than the factors they replace, they save a second contraction:
        s·m·n products once, instead of twice or beside the s²·(m + n) of a Gram sum."""
        u, v = self.factors(activations, output_gradients)
        (records, steps, m), n = u.shape, v.shape[2]
        if steps == 1:
            return False
        return records * m * n <= max(KEPT // 16, u.numel() + v.numel())

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """One batched matrix product."""
        u, v = self.factors(activations, output_gradients)
        if u.shape[1] > 1:  # of a sequence that lies step by step; copies cost a tenth of what the product gains
            u, v = (x if x.mT.is_contiguous() else x.contiguous() for x in (u, v))
        return torch.bmm(u.transpose(1, 2), v)

    def squared_norms(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """Without the gradients."""
        return self.measure(activations, output_gradients)[0]

    def measure(self, activations: Any, output_gradients: Tensor) -> Measured:
        """The same; the terms are the steps."""
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
        if not u.is_contiguous() and u.transpose(0, 1).is_contiguous():  # of a sequence that lies step by step
            u, v = u.transpose(0, 1), v.transpose(0, 1).contiguous()
        if not (u.is_contiguous() and v.is_contiguous()):  # matrices of one record each: nothing is copied
            return torch.addbmm(out, u.mT, v, beta=0, out=out)
        u, v = u.flatten(0, 1), v.flatten(0, 1)
    threads = torch.get_num_threads()
    each = u.shape[0] // threads
    if each < TALL or threads == 1 or min(u.shape[1], v.shape[1]) > THIN:
        return tall_product(u, v, out)
    if rest := u.shape[0] % threads:
        return product(u[:-rest], v[:-rest], out).addmm_(u[-rest:].T, v[-rest:])
    parts = torch.bmm(u.view(threads, each, -1).mT, v.view(threads, each, -1))
    return torch.sum(parts, 0, out=out)


class LinearWeight(Outer):
    """The weight of ``linear``: activations [B, T, n], output gradients [B, T, m]."""

    def factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """Output gradients and activations as they are."""
        return output_gradients, activations


class Affine(Outer):
    """``linear`` on one vector a record: activations [B, n], output gradients [B, m].

    A bias is the weight of a constant one; where the handler is ``biased``, both are measured together.
    """

    def __init__(self, biased: bool) -> None:
        self.biased = biased

    def factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """One step."""
        return output_gradients.unsqueeze(1), activations.unsqueeze(1)

    def prefers_instances(self, activations: Tensor, output_gradients: Tensor) -> bool:
        """Never: a gradient is larger than its two factors."""
        return False

    def measure(self, activations: Tensor, output_gradients: Tensor) -> Measured:
        """The product of two squared lengths: one term."""
        return _product_norms(output_gradients, activations, biased=self.biased), None

    def weighted_factors(self, activations: Tensor, output_gradients: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Without the dimension of steps."""
        scale = weights.unsqueeze(1)
        if output_gradients.shape[1] <= activations.shape[1]:
            return output_gradients * scale, activations
        return output_gradients, activations * scale


# --- norms ---------------------------------------------------------------------------------------------------------


def outer_norms(u: Tensor, v: Tensor) -> Measured:
    """Squared norms of the sums of outer products of u [B, T, m] and v [B, T, n], never below the truth's, and the
    terms' lengths."""
    if u.shape[1] == 1:
        return _product_norms(u[:, 0], v[:, 0]), None
    if u.shape[2] * v.shape[2] < 1.2 * u.shape[1] * (u.shape[2] + v.shape[2]):
        return _in_parts(u, v)
    found, terms = _gram(u, v)
    cancelled = found < CANCELLED * terms.square()
    for i in torch.nonzero(cancelled).flatten().tolist():  # one by one: twice the precision takes twice the memory
        exact = _gram(u[i : i + 1].double(), v[i : i + 1].double())[0].clamp(min=0).sqrt()
        found[i] = (exact + 4 * torch.finfo(u.dtype).eps * terms[i]).square().to(found.dtype)[0]
    return found, terms


def _product_norms(u: Tensor, v: Tensor, *, biased: bool = False) -> Tensor:
    """Squared norms of the outer products of u [B, m] and v [B, n], or of u and (v, 1)."""
    return squares(v).add_(1 if biased else _vanished(v)).mul_(squares(u).add_(_vanished(u)))


def _vanished(x: Tensor) -> float:
    """The most that numbers whose squares are too small for their precision take from a squared length: the other
    factor may be huge."""
    return x.shape[-1] * torch.finfo(x.dtype).tiny


def _gram(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Squared norms, and the norms of the terms added up: those of a step with itself are on the diagonal."""
    one, two = torch.bmm(u, u.mT), torch.bmm(v, v.mT)
    lengths = [x.diagonal(dim1=1, dim2=2) for x in (one, two)]
    terms = (lengths[0].sqrt() * lengths[1].sqrt()).sum(1)
    vanished = u.shape[1] * (_vanished(v) * lengths[0].sum(1) + _vanished(u) * lengths[1].sum(1))
    return one.mul_(two).flatten(1).sum(1).add_(vanished), terms


def _in_parts(u: Tensor, v: Tensor) -> Measured:
    """Norms of instantiated gradients, a few records at a time, where all of them would not fit."""
    found, lengths = [], []
    for a, b in zip(*(in_parts(x, PART // (u.shape[2] * v.shape[2])) for x in (u, v)), strict=True):
        norms = torch.bmm(a.transpose(1, 2), b).flatten(1).norm(dim=1)
        terms = torch.linalg.vector_norm(a, dim=(1, 2)) * torch.linalg.vector_norm(b, dim=(1, 2))
        found.append(outward(norms, terms))
        lengths.append(terms)
    return torch.cat(found), torch.cat(lengths)


def by_group(measured: Measured, groups: int) -> Measured:
    """Of records that have several groups each, one record's after another's."""
    squared, terms = measured
    return squared.view(-1, groups).sum(1), None if terms is None else terms.view(-1, groups).sum(1)


def in_parts(x: Tensor, most: int) -> tuple[Tensor, ...]:
    """Parts of about ``most`` records, of one size that torch's threads can share evenly."""
    threads, records = torch.get_num_threads(), x.shape[0]
    parts = -(-records // _multiple(most, threads)) or 1
    return x.split(_multiple(-(-records // parts), threads))


def _multiple(size: int, of: int) -> int:
    return max(1, -(-size // of)) * of
