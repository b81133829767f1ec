"""``discreet train``: private training described by a TOML file."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import show
from discreet.cli.books import Recorded
from discreet.cli.books import book_to_charge as charged_book
from discreet.cli.help import LEARN, example
from discreet.cli.options import BookOption, LedgerOption, NoBookOption, QuietOption, Seed, out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.toml import read_sections
from discreet.cli.waiting import waiting
from discreet.errors import extra
from discreet.release import ONE_RECORD, charged
from discreet.schema import read_schema

if TYPE_CHECKING:  # --help must not wait for torch: the functions that use it import it
    import torch

    from discreet.cli.network import Network
    from discreet.training import Training

__all__ = ["register", "train"]

EXAMPLE = example("discreet train network.toml --out network.pt --ledger budget.db")
_SECTIONS = {
    "model": {"layers", "hidden", "factory"},
    "data": {"path", "schema", "inputs", "target", "factory"},
    "training": {"optimizer", "lr", "batch_size", "loss", "loss_reduction"},
    "privacy": {
        "epsilon",
        "delta",
        "epochs",
        "noise_multiplier",
        "max_grad_norm",
        "clipping",
        "sampler",
        "noise",
        "dataset_size",
        "unit",
    },
    "speed": {"max_physical_batch_size", "secure"},
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=LEARN, epilog=EXAMPLE)(train)


def train(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A TOML file with the sections model, data, training and privacy.", show_default=False
        ),
    ],
    out: Annotated[Path, out_option("Where to write the trained weights.", show_default=True)] = Path("model.pt"),
    seed: Seed = None,
    ledger: LedgerOption = None,
    book: BookOption = None,
    no_book: NoBookOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="Show the training loss and the share of clipped gradients too. They "
            "are not private: do not publish them.",
        ),
    ] = False,
    audit: Annotated[
        int | None,
        typer.Option(
            "--audit",
            metavar="CANARIES",
            min=20,
            help="Add so many canaries, which count as records and bound epsilon from below.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train a model privately, as a TOML file describes. Writes the weights, and a privacy statement beside them."""
    with extra("torch"):
        import torch

    from discreet.encoding import one_row_note

    asked = read_sections(file, _SECTIONS)
    sys.path.insert(0, str(file.resolve().parent))  # where "module:function" is looked for
    if seed is not None:
        torch.manual_seed(seed)  # for a data factory; the run has streams of its own
    network = _network(asked, file.parent)
    model = _model(asked["model"]) if network is None else network.model
    if network is not None:
        show.note(one_row_note(network.design.declaration))
    with waiting("reading", silent=quiet):
        records = _data(asked["data"], file.parent) if network is None else network.tensors(_path(asked, file.parent))
    beside = out.with_name(f"{out.name}.json")
    inputs = [file, *(file.parent / asked["data"][key] for key in ("path", "schema") if key in asked["data"])]
    with (
        claim_path(out, force=force, inputs=inputs) as weights,
        claim_path(beside, force=force, inputs=inputs) as statement,
        charged_book(ledger, book, no_book, _delta(asked)) as account,
        waiting("training", silent=quiet or local) as told,  # what is local has a line of its own
    ):
        audits: list[Any] = []
        progress = "local" if local and not quiet else told or False
        operation = _operation(model, records, asked, progress=progress, audit=_audit(audit, audits, seed))
        payer = Recorded(account)
        released = charged(operation, records, book=payer, label=f"training of {file.name}", rng=seed)
        torch.save(released.value.state_dict(), weights)
        facts = {
            "event": released.event.to_dict(),
            "unit": released.unit,
            "reproducible": released.reproducible,
            "charged": payer.head,
            "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        } | ({} if network is None else {"network": network.to_dict()})
        facts |= {"audit": str(audits[-1])} if audits else {}
        statement.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    show.say(f"wrote {out} and {beside.name}", f"event: {released.event}")
    if seed is not None:
        show.say("made with a seed: for tests, not private")
    show.say(_guarantee(operation, _delta(asked)), *(f"audit: {found}" for found in audits))


def _delta(asked: dict[str, dict[str, Any]]) -> float:
    """The delta of the run, for a book and for the guarantee; of another type than a number, the run itself says so."""
    found = asked["privacy"].get("delta", 1e-6)
    return float(found) if isinstance(found, (int, float)) else 0.0


def _audit(canaries: int | None, audits: list[Any], seed: int | None) -> Any:
    """Canaries for the run, whose verdict comes to ``audits``."""
    if canaries is None:
        return None
    from discreet.auditing import GradientCanaries

    return GradientCanaries(canaries, report=audits.append, rng=seed)


def _guarantee(operation: Training[torch.nn.Module], delta: float) -> str:
    """What was spent, in a line."""
    from discreet.accounting import epsilon

    adjacency = operation.plan.adjacency
    spent = show.ceiling(epsilon(operation.event, delta, adjacency=adjacency), 4)
    return f"guarantee: epsilon = {spent} at delta = {delta:g} ({adjacency}) for {operation.unit}"


def _network(asked: dict[str, dict[str, Any]], folder: Path) -> Network | None:
    """The network of a table, where the data has a schema; its loss, where none is asked for."""
    data, model = asked["data"], asked["model"]
    if "schema" not in data:
        if "hidden" in model:
            raise ValueError("model.hidden is given, but belongs to a table: say data.schema, or give model.layers.")
        return None
    if odd := [f"model.{key}" for key in ("layers", "factory") if key in model] + [
        f"data.{key}" for key in ("inputs", "factory") if key in data
    ]:
        raise ValueError(
            f"{odd[0]} is given, but data.schema says what the columns are: give model.hidden, or nothing."
        )
    if absent := [key for key in ("path", "target") if not isinstance(data.get(key), str)]:
        raise ValueError(f"data.{absent[0]} is missing: data.schema needs the file, path, and the column, target.")
    from discreet.cli.network import Network
    from discreet.encoding import Design

    hidden = model.get("hidden", [])
    design = Design(read_schema(str(folder / data["schema"])), data["target"])
    network = Network(design, tuple(hidden) if isinstance(hidden, list) else (hidden,))
    asked["training"].setdefault("loss", network.loss)
    if (unit := asked["privacy"].setdefault("unit", network.unit)) != network.unit and network.unit != ONE_RECORD:
        raise ValueError(f"privacy.unit is {unit!r}, but the schema says {network.unit!r}: leave one of them out.")
    return network


def _path(asked: dict[str, dict[str, Any]], folder: Path) -> str:
    return str(folder / asked["data"]["path"])


def _operation(
    model: Callable[[], torch.nn.Module],
    records: Any,
    asked: dict[str, dict[str, Any]],
    progress: Any,
    audit: Any = None,
) -> Training[torch.nn.Module]:
    """The run that a file describes; the size it is priced for is the file's, or that of the data."""
    from discreet.training import Speed, Training

    training, privacy = dict(asked["training"]), dict(asked["privacy"])
    loss, optimizer = _loss(training.pop("loss", "cross_entropy")), _optimizer(training.pop("optimizer", "SGD"))
    if "noise" in privacy:
        privacy["noise"] = _noise(privacy["noise"])
    size = privacy.pop("dataset_size", len(records[0]) if isinstance(records, tuple) else len(records))
    return Training(
        model,
        dataset_size=size,
        loss_fn=loss,
        optimizer=optimizer,
        progress=progress,
        audit=audit,
        speed=Speed(**asked["speed"]),
        **training,
        **privacy,
    )


def _loss(name: Any) -> Any:
    import torch

    found = getattr(torch.nn.functional, name, None) if isinstance(name, str) and not name.startswith("_") else None
    if not callable(found):
        raise ValueError(
            f"training.loss is {name!r}, but must be a function of torch.nn.functional, such as 'cross_entropy'."
        )
    return found


def _optimizer(name: Any) -> Any:
    import torch

    from discreet.training.optimisers import AdamBC

    found = AdamBC if name == "AdamBC" else getattr(torch.optim, name, None) if isinstance(name, str) else None
    if not isinstance(found, type) or not issubclass(found, torch.optim.Optimizer):
        raise ValueError(
            f"training.optimizer is {name!r}, but must be a class of torch.optim, such as 'SGD' or 'Adam', or 'AdamBC'."
        )
    return found


def _noise(asked: Any) -> Any:
    """A noise by name, or a table of its name and its parameters."""
    from discreet.training import Auto, noise

    if asked == "auto":
        return asked
    facts = {"name": asked} if isinstance(asked, str) else dict(asked) if isinstance(asked, dict) else {}
    kinds = {kind.__name__: kind for kind in (noise.Independent, *_subclasses(noise.Correlated), Auto)}
    kind = kinds.get(str(facts.pop("name", None)))
    if kind is None:
        raise ValueError(
            f"privacy.noise is {asked!r}, but must be 'auto', one of {', '.join(map(repr, sorted(kinds)))}, or a table "
            "with such a name and its parameters."
        )
    known = getattr(kind, "__dataclass_fields__", {})
    if unknown := sorted(set(facts) - set(known)):
        raise ValueError(
            f"privacy.noise has {unknown[0]!r}, but {kind.__name__} takes {', '.join(known) or 'no parameters'}."
        )
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    return kind(**facts)


def _subclasses(kind: Any) -> list[Any]:
    return [found for child in kind.__subclasses__() for found in (child, *_subclasses(child))]


def _factory(name: Any) -> Callable[[], Any]:
    module, _, function = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not module or not function:
        raise ValueError(f"factory is {name!r}, but must be 'module:function'.")
    try:
        return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise ValueError(f"factory is {name!r}, but: {error}.") from None


def _model(asked: dict[str, Any]) -> Callable[[], torch.nn.Module]:
    if "factory" in asked:
        return _factory(asked["factory"])
    sizes = asked.get("layers", [])
    if (
        not isinstance(sizes, list)
        or len(sizes) < 2
        or not all(type(size) is int and 1 <= size <= 10**6 for size in sizes)
    ):
        raise ValueError(
            "model.layers needs at least two sizes, the inputs' and the outputs', whole numbers from 1; or give "
            "model.factory."
        )
    from discreet.cli.network import make_layers

    return lambda: make_layers(sizes)


def _data(asked: dict[str, Any], folder: Path) -> Any:
    if "factory" in asked:
        return _factory(asked["factory"])()
    if "path" not in asked:
        raise ValueError("data.path is missing: an .npz file with the inputs and the target; or give data.factory.")
    import numpy as np
    import torch

    names = [asked.get("inputs", "x"), asked.get("target", "y")]
    try:
        with np.load(folder / asked["path"]) as arrays:  # allow_pickle is off: nothing in the file is run
            if absent := [name for name in names if name not in arrays.files]:
                raise ValueError(f"{asked['path']} has no array {absent[0]!r}; it has {', '.join(arrays.files)}.")
            inputs, target = (arrays[name] for name in names)
    except (EOFError, zipfile.BadZipFile, TypeError, AttributeError):
        raise ValueError(f"data.path is {asked['path']!r}, but must be an .npz file of numbers.") from None
    if odd := [name for name, array in zip(names, (inputs, target), strict=True) if array.dtype.kind not in "biuf"]:
        raise ValueError(f"{asked['path']} has an array {odd[0]!r} that does not hold numbers.")
    return torch.from_numpy(inputs).float(), torch.from_numpy(target)
