"""``discreet audit``: is a claim true? Runs a statistic, a query or a fit on made-up neighbours."""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import choice, extra, positive

with extra("cli"):
    import typer

from discreet.cli import colours, show
from discreet.cli.colours import Painted
from discreet.cli.help import CLAIMS, example
from discreet.cli.options import Json, SchemaOption, Seed, confidence_option, out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.query import DeltaOption, EpsilonOption, RhoOption
from discreet.cli.toml import read_sections
from discreet.cli.waiting import Told, waiting
from discreet.schema import read_schema

if TYPE_CHECKING:
    from discreet.auditing import Audit
    from discreet.events import Event

__all__ = ["audit", "register"]

File = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="A TOML file with a section statistic, query or fit, and perhaps audit; or MODULE:FUNCTION, a function of "
        "data and a NumPy generator, in a module that also defines data and neighbour.",
        show_default=False,
    ),
]
Sql = Annotated[
    str | None,
    typer.Option("--sql", help="Audit a query: SELECT aggregates FROM any_name ...", show_default=False),
]
Target = Annotated[str | None, typer.Option("--target", help="Audit a fit: the column to predict.", show_default=False)]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials", min=100, help="Runs on each neighbour; 10000 for statistics, else 500.", show_default=False
    ),
]
Confidence = Annotated[float, confidence_option("Confidence of the lower bound.")]
Out = Annotated[Path | None, out_option("Write a picture there, as PNG.")]

EXAMPLE = example("discreet audit mean.toml --trials 1000")
VIOLATED, NOT_JUDGED = 1, 2
_ASKED = {"trials", "delta", "confidence"}
_PACE_RUNS = 20  # after which it is known about how long the rest takes
_BUDGET = {"epsilon", "delta", "rho"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=CLAIMS, epilog=EXAMPLE)(audit)


def audit(
    file: File = None,
    schema: SchemaOption = None,
    sql: Sql = None,
    target: Target = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    trials: Trials = None,
    confidence: Confidence = 0.99,
    out: Out = None,
    seed: Seed = None,
    force: ForceOption = False,
    json: Json = False,
) -> None:
    """Test a claim: run a statistic, a query, a fit or your own function thousands of times on two neighbours."""
    from discreet.auditing import audit as run

    budget = {"epsilon": epsilon, "delta": delta, "rho": rho}
    if file is not None and ":" in file and (schema, sql, target) == (None,) * 3:
        asked = _of_function(file, budget)
    elif file is not None and (schema, sql, target, *budget.values()) != (None,) * 6:
        raise ValueError("The file says what to audit and at which cost: leave out the other options, or the file.")
    else:
        asked = _of_file(Path(file)) if file is not None else _of_options(schema, sql, target, budget)
    with ExitStack() as opened:
        picture = None if out is None else opened.enter_context(claim_path(out, force=force, inputs=asked.inputs))
        told = opened.enter_context(waiting("running", silent=json))
        found = run(
            asked.operation,
            asked.data,
            asked.neighbour,
            trials=trials or asked.trials,
            delta=asked.delta,
            confidence=asked.confidence or confidence,
            adjacency=asked.adjacency,
            claim=asked.claim,
            read=asked.read,
            rng=seed,
            progress=_with_pace(told, silent=json),
        )
        if picture is not None:
            found.plot(str(picture))
    _print(asked, found, json)
    if found.violated or found.saw_nothing:
        raise typer.Exit(VIOLATED if found.violated else NOT_JUDGED)


def _with_pace(
    told: Told | None, *, silent: bool, clock: Callable[[], float] = time.monotonic
) -> Callable[[int, int], None]:
    """Progress that says once, also where no terminal shows it, that the runs take minutes, and what takes fewer."""
    start = clock()

    def tell(done: int, of: int) -> None:
        if told is not None:
            told(done / of)
        minutes = (clock() - start) * (of - done) / done / 60 if done == _PACE_RUNS else 0.0
        if minutes >= 1 and not silent:
            show.warn(
                f"2 x {of // 2:,} runs will take about {math.ceil(minutes)} more minutes; --trials takes fewer runs, "
                "which refute less."
            )

    return tell


@dataclass
class _AuditRequest:
    """What is run on which neighbours, and how it is asked."""

    name: str
    operation: Any
    data: Any
    neighbour: Any
    delta: float
    adjacency: str = "add-remove"
    read: Any = None
    claim: Any = None
    trials: int = 500
    confidence: float | None = None
    inputs: tuple[str | Path, ...] = ()


def _of_options(schema: str | None, sql: str | None, target: str | None, budget: dict[str, Any]) -> _AuditRequest:
    if schema is None or (sql is None) == (target is None):
        raise ValueError("Say what to audit: a TOML file, or --schema with --sql (a query) or --target (a fit).")
    return _query(schema, sql, budget) if sql is not None else _fit(schema, str(target), budget)


def _of_file(file: Path) -> _AuditRequest:
    """What a file describes: one of three, and how it is audited."""
    from discreet.auditing.made_up import STATISTICS

    facts = {name for kind in STATISTICS.values() for name in kind.__dataclass_fields__}  # type: ignore[attr-defined]
    found = read_sections(
        file,
        {
            "statistic": {"name"} | facts,
            "query": {"schema", "sql"} | _BUDGET,
            "fit": {"schema", "target"} | _BUDGET,
            "audit": _ASKED,
        },
    )
    told = found.pop("audit")
    kinds = [kind for kind, values in found.items() if values]
    if len(kinds) != 1:
        raise ValueError(f"{file.name} must have one of the sections statistic, query and fit.")
    [kind] = kinds
    given = found[kind]
    if kind == "statistic":
        asked = _statistic(given)
    else:
        make, key = choice("section", kind, {"query": (_query, "sql"), "fit": (_fit, "target")})
        schema = str(file.parent / _text(kind, given, "schema"))
        budget = {name: given.get(name) for name in _BUDGET}
        asked = make(schema, _text(kind, given, key), budget)
    asked.trials = told.get("trials", asked.trials)
    asked.delta, asked.confidence = told.get("delta", asked.delta), told.get("confidence")
    asked.inputs = (*asked.inputs, file)
    return asked


def _of_function(name: str, budget: dict[str, Any]) -> _AuditRequest:
    """A function of the user's module, with the module's ``data`` and ``neighbour``; the options are what it claims."""
    module_name, _, function_name = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name.removesuffix(".py").replace("/", "."))
    except ImportError as error:
        raise ValueError(f"There is no module {module_name!r} here or among those installed: {error}.") from None
    finally:
        sys.path.pop(0)
    for wanted in (function_name, "data", "neighbour"):
        if not hasattr(module, wanted):
            raise ValueError(
                f"Module {module_name!r} has no {wanted!r}: an audit needs the function, and what it is run on, "
                "two values named data and neighbour that differ in one record."
            )
    function, claim = getattr(module, function_name), _claimed_event(budget)
    return _AuditRequest(name, function, module.data, module.neighbour, _delta(budget), claim=claim, trials=10_000)


def _claimed_event(budget: dict[str, Any]) -> Event:
    """What the options claim: pure or approximate differential privacy, or zero-concentrated."""
    from discreet import events
    from discreet.mechanisms.budget import Budget

    claimed = Budget(**budget)
    if claimed.rho is not None:
        return events.ZCDP(rho=claimed.rho)
    if claimed.pure:
        return events.PureDP(epsilon=positive("epsilon", claimed.epsilon))
    return events.ApproxDP(epsilon=positive("epsilon", claimed.epsilon), delta=positive("delta", claimed.delta))


def _text(section: str, given: dict[str, Any], name: str) -> str:
    if not isinstance(found := given.get(name), str):
        raise ValueError(f"{section}.{name} is missing, or no text.")
    return found


def _delta(budget: dict[str, Any]) -> float:
    """The delta at which something is claimed: the budget's, none for pure epsilon, and some for rho."""
    given = budget.get("delta")
    return float(given) if given is not None else 1e-6 if budget.get("rho") is not None else 0.0


def _statistic(given: dict[str, Any]) -> _AuditRequest:
    from discreet.auditing.made_up import made_up_statistic

    name = _text("statistic", given, "name")
    facts = {key: value for key, value in given.items() if key != "name"}
    operation, data, neighbour = made_up_statistic(name, facts)
    adjacency = str(facts.get("adjacency", "add-remove"))
    return _AuditRequest(name, operation, data, neighbour, _delta(given), adjacency, trials=10_000)


def _query(schema: str, sql: str, budget: dict[str, Any]) -> _AuditRequest:
    from discreet.auditing.made_up import frame_read, made_up_table
    from discreet.tables import table

    with extra("tables"):
        import polars

    declared = read_schema(schema)

    def operation(columns: Any) -> Any:
        made_up = table(
            polars.DataFrame(columns),
            schema=declared.schema,
            unit=declared.unit,
            max_rows_per_unit=declared.max_rows_per_unit,
            max_groups_per_unit=declared.max_groups_per_unit,
        )
        return made_up.parse(sql).operation(**budget)

    return _AuditRequest(
        "query", operation, *made_up_table(declared), _delta(budget), read=frame_read, inputs=(schema,)
    )


def _fit(schema: str, target: str, budget: dict[str, Any]) -> _AuditRequest:
    from discreet.auditing.made_up import made_up_table
    from discreet.linear.tabular import TableModel

    if budget["epsilon"] is None or budget["rho"] is not None:
        raise ValueError("A fit is given --epsilon, and perhaps --delta.")
    declared, delta = read_schema(schema), 1e-6 if budget["delta"] is None else budget["delta"]
    operation = TableModel(declared, target=target, epsilon=budget["epsilon"], delta=delta).operation()

    def read(model: Any) -> Any:
        return model.estimator.coef_, model.estimator.intercept_

    return _AuditRequest("fit", operation, *made_up_table(declared), delta, read=read, inputs=(schema,))


def _print(asked: _AuditRequest, found: Audit, json: bool) -> None:
    if json:
        told = {name: getattr(found, name) for name in ("lower", "claimed", "delta", "confidence", "trials", "method")}
        show.as_json(
            {
                "audited": asked.name,
                **told,
                "adjacency": asked.adjacency,
                "violated": found.violated,
                "saw_nothing": found.saw_nothing,
            }
        )
        return
    runs = f"{found.method}, 2 x {found.trials} runs"
    show.say(
        f"audited on {'made-up neighbours' if asked.claim is None else 'its own neighbours'}: {asked.name}",
        f"lower bound: epsilon >= {show.floor(found.lower, 4)} with {found.confidence:.6g} confidence ({runs})",
        f"claimed: epsilon = {show.ceiling(found.claimed)} at delta = {found.delta:g} ({asked.adjacency})",
        Painted("VIOLATED: the claim is refuted", colours.BAD)
        if found.violated
        else Painted("could not judge: nothing told the neighbours apart", colours.BAD)
        if found.saw_nothing
        else Painted("consistent: the claim was not refuted", colours.GOOD),
    )
