"""A torch network as a scikit-learn classifier: for teachers, and for students that learn from rows without a label
too.

Labels are whole numbers; -1 stands for none, as in scikit-learn's semi-supervised learners. Rows without a label are
used by *consistency*: what the network says of a slightly changed row, if it is sure of it, is what it shall say of the
same row changed strongly. Predictions are those of a running average of the weights.

No noise is drawn here and no price paid: a student reads public rows and answers that were released, and of a teacher
nothing is shown but its noisy vote.

Reference: Sohn et al. (2020), "FixMatch"; Tarvainen and Valpola (2017) for averaged weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.nn import functional
with extra("sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["NetworkClassifier"]

Change = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(eq=False, repr=False)
class NetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """``module()`` makes a network that gives one score a class, of classes 0 to ``n_classes`` - 1.

    ``weak`` and ``strong`` change a batch of rows at random without changing its labels; ``confidence`` is how sure the
    network must be of a row without a label before it learns from it. An epoch passes over all rows once, in batches of
    ``batch_size`` rows without a label (or with one, if all have one).

    >>> X = np.array([[-1.0], [1.0]] * 40, np.float32); y = np.array([0, 1] + [-1] * 78)
    >>> NetworkClassifier(lambda: torch.nn.Linear(1, 2), n_classes=2, epochs=20, lr=0.1).fit(X, y).predict(X[:2])
    array([0, 1])
    """

    module: Callable[[], torch.nn.Module]
    _: KW_ONLY
    n_classes: int
    epochs: int = 20
    batch_size: int = 64
    lr: float = 2e-3
    weight_decay: float = 5e-4
    weak: Change | None = None
    strong: Change | None = None
    confidence: float = 0.95
    averaging: float = 0.995
    random_state: int | None = 0

    def fit(self, X: Any, y: Any) -> NetworkClassifier:
        """Learn from the rows with a label and, by consistency, from those without."""
        rows, labels = torch.as_tensor(np.asarray(X, np.float32)), torch.as_tensor(np.asarray(y, np.int64))
        known, other = torch.nonzero(labels >= 0)[:, 0], torch.nonzero(labels < 0)[:, 0]
        if not len(known):
            raise ValueError("y has no label but -1, so there is nothing to learn from.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state or 0)
            network = self.module()
            self._train(network, rows, labels, known, other)
        self.classes_ = np.arange(self.n_classes)
        return self

    def _train(self, network: torch.nn.Module, rows: Tensor, labels: Tensor, known: Tensor, other: Tensor) -> None:
        chance = torch.Generator().manual_seed(self.random_state or 0)
        optimizer = torch.optim.AdamW(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        steps = self.epochs * -(-(len(other) or len(known)) // self.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.lr, total_steps=max(2, steps))
        self.network_ = copy.deepcopy(network)
        batches = zip(_endless(known, self.batch_size, chance), _endless(other, self.batch_size, chance), strict=False)
        for step, (with_label, without) in zip(range(steps), batches, strict=False):
            changed = _apply_change(self.weak, rows[with_label], chance)
            loss = functional.cross_entropy(network(changed), labels[with_label])
            if len(without):
                loss = loss + self._consistency(network, rows[without], chance)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            self._average(network, min(self.averaging, (step + 1) / (step + 10)))

    def _consistency(self, network: torch.nn.Module, rows: Tensor, chance: torch.Generator) -> Tensor:
        with torch.no_grad():
            sure, guess = functional.softmax(network(_apply_change(self.weak, rows, chance)), dim=1).max(dim=1)
        loss = functional.cross_entropy(network(_apply_change(self.strong, rows, chance)), guess, reduction="none")
        return (loss * (sure >= self.confidence)).mean()

    def _average(self, network: torch.nn.Module, share: float) -> None:
        with torch.no_grad():
            for kept, new in zip(self.network_.state_dict().values(), network.state_dict().values(), strict=True):
                kept.copy_(kept * share + new * (1 - share) if kept.is_floating_point() else new)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities, one column per class."""
        rows = torch.as_tensor(np.asarray(X, np.float32))
        self.network_.eval()
        with torch.no_grad():
            parts = [functional.softmax(self.network_(part), dim=1) for part in torch.split(rows, 1000)]
        return torch.cat(parts).numpy().astype(np.float64)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The likeliest class of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


def _apply_change(change: Change | None, rows: Tensor, chance: torch.Generator) -> Tensor:
    return rows if change is None else change(rows, chance)


def _endless(index: Tensor, size: int, chance: torch.Generator) -> Iterator[Tensor]:
    """Batches of the indices, in an order that is shuffled anew each time they are used up."""
    while True:
        yield from torch.split(index[torch.randperm(len(index), generator=chance)], size) if len(index) else [index]
