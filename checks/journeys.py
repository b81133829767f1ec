"""How far a reader walks: the files, functions and changes of file of eight ordinary journeys through the package.

``python -m checks.journeys [--files] [name …]`` runs each journey once to load what it needs, and then under
``sys.setprofile``, a few times: the shortest counts, because now and then a step is verified, or a batch is empty.
With ``--files`` it lists the files.
A change of file is a call from a function of one file to one of another; returns are not counted. What other packages
and compiled code do is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import discreet as dp

PACKAGE = str(Path(dp.__file__).parent)
JOURNEYS: dict[str, Callable[[], Callable[[], Any]]] = {}
"""By name: what prepares a journey and returns it."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What one journey passes through."""

    files: frozenset[str]
    functions: int
    switches: int


def walk(journey: Callable[[], Any]) -> Walk:
    """Follow every call of a function of the package."""
    functions: set[tuple[str, str]] = set()
    switches = 0

    def see(frame: FrameType, event: str, _: Any) -> None:
        nonlocal switches
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        functions.add((code.co_filename, code.co_qualname))
        if caller is not None and caller.f_code.co_filename.startswith(PACKAGE):
            switches += caller.f_code.co_filename != code.co_filename

    sys.setprofile(see)
    try:
        journey()
    finally:
        sys.setprofile(None)
    return Walk(frozenset(file for file, _ in functions), len(functions), switches)


def journey(name: str) -> Callable[[Callable[[], Callable[[], Any]]], Callable[[], Callable[[], Any]]]:
    """Enter what prepares a journey under its name."""

    def enter(prepare: Callable[[], Callable[[], Any]]) -> Callable[[], Callable[[], Any]]:
        JOURNEYS[name] = prepare
        return prepare

    return enter


def _training(steps_before: int) -> Callable[[], Any]:
    """A step of a small network, after so many others: the first two are verified, and then few, at random."""
    import torch
    from torch import nn

    from discreet.training import make_private

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(400, 6), torch.randint(2, (400,)))
    net: Any = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    net, optimizer, loader = make_private(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        torch.utils.data.DataLoader(data, batch_size=20),
        epochs=10,
        noise_multiplier=1.0,
        loss_reduction="mean",
    )

    def batches() -> Any:
        while True:
            yield from loader

    each = batches()

    def step() -> None:
        x, y = next(each)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    for _ in range(steps_before):
        step()
    return step


@journey("steady private step")
def _steady() -> Callable[[], Any]:
    return _training(30)


@journey("verified step")
def _verified() -> Callable[[], Any]:
    return _training(1)


@journey("ledger charge")
def _charge() -> Callable[[], Any]:
    book = dp.Ledger("sqlite://").open("census", epsilon=100.0, delta=1e-6)
    event = dp.events.Gaussian(noise_multiplier=10.0)
    return lambda: book.charge(event, label="a journey")


@journey("table release")
def _table() -> Callable[[], Any]:
    import polars as pl

    frame = pl.DataFrame({"educ": [1, 2, 3, 4] * 50, "income": [float(i) for i in range(200)]})
    schema = dp.Schema(educ=dp.Categories(range(1, 5)), income=dp.Bounded(0, 200))
    return lambda: dp.table(frame, schema=schema).group_by("educ").mean("income").release(epsilon=1.0)


@journey("estimator fit")
def _estimator() -> Callable[[], Any]:
    import numpy as np

    from discreet.linear import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) / 4
    y = (x[:, 0] > 0).astype(int)
    return lambda: LogisticRegression(epsilon=1.0, delta=1e-6, feature_norm=1.0, classes=(0, 1)).fit(x, y)


@journey("synthesis fit")
def _synthesis() -> Callable[[], Any]:
    import polars as pl

    frame = pl.DataFrame({"educ": [1, 2, 3, 4] * 50, "sex": ["f", "m"] * 100})
    schema = dp.Schema(educ=dp.Categories(range(1, 5)), sex=dp.Categories(["f", "m"]))
    kind: Any = getattr(dp.synthesis, "TableSynthesizer", None) or dp.synthesis.AIM
    return lambda: kind(epsilon=1.0, delta=1e-9).fit(frame, schema=schema)


@journey("PATE vote")
def _pate() -> Callable[[], Any]:
    import numpy as np

    votes = np.array([[30, 5, 5]])
    return lambda: dp.pate.GNMax(sigma=4.0).release(votes)


@journey("audit")
def _audit() -> Callable[[], Any]:
    import numpy as np

    operation = dp.statistics.Mean(bounds=(0, 1), epsilon=1.0)
    data = np.linspace(0, 1, 50)
    return lambda: dp.auditing.audit(operation, data, data[:-1], trials=500, delta=1e-5)


def main() -> None:
    """Print a line a journey."""
    asked = [word for word in sys.argv[1:] if word != "--files"]
    unknown = set(asked) - JOURNEYS.keys()
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(JOURNEYS)}.")
    print(f"{'':22}{'files':>7}{'functions':>11}{'switches':>10}")
    for name, prepare in JOURNEYS.items():
        if not asked or name in asked:
            prepare()()  # loads and compiles what it needs
            seen = min((walk(prepare()) for _ in range(3)), key=lambda walk: walk.functions)
            print(f"{name:22}{len(seen.files):7}{seen.functions:11}{seen.switches:10}", flush=True)
            if "--files" in sys.argv[1:]:
                print("\n".join(f"    {Path(file).relative_to(PACKAGE)}" for file in sorted(seen.files)))


if __name__ == "__main__":
    main()
