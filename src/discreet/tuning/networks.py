"""Private selection of torch models: learning rate, clip norm, batch size, layers, whatever ``Training`` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from discreet.errors import extra, positive
from discreet.statistics.asking import spell_out
from discreet.training import Training
from discreet.tuning.scores import Correct, Score
from discreet.tuning.selection import DEFAULTS, Chosen, SearchOptions, select
from discreet.tuning.space import Params

with extra("torch"):
    import torch

__all__ = ["predicted_classes", "search"]


@spell_out(SearchOptions, "", DEFAULTS)
def search(
    train: Callable[[Params], Training[Any]],
    space: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    data: tuple[Any, Any],
    *,
    score: Score | None = None,
    score_epsilon: float | None = None,
    **options: Unpack[SearchOptions],
) -> Chosen:
    """The best of a random number of private training runs, on ``data`` = (inputs, targets).

    ``train(params)`` is a ``Training``. Without a ``score`` models are compared by how many targets their largest
    output names, a count with discrete Laplace noise of ``score_epsilon``. All else is ``select``'s.

    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)); y = (x[:, 0] > 0).long()
    >>> train = lambda params: Training(lambda: torch.nn.Linear(2, 2), dataset_size=200, batch_size=50, epochs=1,
    ...                                 noise_multiplier=1.0, **params)
    >>> best = search(train, {"lr": [0.01, 1.0]}, (x, y), score_epsilon=0.5, mean=2, rng=1)
    >>> sorted(best.params), type(best.model).__name__
    (['lr'], 'Linear')
    """
    if (score is None) == (score_epsilon is None):
        raise ValueError("Give score_epsilon, to compare models by how many targets they predict, or your own score.")
    compared = score or Correct(epsilon=positive("score_epsilon", score_epsilon), predict=predicted_classes)
    return select(train, space, data, score=compared, **options)


def predicted_classes(model: torch.nn.Module, rows: Any) -> Any:
    """The class of each row's largest output, a row at a time as far as the model can tell: in evaluation mode."""
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            made = torch.as_tensor(rows)
            return model(made.to(next(model.parameters()).dtype) if made.is_floating_point() else made).argmax(-1)
    finally:
        model.train(was)
