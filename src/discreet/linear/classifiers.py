"""Private linear classifiers: logistic regression and the support vector machine, for two classes or more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.labels import Labels
from discreet.errors import extra
from discreet.habits import answer_other_names
from discreet.linear.base import Regularized
from discreet.linear.losses import CustomLoss, HuberHinge, Logistic, Loss, OneVersusRest, Softmax

with extra("sklearn"):
    from sklearn.base import ClassifierMixin

__all__ = ["LinearClassifier", "LinearSVC", "LogisticRegression"]


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class _Classifier(ClassifierMixin, Regularized):  # type: ignore[misc]
    """Labels against declared classes, scores, predictions."""

    classes: Any = None

    def _declared_classes(self) -> NDArray[Any]:
        return Labels(self.classes).declared

    def _attributes(self, *learned: Any) -> dict[str, Any]:
        return {"classes_": self._declared_classes(), **super()._attributes(*learned)}

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: one per record for two classes, otherwise one per class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score."""
        scores = self.decision_function(X)
        at = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[at])


class LogisticRegression(_Classifier):
    r"""Differentially private logistic regression, binary or multinomial.

    Minimises Σ log-loss + Λ/2·‖w‖² over rows of norm at most ``feature_norm``, plus a regularised intercept.

    Parameters are public facts:

    epsilon, delta:
        The budget; ``delta=0`` asks for pure differential privacy.
    feature_norm, bounds:
        Rows are shrunk to this L2 norm; with ``bounds=(lower, upper)``, numbers or one per feature, features are cut to
        them and scaled to [-1, 1] first (``feature_norm`` is then in those units, √d by default).
    classes:
        All labels there can be; always given. A record with another label contributes nothing.
    regularization:
        Λ, in units of ``feature_norm``; by default from the noise (larger where there is more).
    solver, solver_options:
        "auto", or a name from ``discreet.linear.solvers.NAMES`` with its options (``steps``, ``clip``, ...).
    dataset_size:
        The number of records if it is public, or a rough public number. Without it, and under add-remove, a noisy count
        takes 1 % of the budget. It sets step sizes, never noise.
    adjacency:
        "add-remove", or "replace", under which the number of records is public.

    Guarantee: ``event_``, which ``privacy_event()`` knows beforehand; ``dp.epsilon(event_, delta)`` never exceeds
    epsilon.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3)); y = (X[:, 0] + 0.1 * rng.normal(size=5000) > 0).astype(int)
    >>> clf = LogisticRegression(epsilon=1.0, delta=1e-6, feature_norm=3.0, classes=(0, 1), random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9), clf.solver_
    (True, 'gd')
    """

    def _loss(self) -> Loss:
        number = len(self._declared_classes())
        return Logistic() if number == 2 else Softmax(number)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        r"""Probabilities of the classes.

        Where gradients were clipped, the model minimised a clipped loss, whose scores are more extreme than log-odds.
        With p the softmax and f_k ≤ 1 the factor that clips a record of class k, the minimiser of that loss satisfies
        q_k f_k ∝ p_k, so q_k ∝ p_k/f_k is returned; it is p itself where nothing is clipped. f is taken for a row of
        the largest norm, so that probabilities rank records as scores do.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = grown / grown.sum(axis=1, keepdims=True)
        if (clip := self._clip_norm) is None:
            return np.asarray(p)
        # ‖p - e_k‖ for every class, or |p - y| for the single residual of two classes
        squares = (1 - p) ** 2 if len(self.classes_) == 2 else (p * p).sum(axis=1, keepdims=True) - 2 * p + 1
        lengths = np.sqrt(np.maximum(squares, 0))
        q = p * np.maximum(1, lengths * self._map.square**0.5 / clip)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVC(_Classifier):
    """A differentially private linear support vector machine: the hinge with a rounded corner of width ``smoothing``.

    More than two classes are fitted together, one against the rest in one run, so that the budget is not split.
    Parameters and guarantee as in ``LogisticRegression``.

    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0]] * 3000); y = np.array([1, 0] * 3000)
    >>> model = LinearSVC(epsilon=1.0, delta=1e-6, feature_norm=1.0, classes=(0, 1), random_state=0)
    >>> model.fit(X, y).score(X, y)
    1.0
    """

    smoothing: float = 0.5

    def _loss(self) -> Loss:
        number, hinge = len(self._declared_classes()), HuberHinge(self.smoothing)
        return hinge if number == 2 else OneVersusRest(hinge, number)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(_Classifier):
    """A differentially private linear classifier of two classes with a loss of one's own (``losses.CustomLoss``).

    Its targets are -1 and 1. Parameters and guarantee as in ``LogisticRegression``; only solvers that clip are offered.
    """

    loss: CustomLoss = field(kw_only=False)

    def _loss(self) -> Loss:
        if len(self._declared_classes()) != 2:
            raise ValueError(f"classes is {self.classes!r}, but your own loss takes two labels.")
        return self.loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
