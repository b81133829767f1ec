r"""Weights that are used through outer products: linear layers, and convolutions once their windows lie side by side.

A record's gradient is :math:`G_i = \sum_t u_{it} v_{it}^\top`, output gradients times inputs over the steps of the
record, and

.. math:: \|G_i\|^2 = \sum_{s,t} \langle u_{is}, u_{it}\rangle \langle v_{is}, v_{it}\rangle

needs T² numbers a record instead of the m·n of the gradient: *ghost clipping* (Goodfellow 2015; Li et al. 2021), and
whichever of the two is smaller is taken, *mixed* ghost clipping (Bu et al. 2022). Where such a sum cancels,
rounding could make a norm look smaller than it is; those records are measured again in double precision and outward.

Weighted sums are products of tall matrices, by whichever of torch's two libraries is quicker on the processor.
``torch.mm`` is MKL's, which leaves half of the vector unit of a processor that is not Intel's idle. oneDNN, by which
torch convolves and runs its LSTM, does not: on one core 100 and 230 billion operations a second. It copies what is not
in its own order, so small products stay with MKL, and large ones are made a part of the rows at a time.

Decision 418.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

from discreet.errors import extra
from discreet.training.gradients.rules.handlers import KEPT, Handler, Measured, outward, squares

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = [
    "PART",
    "Affine",
    "LinearWeight",
    "Outer",
    "by_group",
    "in_parts",
    "outer_norms",
    "product",
    "rows_product",
    "tall_product",
]

CANCELLED = 2.0**-10  # below this share of its own terms a sum of products is measured again
TALL, THIN = 256, 16  # rows a thread and columns for which a product is made in parts
PART = 1 << 20  # numbers of instantiated gradients that are measured at a time, as many as caches hold
LEAST = 1 << 21  # multiplications that are worth a call, which takes 20 microseconds
FEWEST = 512  # rows of a part, and more while a copy of it stays below
COPIED = 1 << 20  # numbers


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


# --- products of tall matrices -------------------------------------------------------------------------------------


@cache
def _onednn() -> Callable[..., Tensor] | None:
    """x, W, b -> x Wᵀ + b by oneDNN, where MKL is slower: on AMD's processors that have AVX-512."""
    if not get_host_cpu_name().startswith("znver") or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return None if product is None else lambda x, w, b=None: product.default(x, w, b, "none", [], "")


def _by_onednn(one: Tensor, other: Tensor, columns: int) -> Callable[..., Tensor] | None:
    """oneDNN's product where these two matrices, with so many columns in the result, are for it; else none."""
    if one.dtype != torch.float32 or other.dtype != torch.float32 or one.numel() * columns < LEAST:
        return None
    return _onednn() if one.device.type == other.device.type == "cpu" else None


def rows_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b of matrices, as precise under autocast. Autograd must not be listening: nothing here has a gradient."""
    product = _by_onednn(x, weight, len(weight))
    if product is not None:
        return product(x, weight, bias)
    out = x.new_empty(len(x), len(weight))  # functions that write to it are not autocast's
    return torch.mm(x, weight.t(), out=out) if bias is None else torch.addmm(bias, x, weight.t(), out=out)


def tall_product(u: Tensor, v: Tensor, out: Tensor) -> Tensor:
    """uᵀv of two tall matrices, written where it belongs."""
    product = _by_onednn(u, v, v.shape[1])
    if product is None:
        return torch.mm(u.T, v, out=out)
    # the thinner one is copied, row by column, before oneDNN sees it
    thin, wide = (u, v) if u.shape[1] <= v.shape[1] else (v, u)
    rows = max(FEWEST, COPIED // (u.shape[1] + v.shape[1]))
    first, *others = zip(thin.split(rows), wide.split(rows), strict=True)
    total = product(first[0].T, first[1].T)
    for a, b in others:
        total += product(a.T, b.T)
    return out.copy_(total if thin is u else total.T)
