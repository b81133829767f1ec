"""Networks of tables: what ``discreet train`` makes of a file and its schema, and ``discreet predict`` predicts with.

Columns become numbers as in ``discreet fit`` (``encoding.design``). The statement beside the weights holds the
declaration and the sizes of the layers, and the weights are read as numbers alone: no file runs anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import extra
from discreet.release import ONE_RECORD, Enforced
from discreet.schema import Bounded, Categories, declaration

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from discreet.encoding import Design

__all__ = ["Network", "Trained", "load_network", "make_layers"]

FORMAT = "discreet network 1"
_LARGEST = 10**6
_BAD = "The file {!r} holds no network made by 'discreet train' from a table: {}."


def make_layers(sizes: list[int]) -> torch.nn.Module:
    """Linear layers of these sizes, with a ReLU after each but the last."""
    import torch

    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


@dataclass(frozen=True)
class Network:
    """A network of one declared column from the others, with hidden layers of these sizes."""

    design: Design
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(type(size) is int and 1 <= size <= _LARGEST for size in self.hidden):
            raise ValueError(
                f"model.hidden is {list(self.hidden)!r}, but must be sizes of layers, whole numbers from 1."
            )
        if self.design.declaration.unit == ONE_RECORD:
            raise ValueError(f"The unit's column is called {ONE_RECORD!r}, which is what books call a row: rename it.")

    @property
    def sizes(self) -> list[int]:
        """Of the layers: as many inputs as the columns become, as many outputs as the target has labels."""
        goal = self.design.goal
        return [self.design.width, *self.hidden, len(goal.labels) if isinstance(goal, Categories) else 1]

    @property
    def unit(self) -> str:
        """Whom training protects: a row, or the schema's unit, of which the first row counts. Then it is no row's
        guarantee: without its first row a unit has another, which is two records' change.
        """
        name = self.design.declaration.unit
        return ONE_RECORD if name is None else Enforced(name)

    @property
    def loss(self) -> str:
        """Of ``torch.nn.functional``, where none is asked for."""
        return "cross_entropy" if isinstance(self.design.goal, Categories) else "mse_loss"

    def model(self) -> torch.nn.Module:
        """A new one."""
        return make_layers(self.sizes)

    def tensors(self, data: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows that count. A row with a missing number, or without a target, has the gradient zero."""
        import torch

        rows = self.design.encoder.read(data)
        inputs, targets = torch.from_numpy(self.design.matrix(rows)).float(), self.design.targets(rows)
        if isinstance(self.design.goal, Categories):
            return inputs, torch.from_numpy(targets)
        middle, half = self._interval
        return inputs, torch.from_numpy((targets - middle) / half).float()[:, None]

    def predict(self, model: torch.nn.Module, data: Any) -> NDArray[Any]:
        """Labels, or values inside the target's bounds; a missing number counts as the middle of its bounds."""
        import numpy as np
        import torch

        with torch.no_grad():
            found = model(torch.from_numpy(np.nan_to_num(self.design.rows_to_predict(data))).float()).numpy()
        if isinstance(self.design.goal, Categories):
            return self.design.as_labels(found.argmax(axis=1))
        middle, half = self._interval
        return self.design.as_labels(found[:, 0].astype(np.float64) * half + middle)

    def probabilities(self, model: torch.nn.Module, data: Any) -> tuple[tuple[Any, ...], NDArray[Any]]:
        """The target's labels, and for each row how likely the model holds each of them: the softmax of its scores."""
        import numpy as np
        import torch

        labels = self.design.labels
        with torch.no_grad():
            scores = model(torch.from_numpy(np.nan_to_num(self.design.rows_to_predict(data))).float())
        return labels, torch.softmax(scores.double(), dim=1).numpy()

    @property
    def _interval(self) -> tuple[float, float]:
        goal = self.design.goal
        assert isinstance(goal, Bounded)
        return (goal.low + goal.high) / 2, (goal.high - goal.low) / 2

    def to_dict(self) -> dict[str, Any]:
        """What a statement says of it."""
        from discreet.linear.saved import as_schema_facts

        facts = {"declaration": as_schema_facts(self.design.declaration), "target": self.design.target}
        return {"format": FORMAT, **facts, "hidden": list(self.hidden)}

    @staticmethod
    def of(found: Any, path: str) -> Network:
        """What a statement said of it."""
        if not isinstance(found, Mapping) or found.get("format") != FORMAT:
            raise ValueError(_BAD.format(path, f"its statement does not say {FORMAT!r}"))
        facts, hidden, target = found.get("declaration"), found.get("hidden"), found.get("target")
        if not isinstance(facts, dict) or not isinstance(hidden, list) or not isinstance(target, str):
            raise ValueError(_BAD.format(path, "its statement is not whole"))
        from discreet.encoding import Design

        return Network(Design(declaration(facts), target), tuple(hidden))


@dataclass(frozen=True)
class Trained:
    """A network with its weights and its privacy statement, as predictions need it."""

    network: Network
    model: torch.nn.Module
    statement: dict[str, Any]

    @property
    def design(self) -> Design:
        """How columns become numbers."""
        return self.network.design

    @property
    def target(self) -> str:
        """The column that it predicts."""
        return self.design.target

    def probabilities(self, data: Any) -> tuple[tuple[Any, ...], NDArray[Any]]:
        """The target's labels, and how likely each of them is for each row."""
        return self.network.probabilities(self.model, data)

    def predict(self, data: Any) -> NDArray[Any]:
        """One prediction a row."""
        return self.network.predict(self.model, data)


def load_network(path: str) -> Trained:
    """The network whose weights lie at ``path``, and its statement beside them, in ``path.json``."""
    with extra("torch"):
        import torch

    try:
        statement = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(_BAD.format(path, "its statement is not JSON")) from None
    statement = statement if isinstance(statement, dict) else {}
    network = Network.of(statement.get("network"), path)
    if not Path(path).is_file():
        raise ValueError(f"The model {path!r} is not there.")
    if hashlib.sha256(Path(path).read_bytes()).hexdigest() != statement.get("sha256"):
        raise ValueError(_BAD.format(path, "its weights are not those that its statement was made for"))
    with torch.device("meta"):  # sizes alone: a statement may say any, the file has what memory is needed for
        model = network.model()
    try:
        weights = torch.load(path, weights_only=True)  # numbers alone: nothing in the file is run
        model.load_state_dict(weights, assign=True)
        model = model.float()
    except Exception:
        raise ValueError(_BAD.format(path, "its weights do not fit its layers")) from None
    return Trained(network, model, statement)
