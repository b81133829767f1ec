"""``make_private``: the user's model, optimiser and loader, and a plan between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from discreet.adjacency import Adjacency
from discreet.errors import extra, whole
from discreet.random import RngLike
from discreet.release import ONE_RECORD, Book, unit_name
from discreet.training import admission
from discreet.training.gradients.clipped_sum import ClippedSum, Reduction
from discreet.training.gradients.clipping import Clipping
from discreet.training.loader import PrivateLoader, checked
from discreet.training.memory import settle
from discreet.training.noise.independent import GaussianNoise, streams
from discreet.training.plan import Schedule, planned
from discreet.training.privacy import CHECKED, Privacy, uncopied
from discreet.training.sampling import BallsInBins, FixedSize, Poisson, Sampler, Shuffled, TruncatedPoisson

with extra("torch"):
    from torch import nn
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

__all__ = ["SAMPLERS", "make_private"]

Model = TypeVar("Model", bound="nn.Module")
AnyOptimizer = TypeVar("AnyOptimizer", bound="Optimizer")

SAMPLERS: Mapping[str, type[Sampler]] = {"poisson": Poisson, "truncated-poisson": TruncatedPoisson, "fixed-size": FixedSize,
                                         "balls-in-bins": BallsInBins, "shuffled": Shuffled}
"""The samplers that a name is enough for."""


def _sampler(sampler: str | Sampler, loader: DataLoader[Any], dataset_size: int | None) -> Sampler:
    records, batch = len(loader.dataset), loader.batch_size  # type: ignore[arg-type]
    if isinstance(sampler, Sampler):
        found = sampler
        if dataset_size is not None and dataset_size != found.dataset_size:
            raise ValueError(f"dataset_size is {dataset_size}, but the sampler has {found.dataset_size}: say it in one place.")
    elif sampler in SAMPLERS:
        assert batch is not None
        size = records if dataset_size is None else whole("dataset_size", dataset_size, low=1)
        found = SAMPLERS[sampler](batch_size=batch, dataset_size=size)
    else:
        raise ValueError(f"sampler is {sampler!r}, but must be one of {', '.join(map(repr, SAMPLERS))}, or a Sampler.")
    if found.adjacency is Adjacency.REPLACE and found.dataset_size != records:
        raise ValueError(f"dataset_size is {found.dataset_size}, but must be the number of records: {type(found).__name__} "
                         "batches are priced for a public size.")
    return found


def _unit(sampler: Sampler, said: str | None) -> str:
    """Whom the run protects: what the sampler bounds, or a record, which the caller may say is a whole unit."""
    if said is None or said == sampler.unit:
        return sampler.unit
    if sampler.unit != ONE_RECORD:
        raise ValueError(f"unit is {said!r}, but the sampler bounds {str(sampler.unit)!r}: say it in one place.")
    return unit_name(said)


def _clipping(clipping: Clipping | str, max_grad_norm: float | None) -> Clipping:
    if isinstance(clipping, Clipping):
        if max_grad_norm is not None and max_grad_norm != clipping.max_grad_norm:
            raise ValueError(f"max_grad_norm is {max_grad_norm:g}, but the Clipping has {clipping.max_grad_norm:g}: say it in "
                             "one place.")
        return clipping
    norm = 1.0 if max_grad_norm is None else max_grad_norm
    if clipping == "automatic":
        return Clipping(max_grad_norm=norm, factor="automatic")
    return Clipping(max_grad_norm=norm, scope=clipping)  # type: ignore[arg-type]


def make_private(
    model: Model,
    optimizer: AnyOptimizer,
    loader: Any,
    *,
    loss_reduction: Reduction,
    epsilon: float | None = None,
    delta: float | None = None,
    epochs: float | None = None,
    noise_multiplier: float | None = None,
    max_grad_norm: float | None = None,
    clipping: Clipping | Literal["flat", "per-layer", "automatic"] = "flat",
    sampler: str | Sampler = "poisson",
    dataset_size: int | None = None,
    placeholder: Any = None,
    noise_schedule: Schedule | None = None,
    clip_schedule: Schedule | None = None,
    max_physical_batch_size: int | None = None,
    unit: str | None = None,
    book: Book | None = None,
    label: str = "private training",
    rng: RngLike = None,
    secure: bool = True,
) -> tuple[Model, AnyOptimizer, PrivateLoader]:
    """Make a training loop private: the same model and optimiser, and a loader that draws private batches.

    Two of (epsilon, delta), epochs and noise_multiplier decide the third. Handing over the loader declares its length
    public; ``dataset_size`` overrides. ``unit`` says whom a record is all of, where that is more than a record; a ``PerUser``
    sampler says it itself. ``max_physical_batch_size`` and ``secure`` concern speed, nothing else.

    Guarantee: after any number of steps the model is as private as ``optimizer.privacy.planned`` says, for losses that
    treat records apart.

    Reference: Abadi et al. (2016); Bu et al. (2023) for one backward pass.

    >>> import torch
    >>> data = torch.utils.data.TensorDataset(torch.randn(100, 3), torch.randn(100, 1))
    >>> model, loader = torch.nn.Linear(3, 1), torch.utils.data.DataLoader(data, batch_size=10)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> model, optimizer, loader = make_private(model, optimizer, loader, epsilon=3.0, delta=1e-5, epochs=1,
    ...                                         max_grad_norm=1.0, loss_reduction="mean")
    >>> for x, y in loader:
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.mse_loss(model(x), y).backward()
    ...     optimizer.step()
    >>> optimizer.privacy.steps, optimizer.privacy.epsilon(delta=1e-5) <= 3.0
    (10, True)
    """
    admission.refuse_optimizer(optimizer)
    admission.refuse_modules(model)
    parameters, data, clips = admission.parameters(model, optimizer), checked(loader), _clipping(clipping, max_grad_norm)
    drawn = _sampler(sampler, data, dataset_size)
    whom = _unit(drawn, unit)
    plan = planned(drawn, clips, epsilon=epsilon, delta=delta, epochs=epochs, noise_multiplier=noise_multiplier,
                   noise_schedule=noise_schedule, clip_schedule=clip_schedule)
    clipped, (source, reproducible) = ClippedSum(parameters, clips, loss_reduction, CHECKED), streams(rng)
    private = PrivateLoader(data, drawn, source, max_physical_batch_size=max_physical_batch_size, placeholder=placeholder)
    event = plan.planned
    plan.clip_factor(0)  # a schedule that gives no norm at all fails here, not after the charge
    if clips.adaptive is not None:
        for step in range(plan.steps):  # the noise must leave room for the count at every step
            plan.sum_multiplier(step)
    if book is not None:
        book.charge(event, label=label, unit=whom)
    privacy = Privacy(plan, model, optimizer, private, clipped, GaussianNoise(secure), source, reproducible)
    private.listener = privacy
    clipped.watch.attach(model)
    optimizer.register_step_pre_hook(privacy.before_step)
    optimizer.zero_grad, optimizer.__reduce_ex__ = privacy.zero_grad, uncopied  # type: ignore[method-assign]
    optimizer.privacy = privacy  # type: ignore[attr-defined]
    optimizer.zero_grad()
    settle()
    return model, optimizer, private
