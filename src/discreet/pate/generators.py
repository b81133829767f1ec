"""The generator: a network that makes rows of a layout from random numbers. It is what is released.

It is trained on released noisy votes alone, so it, and all that it makes, is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import extra, whole
from discreet.random import Rng, RngLike, as_rng
from discreet.synthesis.layouts import RecordLayout, learnt_width

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

__all__ = ["Generator", "GeneratorModel", "chance_of"]

_AT_ONCE = 4096  # rows that are made together


def chance_of(rng: Rng) -> torch.Generator:
    """Torch's source of public choices, seeded by one of ours."""
    return torch.Generator().manual_seed(rng.word() >> 1)


class Generator(nn.Module):
    """Two hidden layers; numbers by a logistic function, one entry of each group by a draw from its softmax.

    A draw is made by Gumbel noise, and derivatives pass through it as if it were the softmax (Jang et al. 2017), so
    that discriminators meet rows of the same form as records are.
    """

    def __init__(self, layout: RecordLayout, latent: int, hidden: int) -> None:
        super().__init__()
        self.numbers, self.groups, self.even = layout.numbers, layout.groups, layout.even
        self.latent, self.learnt = latent, learnt_width(layout)
        self.width, self.classes = self.numbers + sum(self.groups), layout.classes
        self.body = nn.Sequential(
            nn.Linear(latent + self.width - self.learnt, hidden),
            nn.BatchNorm1d(hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, self.learnt),
        )

    def forward(self, size: int, chance: torch.Generator) -> Tensor:
        """``size`` rows."""
        start, given = torch.randn(size, self.latent, generator=chance), []
        if self.even:
            kind = torch.randint(self.classes, (size,), generator=chance)
            given = [functional.one_hot(kind, self.classes).float()]
        found = self.body(torch.cat([start, *given], dim=1))
        parts = [torch.sigmoid(found[:, : self.numbers])]
        groups = list(self.groups[:-1] if self.even else self.groups)
        for scores in torch.split(found[:, self.numbers :], groups, dim=1) if groups else ():
            parts.append(_draw_one_hot(scores, chance))
        return torch.cat([*parts, *given], dim=1)


def _draw_one_hot(scores: Tensor, chance: torch.Generator) -> Tensor:
    """One entry of each row of scores, as a row of zeros and a one with the softmax's derivatives."""
    gumbel = -torch.log(-torch.log(torch.rand(scores.shape, generator=chance).clamp(1e-20, 1 - 1e-7)))
    share = functional.softmax(scores + gumbel, dim=1)
    chosen = functional.one_hot(share.argmax(dim=1), scores.shape[1]).float()
    return chosen + share - share.detach()


@dataclass(frozen=True, eq=False)
class GeneratorModel:
    """A trained generator with its layout. It may be published."""

    generator: Generator = field(repr=False)
    layout: RecordLayout = field(repr=False)
    statement: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def sample(self, n: int, rng: RngLike = None) -> Any:
        """``n`` synthetic records, in the kind of container that was given."""
        source, count = as_rng(rng), whole("n", n, low=1)
        chance = chance_of(source)
        self.generator.eval()
        with torch.no_grad():
            parts = [self.generator(min(_AT_ONCE, count - at), chance) for at in range(0, count, _AT_ONCE)]
        return self.layout.values(np.asarray(torch.cat(parts).numpy(), np.float32), source)
