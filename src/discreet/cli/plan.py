"""``discreet plan``: what a private training run can hope for, before anything is spent."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli.help import LEARN, example
from discreet.cli.options import Delta, Json, epsilon_option, out_option, show_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.show import as_json, say, table
from discreet.cli.waiting import waiting

if TYPE_CHECKING:  # --help must not wait for torch
    from discreet.training.frontier import Frontier, Point

__all__ = ["plan", "register"]

EXAMPLE = example(
    "discreet plan --records 60000 --parameters 26000 --epochs 20 \\",
    "  --epsilon 3 --delta 1e-5 --batch-size 15000 --vectors 0",
)
AROUND = (0.25, 1.0, 4.0)  # times epsilon: the prices that the frontier is drawn for


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=EXAMPLE)(plan)


def plan(
    records: Annotated[int, typer.Option("--records", min=1, help="The public number of records.")],
    epochs: Annotated[float, typer.Option("--epochs", help="How many passes over the records you can compute.")],
    epsilon: Annotated[float, epsilon_option("The price of the whole run.")],
    delta: Delta,
    parameters: Annotated[
        int, typer.Option("--parameters", min=1, help="How many numbers the model trains; 1: noise in one of them.")
    ] = 1,
    batch_size: Annotated[
        list[int] | None,
        typer.Option(
            "--batch-size",
            min=1,
            help="The mean size of a batch; give several to compare them. Without it, all records and halves of that.",
            show_default=False,
        ),
    ] = None,
    vectors: Annotated[
        int, typer.Option("--vectors", min=0, help="The most vectors of the model's size that noise may keep.")
    ] = 4,
    momentum: Annotated[float, typer.Option("--momentum", help="The optimiser's momentum.")] = 0.0,
    clip_norm: Annotated[float, typer.Option("--clip-norm", help="The clip norm.")] = 1.0,
    out: Annotated[Path | None, out_option("Draw the frontier: a .png, .svg or .pdf file.")] = None,
    show_rows: Annotated[int, show_option("How many rows are shown")] = 10,
    force: ForceOption = False,
    json: Json = False,
) -> None:
    """Plan a private training run from public facts: signal over noise by batch size, steps, epsilon and noise."""
    from discreet.training import frontier as f
    from discreet.training.noise import Independent

    sizes = sorted(set(batch_size or ())) or f.batch_sizes(records)
    facts: dict[str, Any] = {"delta": delta, "epochs": epochs, "sizes": sizes, "momentum": momentum}
    facts |= {"vectors": vectors, "clip_norm": clip_norm}
    with (
        nullcontext() if out is None else claim_path(out, force=force) as path,
        waiting("comparing", silent=json) as told,
    ):
        noises = f.frontier(records, parameters, epsilons=[epsilon], progress=told, **facts)
        drawn = f.frontier(records, parameters, epsilons=[x * epsilon for x in AROUND], noises=[Independent()], **facts)
        if path is not None:
            drawn.plot(str(path))
    chosen = noises.suggested(epsilon)
    expects = _expectations(records, parameters, clip_norm, epsilon, delta, noises.best(epsilon), drawn)
    if json:
        as_json(
            {
                "noises": [_facts(p) for p in _by_signal(noises)],
                "frontier": [_facts(p) for p in drawn],
                "suggested": _facts(chosen),
                "expected": expects,
            }
        )
        return
    row = chosen.expected
    say(
        f"Suggested: batches of {chosen.batch_size}, {chosen.steps} steps, {row.name}, noise multiplier "
        f"{row.noise_multiplier:.4g}: signal to noise {chosen.signal_to_noise:.3g}. Of all within a tenth of the best, "
        "these have the most steps.",
        *(f"{what}: {value:.3g}" for what, value in expects.items()),
        "",
    )
    _show(noises, drawn, epsilon, delta, show_rows)


def _by_signal(noises: Frontier) -> list[Point]:
    return sorted(noises, key=lambda point: -point.signal_to_noise)


def _facts(point: Point) -> dict[str, Any]:
    row = point.expected
    return {
        "epsilon": point.epsilon,
        "batch": point.batch_size,
        "steps": point.steps,
        "noise, sampler": row.name,
        "noise multiplier": row.noise_multiplier,
        "vectors": row.vectors,
        "signal to noise": point.signal_to_noise,
    }


def _show(noises: Frontier, drawn: Frontier, epsilon: float, delta: float, most: int) -> None:
    names = {"signal to noise": "ratio", "batch": "batch", "steps": "steps", "noise multiplier": "multiplier"}
    names |= {"vectors": "vectors", "noise, sampler": "noise, sampler"}
    rows = [_facts(point) for point in _by_signal(noises)]
    texts = [
        tuple(f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in names) for row in rows
    ]
    title = f"ratio of signal to noise at epsilon = {epsilon:g}, delta = {delta:g}; the best first"
    table(title, list(names.values()), texts[: most or None], prose=True)
    if 0 < most < len(texts):
        say(f"... and {len(texts) - most} more: --show 0 prints all of them.")
    heading = "Signal to noise of independent noise with Poisson batches; * is suggested at that epsilon:"
    say("", heading, *str(drawn).splitlines())


def _expectations(
    records: int,
    parameters: int,
    clip_norm: float,
    epsilon: float,
    delta: float,
    best: list[Point],
    drawn: Frontier,
) -> dict[str, float]:
    """What is known of the accuracy of a mean, and of a convex model."""
    from discreet.training.frontier import mean_error, most_excess_loss

    losses = [most_excess_loss(p, parameters, clip_norm) for p in (*best, *drawn.best(epsilon))]
    return {
        f"Error of a private mean of {parameters} number{'s' * (parameters != 1)} per record, in L2, records of "
        f"length {clip_norm:g}": mean_error(records, parameters, epsilon=epsilon, delta=delta, norm=clip_norm),
        "Excess loss of a convex model at distance 1 from the start, at most": min(x for x in losses if x is not None),
    }
