"""Does a language model remember a secret? The lecture's table, made again: optimiser, epsilon, exposure, extraction.

A small recurrent network reads 4,000 lines of 50 characters of Shakespeare, among them ten canaries, "the key of Romeo
is 28126", each once, with five digits that were drawn at random. Afterwards each is ranked among the 100,000 secrets
that it might have been (``auditing.exposure``), and the likeliest digits after its words are looked for
(``auditing.extract``). A model that knows nothing shows 1.44 bits of exposure on average; 16.6 bits are a secret that
ranks first.

With privacy a record is one line, so that each canary is one record. At the largest epsilons noise is next to nothing,
and what is left is that no line has more than its share of a step. Without privacy the network is trained just as long,
and once more for twelve times as long. The schedule (lines, epochs, clip norm) was chosen after looking at
exposures of others: fewer lines and more passes over them showed more, also with little noise. Test losses are of the
end of the text.
"""

from __future__ import annotations

import math
import string
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet.training import make_private
from experiments import _results
from experiments._data import shakespeare

ALPHABET = {
    letter: code for code, letter in enumerate("\n " + string.ascii_letters + string.digits + string.punctuation)
}
DIGITS, LENGTH = 5, 50
NAMES = ("Romeo", "Juliet", "Hamlet", "Ophelia", "Macbeth", "Banquo", "Othello", "Iago", "Brutus", "Caesar")
DELTA, CLIP, BATCH, LR = 1e-5, 0.05, 100, 4e-3


@dataclass(frozen=True)
class Size:
    """How much is read, and how large the model is."""

    records: int = 4000
    width: int = 96
    digits: int = DIGITS


WHOLE = Size()


@dataclass(frozen=True)
class Row:
    """A line of the table; with neither an epsilon nor a noise multiplier the run is not private."""

    optimizer: str
    lr: float
    epsilon: float | None = None
    noise_multiplier: float | None = None
    epochs: int = 5

    @property
    def private(self) -> bool:
        return self.epsilon is not None or self.noise_multiplier is not None


ROWS = (
    *(Row("RMSprop", LR, epsilon=epsilon) for epsilon in (0.65, 1.21, 5.26, 89.0)),
    Row("RMSprop", LR, noise_multiplier=0.03),
    Row("SGD", 20.0, noise_multiplier=0.03),
    Row("SGD", 2.0),
    Row("RMSprop", LR),
    Row("RMSprop", LR, epochs=60),
)


@dataclass(frozen=True)
class Result:
    """What a run's model knows: of the language, and of the canaries."""

    optimizer: str
    epochs: int
    epsilon: float | None  # None where nothing was clipped and nothing added
    loss: float
    exposures: tuple[float, ...]
    extracted: int
    seconds: float


# --- text -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Canary:
    """A sentence whose end is a secret."""

    words: str
    secret: str


def canaries(digits: int, seed: int = 0) -> list[Canary]:
    """One for each name, their secrets drawn from all that have so many digits."""
    drawn = np.random.default_rng(seed).integers(0, 10**digits, len(NAMES))
    return [Canary(f"the key of {name} is ", f"{secret:0{digits}d}") for name, secret in zip(NAMES, drawn, strict=True)]


def codes(text: str) -> Tensor:
    return torch.tensor([ALPHABET[letter] for letter in text])


def lines(text: str, secrets: Sequence[Canary] = ()) -> Tensor:
    """Records of LENGTH + 1 characters; some begin with a canary."""
    found = codes(text)
    records = found[: len(found) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1).clone()
    for place, canary in zip(np.linspace(0, len(records) - 1, len(secrets)).astype(int), secrets, strict=True):
        said = codes(f"{canary.words}{canary.secret}\n")
        records[place, : len(said)] = said
    return records


# --- model ------------------------------------------------------------------------------------------------------------


class Reader(nn.Module):
    """Characters in, the logarithms of the chances of the next ones out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), 32)
        self.memory = nn.GRU(32, width, batch_first=True)
        self.next = nn.Linear(width, len(ALPHABET))

    def forward(self, text: Tensor, state: Tensor | None = None) -> Tensor:
        return self.read(text, state)[0]

    def read(self, text: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        seen, state = self.memory(self.letters(text), state)
        return functional.log_softmax(self.next(seen), dim=-1), state


def loss_of(model: Reader, records: Tensor) -> Tensor:
    """Nats per character, the mean over records."""
    said = model(records[:, :-1])
    return functional.nll_loss(said.transpose(1, 2), records[:, 1:], reduction="none").mean(dim=1).mean()


def train(row: Row, records: Tensor, size: Size, seed: int) -> tuple[Reader, float | None]:
    """The model, and the epsilon that it is private with."""
    torch.manual_seed(seed)
    model = Reader(size.width)
    optimizer = getattr(torch.optim, row.optimizer)(model.parameters(), lr=row.lr)
    loader: Any = DataLoader(TensorDataset(records), batch_size=BATCH, shuffle=not row.private)
    if row.private:
        target = {"epsilon": row.epsilon, "delta": DELTA} if row.epsilon else {"noise_multiplier": row.noise_multiplier}
        model, optimizer, loader = make_private(
            model, optimizer, loader, epochs=row.epochs, max_grad_norm=CLIP, loss_reduction="mean", rng=seed, **target
        )
    for _ in range(row.epochs):
        for (batch,) in loader:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
    return model, optimizer.privacy.epsilon(DELTA) if row.private else None


# --- what it remembers ------------------------------------------------------------------------------------------------


@torch.inference_mode()
def continuations(model: Reader, words: str, digits: int) -> list[NDArray[np.float32]]:
    """The logarithms of the chances of each digit after the words and every run of fewer than ``digits`` digits."""
    numerals = codes(string.digits)
    said, state = model.read(codes(words)[None])
    found = [said[:, -1, numerals]]
    for _ in range(digits - 1):
        state = state.repeat_interleave(10, dim=1)
        said, state = model.read(numerals.repeat(state.shape[1] // 10)[:, None], state)
        found.append(said[:, -1, numerals])
    return [each.numpy() for each in found]


def remembered(model: Reader, canary: Canary, digits: int) -> tuple[float, bool]:
    """The canary's exposure in bits, and whether its secret is what the model goes on with."""
    levels = continuations(model, canary.words, digits)
    losses = np.zeros(1, np.float32)
    for level in levels:
        losses = (losses[:, None] - level).ravel()
    space = (f"{secret:0{digits}d}" for secret in range(10**digits))
    exposed = dp.auditing.exposure(lambda texts: losses[[int(text) for text in texts]], canary.secret, space)

    def following(tokens: Sequence[str]) -> dict[str, float]:
        given = tokens[len(canary.words) :]
        chances = levels[len(given)][int("".join(given) or 0)]
        return dict(zip(string.digits, chances.tolist(), strict=True))

    found = dp.auditing.extract(following, canary.words, digits, most=10**6)
    return exposed.bits, found is not None and "".join(found) == canary.secret


def run(row: Row, size: Size = WHOLE, seed: int = 0) -> Result:
    start = time.perf_counter()
    text = shakespeare()
    secrets = canaries(size.digits, seed)
    records = lines(text[: size.records * (LENGTH + 1)], secrets)
    model, epsilon = train(row, records, size, seed)
    with torch.inference_mode():
        loss = float(loss_of(model, lines(text[-100_000:])))
    known = [remembered(model, canary, size.digits) for canary in secrets]
    return Result(
        row.optimizer,
        row.epochs,
        epsilon,
        loss,
        tuple(round(bits, 2) for bits, _ in known),
        sum(out for _, out in known),
        time.perf_counter() - start,
    )


def kept(row: Row) -> Result:
    """Of the whole size; a run that was made before is not made again."""
    name = f"memorisation-{row.optimizer}-{row.lr:g}-{row.epsilon or row.noise_multiplier}-{row.epochs}"
    found = _results.resumed(name, lambda: asdict(run(row)))
    print(f"{row}: {found}", flush=True)
    return Result(**found)


# --- the table --------------------------------------------------------------------------------------------------------

HEADER = ("optimiser", "epochs", "epsilon", "test loss", "exposure, mean", "largest", "extracted")


def lines_of(found: list[Result]) -> list[list[str]]:
    return [
        [
            each.optimizer,
            str(each.epochs),
            "not private" if each.epsilon is None else f"{each.epsilon:.3g}",
            f"{each.loss:.2f}",
            f"{np.mean(each.exposures):.1f}",
            f"{max(each.exposures):.1f}",
            f"{each.extracted} of {len(each.exposures)}",
        ]
        for each in found
    ]


def plot(found: list[Result]) -> None:
    with _results.figure("memorisation", 1, 7.0) as (axis,):
        names = [f"{line[0]}\n{line[1]} epochs\n{line[2]}" for line in lines_of(found)]
        for at, each in enumerate(found):
            axis.plot(
                [at] * len(each.exposures), each.exposures, "o", alpha=0.5, color="C3" if each.extracted else "C0"
            )
        axis.axhline(1 / math.log(2), color="0.5", ls=":", label="mean by chance")
        axis.axhline(math.log2(10**DIGITS), color="0.2", lw=0.7, label="ranks first")
        axis.set(xticks=range(len(found)), ylabel="exposure of a canary, bits")
        axis.set_xticklabels(names, fontsize=7)
        axis.legend(fontsize=7)


def main(quick: bool = False) -> None:
    torch.set_num_threads(1)
    size = Size(records=300, width=64, digits=3) if quick else WHOLE
    rows = (Row("RMSprop", LR, epsilon=5.26), Row("RMSprop", LR, epochs=60)) if quick else ROWS
    found = [run(row, size) if quick else kept(row) for row in rows]
    _results.show(f"Memorisation, delta {DELTA:g}, add-remove; a record is a line", HEADER, lines_of(found))
    _results.save("memorisation", [asdict(each) for each in found])
    _results.write_table("memorisation", HEADER, lines_of(found))
    plot(found)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
