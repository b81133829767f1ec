"""Every estimator on eight data sets, beside its non-private twin and its peer (diffprivlib, InterpretML's DP-EBM).

Classifiers are scored by accuracy, regressors by R², components by the share of variance they keep, k-means by the mean
squared distance to the nearest centre, in units of the bounds. Settings are the defaults; public facts are those of
``_tasks``. Peers run in an environment of their own, with the same rows, splits, bounds and epsilons; diffprivlib is
pure, the others have the delta.

Every score is kept in ``docs/experiments/estimators.json`` as soon as it is found, so that a run that was stopped goes
on where it was: ``python -m experiments.estimators [--quick] [--seeds N] [--no-peers] [DATA ...]``. ``--quick`` is one
seed at epsilon 1 without peers, and keeps nothing.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, svm, tree

from benchmarks import peers
from benchmarks.peers_models import kept, nearest
from discreet import estimators as ours
from discreet import linear
from experiments import _results
from experiments._tasks import TASKS, Task

NAME, EPSILONS, DELTA, SEEDS = "estimators", (0.1, 1.0, 10.0), 1e-5, 10
COMPONENTS, CLUSTERS = 3, 5
CLASSIFIERS = ("logistic", "support vectors", "additive", "tree", "forest", "naive Bayes")
REGRESSORS = ("least squares", "additive")
UNSUPERVISED = ("components", "k-means")
PEERS = {
    **dict.fromkeys(("logistic", "tree", "forest", "naive Bayes", "least squares", *UNSUPERVISED), "diffprivlib"),
    "additive": "DP-EBM",
}
WIDE = ("logistic", "support vectors", "least squares")  # models of one-hot rows; the others take codes
Scores = dict[str, list[float | None]]


def named(task: Task) -> tuple[str, ...]:
    """The estimators for a task."""
    return (*(CLASSIFIERS if task.classes else REGRESSORS), *UNSUPERVISED)


def private(name: str, task: Task, epsilon: float, seed: int) -> Any:
    """Ours, at its defaults."""
    public: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    bounded = public | {"bounds": task.bounds}
    binned, nominal = bounded | {"bins": task.bins}, {"nominal": task.nominal}
    rows = public | {"feature_norm": task.wide[1]}
    classes, target = {"classes": task.classes}, {"target_bounds": task.target}
    makers: dict[str, Callable[[], Any]] = {
        "logistic": lambda: linear.LogisticRegression(**rows, **classes),
        "support vectors": lambda: linear.LinearSVC(**rows, **classes),
        "least squares": lambda: linear.LinearRegression(**rows, **target),
        "additive": lambda: (
            ours.AdditiveClassifier(**binned, **nominal, **classes)
            if task.classes
            else ours.AdditiveRegressor(**binned, **nominal, **target)
        ),
        "tree": lambda: ours.DecisionTreeClassifier(**bounded, bins=[min(16, b) for b in task.bins], **classes),
        "forest": lambda: ours.RandomForestClassifier(**binned, **classes),
        "naive Bayes": lambda: ours.GaussianNB(**bounded, **classes),
        "components": lambda: ours.PCA(n_components=COMPONENTS, bounds=(0.0, 1.0), **public),
        "k-means": lambda: ours.KMeans(CLUSTERS, bounds=(0.0, 1.0), **public),
    }
    return makers[name]()


def plain(name: str, task: Task) -> Any:
    """The non-private twin."""
    boosting = ensemble.HistGradientBoostingClassifier if task.classes else ensemble.HistGradientBoostingRegressor
    makers: dict[str, Callable[[], Any]] = {
        "logistic": lambda: linear_model.LogisticRegression(C=100.0, max_iter=2000),
        "support vectors": lambda: svm.LinearSVC(),
        "least squares": lambda: linear_model.LinearRegression(),
        "additive": lambda: boosting(interaction_cst="no_interactions", random_state=0),
        "tree": lambda: tree.DecisionTreeClassifier(max_depth=6, random_state=0),
        "forest": lambda: ensemble.RandomForestClassifier(random_state=0),
        "naive Bayes": lambda: naive_bayes.GaussianNB(),
        "components": lambda: decomposition.PCA(COMPONENTS),
        "k-means": lambda: cluster.KMeans(CLUSTERS, n_init=3, random_state=0),
    }
    return makers[name]()


def scaled(task: Task) -> Any:
    """Columns from their bounds to [0, 1]."""
    low, high = task.bounds
    return (np.clip(task.x, low, high) - low) / (high - low)


def score(name: str, task: Task, model: Any, seed: int) -> float:
    """Of a model fitted to one split. Components and centres are those of columns scaled to [0, 1]."""
    train, test = task.split(seed)
    if name in UNSUPERVISED:
        rows = scaled(task)
        model.fit(rows[train])
        return kept(model.components_, rows[test]) if name == "components" else nearest(_centres(model), rows[test])
    x = task.wide[0] if name in WIDE else task.x
    return float(model.fit(x[train], task.y[train]).score(x[test], task.y[test]))


def _centres(model: Any) -> Any:
    return model.cluster_centers_


class Peer:
    """One process of the peers' environment, which answers question after question."""

    def __init__(self, task: Task) -> None:
        self.task, self.failed = task, ""
        self.waiting: deque[dict[str, Any]] = deque()
        script = peers.ROOT / "benchmarks" / "peers_models.py"
        self.answers = peers.stream(peers.python("models"), script, iter(self.waiting.popleft, None))

    def score(self, name: str, epsilon: float, seed: int) -> float | None:
        """None where the peer fails."""
        self.waiting.append(self._question(name, epsilon, seed))
        found = next(self.answers)
        self.failed = found.get("failure", self.failed)
        value = found.get("score")
        return None if value is None else (-value if name == "k-means" else float(value))

    def _question(self, name: str, epsilon: float, seed: int) -> dict[str, Any]:
        task = self.task
        train, test = task.split(seed)
        low, high = task.bounds
        x, norm = (task.wide[0], task.wide[1]) if name in WIDE else (task.x, 1.0)
        if name in UNSUPERVISED:
            x, low, high = scaled(task), np.zeros(len(low)), np.ones(len(high))
            norm = float(np.sqrt(len(low)))
        if name == "least squares":
            low, high = np.full(x.shape[1], -1.0), np.ones(x.shape[1])
        peers.BUILD.mkdir(exist_ok=True)
        path = peers.BUILD / f"estimators-{seed}.npz"
        facts = {"low": low, "high": high, "norm": norm, "classes": np.array(task.classes)}
        parts = {"x": x[train], "y": task.y[train], "test": x[test], "labels": task.y[test]}
        np.savez(path, **parts, **facts, target=np.array(task.target or ()))
        asked = {"data": str(path), "estimator": name, "epsilon": epsilon, "delta": DELTA, "seed": seed}
        return asked | {
            "nominal": list(task.nominal),
            "target": task.target,
            "components": COMPONENTS if name == "components" else CLUSTERS,
        }


def run(task: Task, found: Scores, seeds: int, epsilons: tuple[float, ...], with_peers: bool, keep: bool) -> None:
    """Fill in what is missing, and keep it. A peer that failed once on a question is not asked it again."""
    peer = Peer(task) if with_peers else None
    for name in named(task):
        jobs: dict[str, Callable[[int], float | None]] = {
            f"{task.name}|{name}|not private|": lambda seed, name=name: score(name, task, plain(name, task), seed)  # type: ignore[misc]
        }
        for epsilon in epsilons:
            jobs[f"{task.name}|{name}|discreet|{epsilon:g}"] = lambda seed, name=name, epsilon=epsilon: (  # type: ignore[misc]
                score(name, task, private(name, task, epsilon, seed), seed)
            )
            if peer and name in PEERS:
                jobs[f"{task.name}|{name}|peer|{epsilon:g}"] = partial(peer.score, name, epsilon)
        for key, job in jobs.items():
            has = found.setdefault(key, [])
            while len(has) < (1 if task.test and "not private" in key else seeds) and None not in has:
                value = job(len(has))
                has.append(None if value is None else round(value, 5))
                if keep:
                    _results.save(NAME, found)


def cell(found: Scores, key: str) -> str:
    """The mean of what stands, with the number of seeds if that is not all of them."""
    values = [value for value in found.get(key, []) if value is not None]
    if not values:
        return "fails" if found.get(key) else ""
    mean = float(np.mean(values))
    told = "< -100" if mean < -100 else f"{mean:.3f}" if mean > -1 else f"{mean:.1f}"
    return told + (f" ({len(values)})" if len(values) != SEEDS else "")


def rows(found: Scores) -> list[list[str]]:
    """The table: what is not private, then ours and the peer's at each epsilon."""
    lines = []
    order = (*CLASSIFIERS, *REGRESSORS, *UNSUPERVISED)
    for task, name in ((task, name) for task in TASKS for name in dict.fromkeys(order)):
        if f"{task}|{name}|not private|" not in found:
            continue
        told = [cell(found, f"{task}|{name}|not private|").split(" (")[0]]
        for epsilon in EPSILONS:
            told += [cell(found, f"{task}|{name}|{who}|{epsilon:g}") for who in ("discreet", "peer")]
        lines.append([task, name, *told])
    return lines


HEADER = ["data", "estimator", "not private", *(f"{who}, ε = {e:g}" for e in EPSILONS for who in ("ours", "peer"))]


def main(quick: bool = False) -> None:
    warnings.simplefilter("ignore")
    words, seeds = _results.asked(NAME, SEEDS, quick)
    with_peers = not quick and "--no-peers" not in words
    chosen = [word for word in words if word in TASKS] or list(TASKS)
    found: Scores = {} if quick else _results.kept(NAME)
    for name in chosen:
        run(TASKS[name](), found, seeds, (1.0,) if quick else EPSILONS, with_peers, keep=not quick)
        if not quick:
            _results.write_table(NAME, HEADER, rows(found))
    _results.show(NAME, HEADER, rows(found))


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
