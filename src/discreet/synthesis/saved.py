"""Fitted models in files: arrays, and JSON for the rest. Reading one runs nothing and imports no name from it.

The file is NumPy's zip of arrays (``.npz``), read without pickles: the tables of the cliques, and one array of bytes,
the JSON that says the schema, the bins, the tree and the privacy statement.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import whole
from discreet.schema import Bounded, Categories, Declaration, Unlisted, declaration
from discreet.synthesis.column_shape import Shape
from discreet.synthesis.domain import Domain
from discreet.synthesis.frames import Kind
from discreet.synthesis.model import Model
from discreet.synthesis.trees import JunctionTree

__all__ = ["load", "save"]

FORMAT, OLDER = "discreet synthetic table 2", ("discreet synthetic table 1",)  # which knew no shapes
_BAD = "{path!r} holds no model made by discreet.synthesis: {why}."
_KINDS: tuple[Kind, ...] = ("pandas", "polars", "pyarrow", "columns")


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file of exactly this name."""
    domain = model.domain
    facts = {
        "format": FORMAT,
        "statement": dict(model.statement),
        "kind": model.kind,
        "declaration": _as_schema_facts(domain.declaration),
        "bins": {n: list(domain.edges(n)) for n, c in domain.declaration.schema.items() if isinstance(c, Bounded)},
        "structural_zeros": [[list(n), [list(v) for v in values]] for n, values in domain.structural_zeros.items()],
        "dependencies": {n: [source, list(values.items())] for n, (source, values) in domain.dependencies.items()},
        "whole": list(domain.whole),
        "dates": list(domain.dates),
        "texts": list(domain.texts),
        "order": list(model.order),
        "constraints": list(domain.constraints),
        "shapes": {n: [list(s.edges), list(s.weights), s.is_whole] for n, s in domain.shapes.items()},
        "cliques": model.tree.cliques,
        "parents": model.tree.parents,
    }
    text = np.frombuffer(json.dumps(facts, allow_nan=False, default=_plain).encode(), np.uint8)
    tables: dict[str, Any] = {f"table{k}": table for k, table in enumerate(model.tables)}
    with open(path, "wb") as file:
        np.savez_compressed(file, facts=text, **tables)


def _plain(value: Any) -> Any:
    """What JSON does not know: NumPy's numbers."""
    if not isinstance(value, np.generic):
        raise TypeError(f"{type(value).__name__} cannot be kept in a file.")
    return value.item()


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file, or a ``ValueError``."""
    held = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(held), allow_pickle=False) as arrays:
            facts = json.loads(bytes(arrays["facts"]).decode())
            if not isinstance(facts, dict) or facts.get("format") not in (FORMAT, *OLDER):
                raise ValueError(f"it does not say {FORMAT!r}")
            tables = [np.asarray(arrays[f"table{k}"], np.float64) for k in range(len(facts["cliques"]))]
        return _model(facts, tables)
    except Exception as error:  # whatever is wrong with a file, it is refused
        raise ValueError(_BAD.format(path=os.fspath(path), why=str(error) or type(error).__name__)) from None


def _model(facts: dict[str, Any], tables: list[Any]) -> Model:
    domain = Domain(
        declaration(facts["declaration"]),
        {name: tuple(edges) for name, edges in facts["bins"].items()},
        {tuple(names): [tuple(values) for values in combos] for names, combos in facts["structural_zeros"]},
        {name: (source, dict(map(tuple, values))) for name, (source, values) in facts["dependencies"].items()},
        tuple(facts["whole"]),
        tuple(facts.get("dates", ())),
        tuple(facts.get("texts", facts.get("dates", ()))),
        {n: Shape(tuple(e), tuple(w), bool(is_whole)) for n, (e, w, is_whole) in facts.get("shapes", {}).items()},
        tuple(facts.get("constraints", ())),
    )
    cliques = tuple(tuple(whole("cliques", i) for i in clique) for clique in facts["cliques"])
    tree = JunctionTree(domain.sizes, cliques, tuple(whole("parents", p) for p in facts["parents"]))
    if {i for clique in cliques for i in clique} != set(range(len(domain.sizes))):
        raise ValueError("a column is in no clique")
    for place, (clique, table) in enumerate(zip(cliques, tables, strict=True)):
        if table.shape != tree.shape(clique) or not np.isfinite(table).all() or (table < 0).any():
            raise ValueError("a table does not fit its columns")
        _check_place(tree, place)
        if not np.isclose(table.sum(), tables[0].sum()):
            raise ValueError("its tables are of different totals")
    if facts["kind"] not in _KINDS:
        raise ValueError("its kind of frame is unknown")
    return Model(domain, tree, tables, facts["kind"], dict(facts["statement"]), tuple(facts.get("order", ())))


def _check_place(tree: JunctionTree, place: int) -> None:
    """A clique hangs on an earlier one, which has all that it shares with those before."""
    clique, earlier = tree.cliques[place], {i for c in tree.cliques[:place] for i in c}
    if list(clique) != sorted(set(clique)) or not tree.parents[place] <= max(place - 1, 0):
        raise ValueError("the cliques make no tree")
    if set(clique) & earlier != set(tree.separator(place)):
        raise ValueError("the cliques make no tree")


def _as_schema_facts(facts: Declaration) -> dict[str, Any]:
    """A declaration as a schema file says it."""
    columns: dict[str, Any] = {}
    for name, column in facts.schema.items():
        if isinstance(column, Bounded):
            missing = {} if column.missing == "drop" else {"missing": column.missing}
            told = {"whole": True} if column.whole else {}
            columns[name] = {"bounds": [column.low, column.high], **missing, **told}
        elif isinstance(column, Categories):
            other = {} if column.other is None else {"other": column.other}
            columns[name] = {"categories": list(column.values), **other}
        elif isinstance(column, Unlisted):
            columns[name] = {"unlisted": True}
        else:
            raise ValueError(f"Column {name!r} is {type(column).__name__}, which no model's file says.")
    return {"columns": columns} | ({} if facts.unit is None else {"unit": facts.unit})
