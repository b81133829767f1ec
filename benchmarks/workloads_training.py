"""The models on which private training is timed, in plain torch, and the loop that times a step.

Peers import this file too, so it must not import the library.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

WARM = 3


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.attention, self.two = nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.one(x))
        return x + self.mlp(self.two(x))


class LanguageModel(nn.Module):
    def __init__(self, words: int = 8192, width: int = 256, depth: int = 4, length: int = 128) -> None:
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks, self.norm = nn.Sequential(*[Block(width) for _ in range(depth)]), nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
        return self.head(self.norm(self.blocks(self.word(x) + self.position(positions))))


class Wide(nn.Module):
    """A pre-activation residual block with group norm."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.one, self.a = nn.GroupNorm(16, inputs), nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.two, self.b = nn.GroupNorm(16, outputs), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.skip = (
            nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs or stride > 1 else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.one(x))
        return self.skip(h) + self.b(F.relu(self.two(self.a(h))))


def wide_resnet(width: int = 4) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)]
    before = 16
    for channels, stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
        layers += [Wide(before, channels, stride), Wide(channels, channels, 1)]
        before = channels
    layers += [nn.GroupNorm(16, before), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10)]
    return nn.Sequential(*layers)


class Conv1D(nn.Module):
    """GPT-2's linear layer: a product with a turned weight."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) * 0.02), nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def turned(block: Block, width: int) -> Block:
    """The block with GPT-2's layers."""
    block.attention.qkv, block.attention.out = Conv1D(width, 3 * width), Conv1D(width, width)  # type: ignore[assignment]
    block.mlp[0], block.mlp[2] = Conv1D(width, 4 * width), Conv1D(4 * width, width)
    return block


class Gpt2(LanguageModel):
    """7.5 million parameters, most of them in a table of a real vocabulary that is the output layer too."""

    def __init__(self, words: int = 50_257, width: int = 128, depth: int = 5, length: int = 128) -> None:
        super().__init__(words, width, depth, length)
        self.blocks = nn.Sequential(*[turned(Block(width), width) for _ in range(depth)])
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.word.weight


class Recurrent(nn.Module):
    """A text classifier on an LSTM or a GRU."""

    def __init__(self, kind: type[nn.Module], words: int = 8192, width: int = 128) -> None:
        super().__init__()
        self.word, self.head = nn.Embedding(words, width), nn.Linear(width, 10)
        self.over = kind(width, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.over(self.word(x))[0][:, -1])


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def _classes(*shape: int, classes: int = 10) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    return lambda: (torch.randn(*shape), torch.randint(0, classes, (shape[0],)))


def tokens(records: int = 16, words: int = 8192) -> tuple[torch.Tensor, torch.Tensor]:
    text = torch.randint(0, words, (records, 129))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 8192, (64, 64)), torch.randint(0, 10, (64,))


def token_loss(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out.transpose(1, 2), target)


# name: (model, batch, loss, timed steps)
WORKLOADS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], Callable[..., torch.Tensor], int]] = {
    "a: CNN, batch 256": (cnn, _classes(256, 1, 28, 28), F.cross_entropy, 40),
    "b: MLP, batch 512": (mlp, _classes(512, 784), F.cross_entropy, 60),
    "c: logistic, batch 4096": (lambda: nn.Linear(100, 2), _classes(4096, 100, classes=2), F.cross_entropy, 300),
    "d: transformer, batch 16": (LanguageModel, tokens, token_loss, 8),
    "e: WRN-16-4, batch 64": (wide_resnet, _classes(64, 3, 32, 32), F.cross_entropy, 6),
    "f: GPT-2, 50k words, batch 8": (Gpt2, lambda: tokens(8, 50_257), token_loss, 6),
    "g: LSTM, batch 64": (lambda: Recurrent(nn.LSTM), texts, F.cross_entropy, 20),
    "h: GRU, batch 64": (lambda: Recurrent(nn.GRU), texts, F.cross_entropy, 20),
}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(step: Callable[[], None], steps: int) -> float:
    """Median seconds of a step, after a few to warm up."""
    for _ in range(WARM):
        step()
    spent = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        spent.append(time.perf_counter() - start)
    return sorted(spent)[len(spent) // 2]


def prepared(name: str) -> tuple[nn.Module, Any, Any, Callable[..., torch.Tensor], int]:
    """Model, inputs, targets, loss and number of steps of a workload, seeded, on two threads."""
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model, batch, loss, steps = WORKLOADS[name]
    x, y = batch()
    return model(), x, y, loss, steps
