"""The naive answer: each record alone through the model, its gradient clipped, and added up in double precision."""

from __future__ import annotations

import math

import torch

from discreet.training.clipped_sum import ClippedSum
from discreet.training.clipping import Clipping
from discreet.training.watch import watching


def trained(model):
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def rows(inputs, i):
    return tuple(x[i:i + 1] for x in inputs)


def naive(model, inputs, loss, clipping, clip_norm):
    """Sum over records of clipped gradients, one backward pass a record; flat, in the order of the parameters."""
    parameters = trained(model)
    block, shares = clipping.blocks(list(parameters))
    total = torch.zeros(sum(p.numel() for p in parameters.values()), dtype=torch.float64)
    for i in range(inputs[0].shape[0]):
        alone = rows(inputs, i)
        found = torch.autograd.grad(loss(model, *alone), list(parameters.values()), allow_unused=True)
        parts = [(torch.zeros_like(p) if g is None else g).double() for g, p in zip(found, parameters.values(), strict=True)]
        for b, share in enumerate(shares):
            norm = math.sqrt(sum(float(g.square().sum()) for g, k in zip(parts, block, strict=True) if k == b))
            factor = float(clipping.factors(torch.tensor(norm**2, dtype=torch.float64), clip_norm * share))
            for j, k in enumerate(block):
                if k == b:
                    parts[j] = parts[j] * factor
        total += torch.cat([g.reshape(-1) for g in parts])
    return total


def ours(model, inputs, loss, clipping, clip_norm, reduction="sum", weights=None):
    """What the engine finds in one forward and one backward pass."""
    clipped = ClippedSum(trained(model), clipping, reduction)
    clipped.watch.records = inputs[0].shape[0]
    clipped.begin()
    with watching(model, clipped.watch):
        loss(model, *inputs).backward()
    assert all(p.grad is None for p in model.parameters()), "an ordinary gradient was computed"
    clipped.add(weights, clip_norm)
    return clipped.total


def agree(model, inputs, loss, *, clipping=None, dtype=torch.float64, tight=None):
    """Assert equality at a clip norm that about half the records exceed, and far above and below."""
    clipping = clipping or Clipping()
    model = model.to(dtype)
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    limit = tight or (1e-10 if dtype == torch.float64 else 1e-5)
    for clip_norm in (1e-3, 1.0, 1e6):
        wanted = naive(model, inputs, loss, clipping, clip_norm)
        found = ours(model, inputs, loss, clipping, clip_norm)
        assert float(wanted.norm()) > 0
        gap = float((found.double() - wanted).norm() / wanted.norm())
        assert gap <= limit, f"off by {gap:.2e} at clip norm {clip_norm:g}"
