"""``discreet epsilon | delta | calibrate | compare | tradeoff``: what an event costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import discreet as dp
from discreet.adjacency import Adjacency
from discreet.cli import show
from discreet.cli.help import PRICES, example
from discreet.cli.options import (
    Accountant,
    Delta,
    Description,
    Epsilon,
    EventFile,
    Expression,
    Json,
    Noise,
    Rate,
    Relation,
    Steps,
    out_option,
)
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.waiting import Told, waiting

__all__ = ["calibrate", "compare", "delta", "epsilon", "register", "tradeoff"]

POINTS = 101  # of a trade-off curve


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command, line in EXAMPLES.items():
        app.command(rich_help_panel=PRICES, epilog=example(line))(command)


def epsilon(
    delta: Delta,
    expression: Expression = None,
    file: EventFile = None,
    noise_multiplier: Noise = None,
    rate: Rate = None,
    steps: Steps = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    accountant: Accountant = None,
    json: Json = False,
) -> None:
    """The epsilon of an event at a given delta."""
    event = Description(expression, file, noise_multiplier, rate, steps).event()
    with waiting("computing", silent=json):
        upper = dp.epsilon(event, delta=delta, accountant=accountant, adjacency=adjacency)
        lower = None if accountant else _lower(event, delta, adjacency)
    if json:
        show.as_json(
            {
                "epsilon": upper,
                "lower": lower,
                "delta": delta,
                "adjacency": str(adjacency),
                "accountant": accountant,
                "event": event.to_dict(),
            }
        )
        return
    show.say(
        f"epsilon = {show.ceiling(upper)} at delta = {delta:g} ({adjacency}{', ' + accountant if accountant else ''})"
    )
    if lower is not None:
        show.say(f"certified: no smaller epsilon than {show.floor(min(lower, upper))} holds")


def _lower(event: dp.Event, delta: float, adjacency: Adjacency) -> float | None:
    """The certified lower bound, where the numerical account can price the event."""
    try:
        return dp.epsilon_bounds(event, delta=delta, adjacency=adjacency)[0]
    except dp.DiscreetError:
        return None


def delta(
    epsilon: Epsilon,
    expression: Expression = None,
    file: EventFile = None,
    noise_multiplier: Noise = None,
    rate: Rate = None,
    steps: Steps = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    accountant: Accountant = None,
    json: Json = False,
) -> None:
    """The delta of an event at a given epsilon."""
    event = Description(expression, file, noise_multiplier, rate, steps).event()
    with waiting("computing", silent=json):
        upper = dp.delta(event, epsilon=epsilon, accountant=accountant, adjacency=adjacency)
    if json:
        show.as_json(
            {
                "delta": upper,
                "epsilon": epsilon,
                "adjacency": str(adjacency),
                "accountant": accountant,
                "event": event.to_dict(),
            }
        )
        return
    show.say(
        f"delta = {show.ceiling(upper)} at epsilon = {epsilon:g} ({adjacency}{', ' + accountant if accountant else ''})"
    )


def calibrate(
    epsilon: Epsilon,
    delta: Delta,
    expression: Expression = None,
    rate: Rate = None,
    steps: Steps = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    json: Json = False,
) -> None:
    """The least noise that meets a target: the x of an expression, or the noise multiplier of --rate and --steps."""
    family = Description(expression, None, None, rate, steps).family()
    with waiting("searching", silent=json):
        found = dp.calibrate(family, epsilon=epsilon, delta=delta, adjacency=adjacency)
        reached = dp.epsilon(family(found), delta=delta, adjacency=adjacency)
    name = "noise_multiplier" if expression is None else "x"
    if json:
        show.as_json(
            {
                name: found,
                "epsilon": reached,
                "delta": delta,
                "adjacency": str(adjacency),
                "event": family(found).to_dict(),
            }
        )
        return
    show.say(f"{name} = {show.ceiling(found)}: epsilon = {show.ceiling(reached)} at delta = {delta:g} ({adjacency})")


def compare(
    delta: Delta,
    expression: Expression = None,
    file: EventFile = None,
    noise_multiplier: Noise = None,
    rate: Rate = None,
    steps: Steps = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    json: Json = False,
) -> None:
    """Every accountant on one event: its epsilon, or the reason it gives none."""
    event = Description(expression, file, noise_multiplier, rate, steps).event()
    with waiting("comparing", silent=json) as told:
        prices = _prices(event, delta, adjacency, told)
    if json:
        answers = {
            name: {"epsilon": price} if isinstance(price, float) else {"reason": price}
            for name, price in prices.items()
        }
        show.as_json({"accountants": answers, "delta": delta, "adjacency": str(adjacency), "event": event.to_dict()})
        return
    rows = [
        (name, show.ceiling(price) if isinstance(price, float) else "-", "" if isinstance(price, float) else price)
        for name, price in prices.items()
    ]
    show.table(f"epsilon at delta = {delta:g} ({adjacency})", ("accountant", "epsilon", "why not"), rows, prose=True)


def _prices(event: dp.Event, delta: float, adjacency: Adjacency, told: Told | None) -> dict[str, float | str]:
    """What each accountant says: an epsilon, or why not."""
    prices: dict[str, float | str] = {}
    for done, name in enumerate(dp.accounting.ACCOUNTANTS):
        if told is not None:
            told(done / len(dp.accounting.ACCOUNTANTS), name)
        try:
            prices[name] = dp.epsilon(event, delta=delta, accountant=name, adjacency=adjacency)
        except dp.DiscreetError as reason:
            prices[name] = str(reason)
    return prices


def tradeoff(
    expression: Expression = None,
    file: EventFile = None,
    noise_multiplier: Noise = None,
    rate: Rate = None,
    steps: Steps = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    fpr: Annotated[
        float, typer.Option("--fpr", help="The false-positive rate at which to give the attacker's power.")
    ] = 0.01,
    out: Annotated[
        str | None,
        out_option("Write a PNG there instead of drawing in the terminal."),
    ] = None,
    force: ForceOption = False,
    json: Json = False,
) -> None:
    """The errors an attacker cannot beat: a PNG with --out, otherwise a curve in the terminal."""
    event = Description(expression, file, noise_multiplier, rate, steps).event()
    with waiting("computing", silent=json):
        guarantee = dp.guarantee(event, adjacency=adjacency)
        advantage, power = guarantee.advantage(), guarantee.tpr_at(fpr)
        if out is not None:
            with claim_path(out, force=force, inputs=[file] if file else []) as picture:
                guarantee.plot(str(picture))
        if json or out is None:
            grid = [step / (POINTS - 1) for step in range(POINTS)]
            missed = [float(guarantee.tradeoff(at)) for at in grid]
    if json:
        show.as_json(
            {
                "fpr": grid,
                "fnr": missed,
                "advantage": advantage,
                "tpr_at": {"fpr": fpr, "tpr": power},
                "adjacency": str(adjacency),
                "event": event.to_dict(),
            }
        )
        return
    drawn = (
        [f"wrote {out}"] if out else show.curve(grid, missed, below="false-positive rate", beside="false-negative rate")
    )
    show.say(*drawn)
    show.say(
        f"The best attacker gains at most {show.ceiling(advantage, 4)} over guessing, and finds at most a fraction "
        f"{show.ceiling(power, 4)} at a false-positive rate of {fpr:g} ({adjacency})."
    )


EXAMPLES: dict[Callable[..., None], str] = {
    epsilon: 'discreet epsilon "poisson(0.01, gaussian(4)) * 10000" --delta 1e-5',
    delta: 'discreet delta "gaussian(4) * 10" --epsilon 1',
    calibrate: "discreet calibrate --rate 0.01 --steps 10000 --epsilon 1 --delta 1e-5",
    compare: 'discreet compare "laplace(10) * 100" --delta 1e-6',
    tradeoff: 'discreet tradeoff "gaussian(1)" --out tradeoff.png',
}
