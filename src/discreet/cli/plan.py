"""``discreet plan``: what noise a private training run would have, before it is spent."""

from __future__ import annotations

from typing import Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli.help import LEARN
from discreet.cli.show import as_json, table

__all__ = ["plan", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN)(plan)


def plan(
    records: Annotated[int, typer.Option("--records", min=1, help="The public number of records.")],
    batch_size: Annotated[
        list[int], typer.Option("--batch-size", min=1, help="The mean size of a batch; several are compared.")
    ],
    epochs: Annotated[float, typer.Option("--epochs", help="Passes over the records.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The price of the whole run.")],
    delta: Annotated[float, typer.Option("--delta", help="The delta of (epsilon, delta).")],
    vectors: Annotated[
        int, typer.Option("--vectors", min=0, help="The most vectors of the model's size that noise may keep.")
    ] = 4,
    momentum: Annotated[float, typer.Option("--momentum", help="The optimiser's momentum.")] = 0.0,
    clip_norm: Annotated[float, typer.Option("--clip-norm", help="The clip norm.")] = 1.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare noises for a private training run, from public facts alone: how much noise each leaves in the model."""
    from discreet.training import compare, plan_for

    found = []
    for size in batch_size:
        run = plan_for(records, size, epochs=epochs, noise_multiplier=1.0, max_grad_norm=clip_norm)
        rows = compare(run, delta=delta, epsilon=epsilon, momentum=momentum)
        found += [(size, run.steps, row) for row in rows if row.vectors <= vectors]
    # Step sizes are free: what counts is the noise over the gradients summed up, which grow with the number of steps.
    found.sort(key=lambda each: each[2].error / each[1])
    names = ("batch", "steps", "noise, sampler", "noise multiplier", "vectors", "noise per step")
    values = [(s, n, r.name, r.noise_multiplier, r.vectors, r.error / n) for s, n, r in found]
    if json:
        as_json([dict(zip(names, row, strict=True)) for row in values])
        return
    texts = [(str(s), str(n), name, f"{z:.4g}", str(v), f"{e:.3g}") for s, n, name, z, v, e in values]
    table(f"at epsilon = {epsilon:g}, delta = {delta:g}; the least noise first", names, texts)
