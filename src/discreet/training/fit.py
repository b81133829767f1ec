"""Private training for people without a loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal, TextIO, TypeVar

from discreet.errors import extra, positive, whole
from discreet.release import Release
from discreet.training.privacy import Privacy
from discreet.training.private import make_private

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset

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
    records = TensorDataset(*map(_tensor, data)) if isinstance(data, tuple) else data
    criterion = nn.functional.cross_entropy if loss_fn is None else loss_fn
    made = optimizer((p for p in model.parameters() if p.requires_grad), lr=positive("lr", lr))
    loader: Any = DataLoader(records, batch_size=whole("batch_size", batch_size, low=1))
    model, private, loader = make_private(model, made, loader, loss_reduction=loss_reduction, **options)
    privacy: Privacy = private.privacy  # type: ignore[attr-defined]
    line = Progress(privacy, options.get("delta")) if progress else None
    privacy.local = progress == "local"
    model.train()
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
    return Release(model, privacy.planned, reproducible=privacy.reproducible)


def _tensor(column: Any) -> Tensor:
    """An array becomes a tensor, its floats those that new models are made of."""
    if isinstance(column, Tensor):
        return column
    made = torch.tensor(column)
    return made.to(torch.get_default_dtype()) if made.is_floating_point() else made
