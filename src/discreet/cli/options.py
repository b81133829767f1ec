"""The options that commands share, each declared once, and the event they describe.

What commands differ in is the type (may it be left out?) and the sentence of help; the name, the short form, the
metavar and the variable of ``--epsilon``, ``--delta``, ``--out``, ``--json``, ``--ledger``, ``--book``, ``--schema``,
``--seed`` and others are said here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TextIO

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet import events as ev
from discreet.adjacency import Adjacency
from discreet.cli.parse import mentions, parse

__all__ = [
    "VARIABLE",
    "Accountant",
    "BookOption",
    "Data",
    "Delta",
    "Description",
    "Epsilon",
    "EventFile",
    "Expression",
    "Json",
    "LedgerOption",
    "NoBookOption",
    "Noise",
    "QuietOption",
    "Rate",
    "Relation",
    "SchemaFile",
    "SchemaOption",
    "Seed",
    "Steps",
    "confidence_option",
    "decode",
    "delta_option",
    "epsilon_option",
    "ledger_option",
    "out_option",
    "show_option",
]

VARIABLE = "DISCREET_LEDGER"


def epsilon_option(help: str = "The epsilon of (epsilon, delta).") -> Any:
    """``--epsilon``, with what it means to the command."""
    return typer.Option("--epsilon", help=help, show_default=False)


def delta_option(help: str = "The delta of (epsilon, delta).", *, show_default: bool = False) -> Any:
    """``--delta``, with what it means to the command."""
    return typer.Option("--delta", help=help, show_default=show_default)


def out_option(help: str, *, show_default: bool = False) -> Any:
    """``--out``, with what is written there."""
    return typer.Option("--out", "-o", metavar="FILE", help=help, show_default=show_default)


def ledger_option(help: str, *, show_default: bool = False) -> Any:
    """``--ledger``, or the variable: a file, or a URL."""
    return typer.Option(
        "--ledger", "-l", envvar=VARIABLE, metavar="FILE", help=f"{help}: a file, or a URL.", show_default=show_default
    )


def confidence_option(help: str) -> Any:
    """``--confidence``, with what it is the confidence of."""
    return typer.Option("--confidence", help=help)


def show_option(help: str) -> Any:
    """``--show``, with what is shown first."""
    return typer.Option("--show", min=0, help=f"{help}; 0 for all.")


Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, with a header.", show_default=False)]
_SCHEMA = typer.Option(
    "--schema", metavar="FILE", help="What is publicly known of the columns, as TOML.", show_default=False
)
SchemaFile = Annotated[str, _SCHEMA]
SchemaOption = Annotated[str | None, _SCHEMA]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Make the run repeatable, for tests: its result is not private.", show_default=False),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with every digit.")]
LedgerOption = Annotated[str | None, ledger_option("The ledger to charge")]
BookOption = Annotated[
    str | None,
    typer.Option(
        "--book",
        metavar="BOOK",
        help="The book (the budget) to charge; not needed if the ledger has only one.",
        show_default=False,
    ),
]
NoBookOption = Annotated[
    bool, typer.Option("--no-book", help="Charge no book, even if DISCREET_LEDGER is set, and print no warning.")
]

Expression = Annotated[
    str | None,
    typer.Argument(
        metavar="EVENT",
        help="The event as text, for example 'poisson(0.01, gaussian(4)) * 10000 + laplace(2)'.",
        show_default=False,
    ),
]
EventFile = Annotated[
    str | None,
    typer.Option(
        "--event", metavar="FILE", help="The event as JSON, in a file; - reads standard input.", show_default=False
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(
        "--noise-multiplier", help="Gaussian noise: standard deviation over L2 sensitivity.", show_default=False
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", help="Poisson sampling: each record joins a step with this probability.", show_default=False
    ),
]
Steps = Annotated[int | None, typer.Option("--steps", help="How many times the step runs.", show_default=False)]
Delta = Annotated[float, delta_option()]
Epsilon = Annotated[float, epsilon_option()]
Relation = Annotated[Adjacency, typer.Option("--adjacency", help="Which data sets are neighbours.")]
Accountant = Annotated[
    str | None,
    typer.Option(
        "--accountant",
        help="basic, advanced, optimal, zcdp, rdp, gdp or pld; without it, the tightest that applies.",
        show_default=False,
    ),
]


LONGEST = 20_000_000  # characters of an event's JSON


@dataclass(frozen=True, slots=True)
class Description:
    """An event as the user gave it: an expression, a file, or flags; exactly one of them."""

    expression: str | None
    file: str | None
    noise: float | None = None
    rate: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        flags = {"--noise-multiplier": self.noise, "--rate": self.rate, "--steps": self.steps}
        used = [name for name, value in flags.items() if value is not None]
        ways = [self.expression is not None, self.file is not None, bool(used)]
        if sum(ways) != 1:
            raise ValueError(
                "Give the event in exactly one way: as text ('gaussian(4) * 10'), with --event FILE, or with "
                "--noise-multiplier, --rate and --steps."
            )

    def event(self) -> ev.Event:
        """The event itself."""
        if self.expression is not None:
            return parse(self.expression)
        if self.file is not None:
            return decode(_read(self.file))
        if self.noise is None:
            raise ValueError("--rate and --steps describe a step that also needs --noise-multiplier.")
        return self._step(self.noise)

    def family(self) -> Callable[[float], ev.Event]:
        """The event as a function of what is to be found: ``x`` in an expression, or the noise multiplier."""
        if self.file is not None or self.noise is not None:
            raise ValueError(
                "calibrate looks for the noise, so write the event with x in its place, as in "
                "'poisson(0.01, gaussian(x)) * 10000', or give --rate and --steps alone."
            )
        text = self.expression
        if text is None:
            return self._step
        parse(text, {"x": 1.0})  # says what is wrong with the text, before a search tries many values
        if not mentions(text, "x"):
            raise ValueError(f"The event {text!r} has no x: write x where the number to be found stands.")
        return lambda x: parse(text, {"x": x})

    def _step(self, noise: float) -> ev.Event:
        step: ev.Event = ev.Gaussian(noise_multiplier=noise)
        if self.rate is not None:
            step = ev.PoissonSampled(rate=self.rate, event=step)
        return step if self.steps is None else step * self.steps


def _read(file: str) -> str:
    try:
        if file == "-":
            return _read_bounded(sys.stdin)
        with open(file, encoding="utf-8") as opened:
            return _read_bounded(opened)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"The event file {file!r} cannot be read: {reason}.") from None


def _read_bounded(opened: TextIO) -> str:
    text = opened.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ValueError(f"The event has more than {LONGEST:,} characters; use Repeated for repetition.")
    return text


def decode(text: str) -> ev.Event:
    """The event that a JSON text describes."""
    try:
        return ev.Event.from_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"The event file is not JSON: {error}.") from None
    except RecursionError:
        raise ValueError("The event file is nested too deeply; use Repeated for repetition.") from None
