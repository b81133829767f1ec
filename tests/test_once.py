"""What is computed of public facts is computed once: a table's measurement and its explanation, a model's noise."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp


def count_calls(monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, key: Any = lambda made: "") -> Counter[Any]:
    """How often a method runs, by what ``key`` says of its object afterwards."""
    calls: Counter[Any] = Counter()
    plain = getattr(kind, name)

    def counting(self: Any, *given: Any, **named: Any) -> Any:
        answer = plain(self, *given, **named)
        calls[key(self)] += 1
        return answer

    monkeypatch.setattr(kind, name, counting)
    return calls


def test_a_release_of_a_table_is_measured_and_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    from discreet.tables import aggregates, operation

    schema = dp.Schema(educ=dp.Categories(range(1, 5)), income=dp.Bounded(0, 100))
    rows = pd.DataFrame({"educ": [1, 2, 3, 4] * 5, "income": range(20)})
    table = dp.table(rows, schema=schema)
    book = dp.Ledger("sqlite://").open("b", epsilon=5.0)
    explained = count_calls(monkeypatch, operation.TableOperation, "explain")
    priced = count_calls(monkeypatch, aggregates.Mean, "mechanism")
    table.group_by("educ").mean("income").release(epsilon=1.0, book=book)
    assert explained.total() <= 1
    assert priced.total() == 1


def fits() -> dict[str, Any]:
    """A fit of each of a few models, by name."""
    from discreet.estimators import PCA, GaussianNB
    from discreet.linear import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    return {
        **{
            solver: lambda solver=solver: LogisticRegression(
                **budget, feature_norm=1.0, classes=(0, 1), solver=solver
            ).fit(X, y)
            for solver in ("gd", "sgd", "output", "objective")
        },
        "naive Bayes": lambda: GaussianNB(**budget, bounds=(-3, 3), classes=(0, 1)).fit(X, y),
        "components": lambda: PCA(n_components=2, **budget, bounds=(-3, 3)).fit(X),
    }


@pytest.mark.filterwarnings("ignore:No book counts")
@pytest.mark.parametrize("name", ["gd", "sgd", "output", "objective", "naive Bayes", "components"])
def test_a_fit_makes_each_of_its_mechanisms_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    made = count_calls(monkeypatch, dp.mechanisms.Gaussian, "__post_init__", repr)
    fits()[name]()
    assert all(times == 1 for times in made.values()), made


def test_an_option_that_several_commands_have_is_declared_once() -> None:
    """The others of one name mean something else in each command."""
    declared: Counter[str] = Counter()
    for file in (Path(dp.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option":
                declared.update(
                    each.value for each in node.args if isinstance(each, ast.Constant) and str(each.value)[:2] == "--"
                )
    shared = ("--epsilon", "--delta", "--out", "--json", "--ledger", "--book", "--no-book", "--schema", "--seed")
    assert [declared[name] for name in shared] == [1] * len(shared)
    assert {name for name, times in declared.items() if times > 1} == {
        "--sql",
        "--target",
        "--dataset",
        "--rows",
        "--by",
    }
