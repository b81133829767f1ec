"""Private training for people without a loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal, TextIO, TypeVar

from discreet.errors import DiscreetError, extra, positive, whole
from discreet.release import Release
from discreet.training.loader import zeroed
from discreet.training.privacy import Privacy
from discreet.training.private import make_private
from discreet.training.refusals import PrivateTrainingError

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

__all__ = ["Progress", "fit"]

Model = TypeVar("Model", bound="nn.Module")


class Progress:
    """One line on a stream: steps, epsilon so far, steps a second.

    What depends on the data without noise, the loss and the share of clipped gradients, is shown only if ``update`` is given
    it and ``privacy.local`` is set, and is marked as not private.
    """

    def __init__(self, privacy: Privacy, delta: float | None, stream: TextIO | None = None) -> None:
        self.privacy, self.delta, self.stream = privacy, delta, sys.stderr if stream is None else stream
        self._start, self._epsilon = time.monotonic(), ""

    def update(self, loss: Tensor | None = None) -> None:
        """Write the line; epsilon is computed again twenty times in a run."""
        done, total = self.privacy.steps, self.privacy.plan.steps
        if self.delta is not None and (done == total or done % max(1, total // 20) == 0):
            self._epsilon = f", ε {self.privacy.epsilon(self.delta, executed=True):.3f} at δ {self.delta:g}"
        rate = done / max(1e-9, time.monotonic() - self._start)
        filled = "█" * (20 * done // max(1, total))
        local = ""
        if self.privacy.local and loss is not None:
            local = f" [local, not private: loss {float(loss.mean()):.3f}, {self.privacy.clip_rate:.0%} clipped]"
        self.stream.write(f"\r{filled:░<20} step {done}/{total}{self._epsilon}, {rate:.1f} steps/s{local} ")
        self.stream.write("\n" if done == total else "")
        self.stream.flush()


def fit(
    model: Model,
    data: Dataset[Any] | tuple[Any, ...],
    *,
    loss_fn: Callable[..., Tensor] | None = None,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    lr: float = 0.1,
    batch_size: int = 256,
    loss_reduction: Any = "mean",
    progress: bool | Literal["local"] = False,
    **options: Any,
) -> Release[Model]:
    """Train a model privately and release it; ``options`` are those of ``make_private``.

    ``data`` is a dataset of (inputs, target), or a tuple of tensors or arrays. Without ``loss_fn`` the loss is cross entropy.
    ``progress`` shows steps, epsilon and rate; ``"local"`` also the loss and the share of clipped gradients, which are not
    private.

    >>> torch.manual_seed(0); x = torch.randn(200, 3)  # doctest: +ELLIPSIS
    <...>
    >>> trained = fit(torch.nn.Linear(3, 2), (x, (x[:, 0] > 0).long()), epsilon=2.0, delta=1e-4, epochs=2, batch_size=50)
    >>> from discreet import epsilon
    >>> round(epsilon(trained.event, delta=1e-4), 2)
    2.0
    """
    records = _records(*map(_tensor, data)) if isinstance(data, tuple) else data
    criterion = nn.functional.cross_entropy if loss_fn is None else loss_fn
    _rehearse(model, records, criterion)
    made = optimizer((p for p in model.parameters() if p.requires_grad), lr=positive("lr", lr))
    loader: Any = DataLoader(records, batch_size=whole("batch_size", batch_size, low=1))
    model, private, loader = make_private(model, made, loader, loss_reduction=loss_reduction, **options)
    privacy: Privacy = private.privacy  # type: ignore[attr-defined]
    line = Progress(privacy, options.get("delta")) if progress else None
    privacy.local = progress == "local"
    model.train()
    _quietly(lambda: _train(model, private, loader, criterion, line))
    return Release(model, privacy.planned, reproducible=privacy.reproducible)


def _train(model: nn.Module, private: Any, loader: Any, criterion: Callable[..., Tensor], line: Progress | None) -> None:
    privacy = private.privacy
    while privacy.remaining_steps:
        for *inputs, target in loader:
            private.zero_grad()
            loss = criterion(model(*inputs), target)
            (loss.sum() if loss.dim() else loss).backward()
            private.step()
            if line is not None:
                line.update(loss.detach())
            if not privacy.remaining_steps:
                break


def _quietly(training: Callable[[], None]) -> None:
    """Run; what torch says of a batch that it could not take would tell of records, or how many there were."""
    try:
        training()
        return
    except DiscreetError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise PrivateTrainingError(f"Training stopped ({kind}). The message is withheld, because it may tell of records. Common "
                               "causes: a target outside the classes of the model, records of different shapes.")


def _rehearse(model: nn.Module, records: Dataset[Any], criterion: Callable[..., Tensor]) -> None:
    """Run model and loss on two records of zeros in the shapes of the data, which are public, before anything is charged."""
    if not len(records):  # type: ignore[arg-type]
        return  # refused for that, in a moment
    if isinstance(records, TensorDataset):
        *inputs, target = (column.new_zeros((2, *column.shape[1:])) for column in records.tensors)
    else:
        *inputs, target = default_collate([zeroed(records[0])] * 2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        with torch.random.fork_rng(devices=[]):
            loss = criterion(model(*inputs), target)
            (loss.sum() if loss.dim() else loss).backward()
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"Model and loss do not run on two records of zeros in the shapes of the data: {reason}") from None
    finally:
        model.load_state_dict(before)
        model.zero_grad(set_to_none=True)


def _records(*columns: Tensor) -> Dataset[Any]:
    if len({len(column) for column in columns}) != 1:
        raise ValueError("data has columns of different lengths, but each must have one entry a record.")
    return TensorDataset(*columns)


def _tensor(column: Any) -> Tensor:
    """An array becomes a tensor, its floats those that new models are made of."""
    if isinstance(column, Tensor):
        return column
    made = torch.tensor(column)
    return made.to(torch.get_default_dtype()) if made.is_floating_point() else made
