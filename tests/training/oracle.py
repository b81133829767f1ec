"""The naive answer: each record alone through the model, its gradient clipped, and added up in double precision."""

from __future__ import annotations

import math
from contextlib import contextmanager

import torch

from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.clipping import Clipping

EXACT = {torch.float64: 1e-10, torch.float32: 1e-5}
"""How far a clipped sum may be from the naive one, as a share of its norm."""


@contextmanager
def watching(model, watch):
    """Watch a model for the length of a block."""
    handles = watch.attach(model)
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()


def trained(model):
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def gradients(model, inputs, loss):
    """Each record's gradient, one backward pass a record."""
    parameters = list(trained(model).values())
    for i in range(inputs[0].shape[0]):
        found = torch.autograd.grad(loss(model, *(x[i : i + 1] for x in inputs)), parameters, allow_unused=True)
        dense = [g.to_dense() if g is not None and g.is_sparse else g for g in found]
        yield [(torch.zeros_like(p) if g is None else g).double() for g, p in zip(dense, parameters, strict=True)]


def clipped(model, each, clipping, clip_norm):
    """The sum of these gradients, each clipped; flat, in the order of the parameters."""
    block, shares = clipping.blocks(list(trained(model)))
    total = torch.zeros(sum(p.numel() for p in trained(model).values()), dtype=torch.float64)
    for parts in each:
        factors = []
        for b, share in enumerate(shares):
            norm = math.sqrt(sum(float(g.square().sum()) for g, k in zip(parts, block, strict=True) if k == b))
            factors.append(float(clipping.factors(torch.tensor(norm**2, dtype=torch.float64), clip_norm * share)))
        total += torch.cat([(g * factors[k]).reshape(-1) for g, k in zip(parts, block, strict=True)])
    return total


def naive(model, inputs, loss, clipping, clip_norm):
    """Sum over records of clipped gradients."""
    return clipped(model, gradients(model, inputs, loss), clipping, clip_norm)


def ours(model, inputs, loss, clipping, clip_norm, reduction="sum", weights=None):
    """What the engine finds in one forward and one backward pass."""
    found = ClippedSum(trained(model), clipping, reduction)
    found.watch.begin(inputs[0].shape[0])
    with watching(model, found.watch):
        losses = loss(model, *inputs)
        losses.backward(torch.ones_like(losses))
    assert all(p.grad is None for p in model.parameters()), "an ordinary gradient was computed"
    found.add(weights, clip_norm)
    return torch.cat([part.reshape(-1) for part in found.total])


def close(found, wanted, dtype):
    """Assert that two sums agree as far as a precision goes."""
    assert float(wanted.norm()) > 0
    gap = float((found.double() - wanted).norm() / wanted.norm())
    assert gap <= EXACT[dtype], f"off by {gap:.2e}"


def agree(model, inputs, loss, *, clipping=None, dtype=torch.float64):
    """Assert equality at a clip norm that about half the records exceed, and far above and below."""
    clipping = clipping or Clipping()
    model = model.to(dtype)
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    each = list(gradients(model, inputs, loss))
    for clip_norm in (1e-3, 1.0, 1e6):
        close(ours(model, inputs, loss, clipping, clip_norm), clipped(model, each, clipping, clip_norm), dtype)
