"""``make_private``: the user's model, optimiser and loader, and a plan between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from discreet import accounting
from discreet.adjacency import Adjacency
from discreet.errors import extra, whole
from discreet.events import Event
from discreet.random import RngLike
from discreet.release import Book
from discreet.training.clipped_sum import ClippedSum, Reduction
from discreet.training.clipping import Clipping
from discreet.training.loader import Batch, PrivateLoader, checked
from discreet.training.noise import GaussianNoise, streams
from discreet.training.plan import Plan, Schedule, planned
from discreet.training.refusals import PrivateTrainingError
from discreet.training.sampling import BallsInBins, FixedSize, Poisson, Sampler, Shuffled, TruncatedPoisson
from discreet.training.spot_check import LossTape, sweep

with extra("torch"):
    import torch
    from torch import nn
    from torch.optim import Optimizer

__all__ = ["SAMPLERS", "Privacy", "make_private", "replace_batch_norm"]

CHECKED = 3  # batches on which model and loss are checked for records that mix

Model = TypeVar("Model", bound="nn.Module")
AnyOptimizer = TypeVar("AnyOptimizer", bound="Optimizer")

SAMPLERS: Mapping[str, type[Sampler]] = {"poisson": Poisson, "truncated-poisson": TruncatedPoisson, "fixed-size": FixedSize,
                                         "balls-in-bins": BallsInBins, "shuffled": Shuffled}
"""The samplers that a name is enough for."""


class Privacy:
    """What a private optimiser knows of its run; ``optimizer.privacy``."""

    def __init__(self, plan: Plan, model: nn.Module, optimizer: Optimizer, loader: PrivateLoader, clipped: ClippedSum,
                 noise: GaussianNoise, source: Any, reproducible: bool) -> None:
        self.plan, self.reproducible = plan, reproducible
        self.clip_norm = plan.clipping.max_grad_norm
        self._model, self._optimizer, self._loader = model, optimizer, loader
        self._clipped, self._noise, self._source = clipped, noise, source
        self._tape: LossTape | None = None
        self._unchecked = CHECKED
        self._left: dict[str, tuple[Any, int]] = {}  # the gradients the last step left, to tell them from foreign ones

    def __repr__(self) -> str:
        return (f"Privacy({self.steps} of {self.plan.steps} steps, noise_multiplier={self.plan.noise_multiplier:.4g}, "
                f"{self.plan.adjacency})")

    # --- the account -----------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Steps that were released."""
        return self._loader.steps_done

    @property
    def remaining_steps(self) -> int:
        """Steps that are left."""
        return self.plan.steps - self.steps

    @property
    def planned(self) -> Event:
        """The price of the whole plan: the guarantee, however early the run stops."""
        return self.plan.planned

    @property
    def executed(self) -> Event:
        """The price of the steps that ran."""
        return self.plan.event(self.steps)

    def epsilon(self, delta: float, *, executed: bool = False) -> float:
        """Epsilon of the plan at delta, for the sampler's adjacency; or of the steps so far, for a run stopped by chance
        or by a rule that does not look at the model."""
        return accounting.epsilon(self.executed if executed else self.planned, delta, adjacency=self.plan.adjacency)

    # --- one step --------------------------------------------------------------------------------------------------

    def new_batch(self, batch: Batch) -> None:
        """The loader is about to yield: what was left of an unfinished batch is dropped, never released."""
        if batch.first:
            self._clipped.begin()
        self._clipped.watch.clear()
        self._clipped.watch.records = batch.rows
        self.stop_checking()
        if self._unchecked and batch.rows > 1:
            self._unchecked -= 1
            self._clipped.watch.keeps_outputs = True
            self._tape = LossTape(self._clipped.watch, self._clipped.reduction)
            self._tape.__enter__()

    def stop_checking(self) -> None:
        """Put the tape of the loss away."""
        tape, self._tape = self._tape, None
        self._clipped.watch.keeps_outputs = False
        self._clipped.watch.outputs = []
        if tape is not None:
            tape.finished, tape.calls = True, []
            sweep()

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Turn what the backward passes brought into a noisy gradient; a piece of a batch is only added up."""
        self.stop_checking()
        if len(args) > 1 or kwargs.get("closure") is not None or (args and args[-1] is not optimizer and args[-1] is not None):
            raise PrivateTrainingError("step was given a closure, but each private step needs a batch of its own: call "
                                       "backward before step, without a closure.")
        batch = self._loader.current
        if batch is None:
            raise PrivateTrainingError("step was called without a new batch from the private loader: a batch may be used for "
                                       "one step only, and only batches of this loader have an account.")
        step = batch.step if self.plan.sampler.passes else self.steps
        self.plan.check(step)
        self._refuse_foreign_gradients()
        clip_norm = self.clip_norm * self.plan.clip_factor(step)
        self._clipped.add(batch.weights, clip_norm / self.plan.sampler.records_per_unit)
        self._loader.current = self._clipped.watch.records = None
        if batch.last:
            self._release(step, clip_norm)
        else:
            self._set_gradients(None)  # the optimiser passes over parameters without a gradient

    def _release(self, step: int, clip_norm: float) -> None:
        clipped, sampler = self._clipped, self.plan.sampler
        total = clipped.total
        assert total is not None
        bound = clipped.sensitivity(clip_norm)
        self._loader.steps_done = step + 1  # before the noise is drawn: a step that fails afterwards has been paid for
        rng = self._source(2, step)
        gradient = self._noise.release(total, sensitivity=bound, limit=bound * sampler.movement,
                                       multiplier=self.plan.sum_multiplier(step), rng=rng,
                                       divisor=sampler.expected if clipped.reduction == "mean" else 1.0)
        if (adaptive := self.plan.clipping.adaptive) is not None:
            count = self._noise.count(clipped.unclipped, sigma=adaptive.sigma(sampler.expected) * sampler.records_per_unit,
                                      limit=0.5 * sampler.movement * sampler.records_per_unit, rng=rng)
            self.clip_norm = adaptive.next_norm(self.clip_norm, count, sampler.expected * sampler.records_per_unit)
        clipped.begin()
        self._set_gradients(gradient)

    def _set_gradients(self, flat: torch.Tensor | None) -> None:
        self._left.clear()
        for (name, p), start in zip(self._clipped.parameters.items(), self._clipped.offsets, strict=False):
            if flat is None:
                p.grad = None
                continue
            gradient = flat[start:start + p.numel()].view(p.shape)
            p.grad = gradient if p.dtype == flat.dtype and p.device == flat.device else gradient.to(p.device, p.dtype)
            self._left[name] = p.grad, p.grad._version

    def _refuse_foreign_gradients(self) -> None:
        for name, p in self._clipped.parameters.items():
            left = self._left.get(name)
            if p.grad is not None and (left is None or p.grad is not left[0] or p.grad._version != left[1]):
                p.grad = None
                raise PrivateTrainingError(
                    f"Parameter {name!r} has a gradient that no rule saw: it was used outside a call of the model or its "
                    "modules, or inside a custom autograd function. Use it in forward through torch functions, or freeze it "
                    "with requires_grad_(False).")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget what backward passes brought since the last step."""
        self._clipped.watch.clear()
        self._set_gradients(None)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """One checkpoint of model, optimiser, sampler, clip state and account. Noise needs none: a step has its stream."""
        return {"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict(),
                "loader": self._loader.state_dict(), "clip_norm": self.clip_norm, "planned": self.planned.to_json(),
                "chance": torch.get_rng_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same plan."""
        if state["planned"] != self.planned.to_json():
            raise ValueError("The checkpoint belongs to another plan: noise, sampling or steps differ. Call make_private as in "
                             "the run that saved it.")
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._loader.load_state_dict(state["loader"])
        self.clip_norm = float(state["clip_norm"])
        torch.set_rng_state(state["chance"])
        self._clipped.begin()
        self._set_gradients(None)


def _sampler(sampler: str | Sampler, batch_size: int, dataset_size: int) -> Sampler:
    if isinstance(sampler, Sampler):
        return sampler
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler is {sampler!r}, but must be one of {', '.join(map(repr, SAMPLERS))}, or a Sampler.")
    return SAMPLERS[sampler](batch_size=batch_size, dataset_size=dataset_size)


def _parameters(model: nn.Module, optimizer: Optimizer) -> dict[str, nn.Parameter]:
    """The parameters both know, by name; each that only one knows is an error."""
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    names = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if strangers := [name for name, p in names.items() if id(p) not in trained]:
        raise ValueError(f"Parameter {strangers[0]!r} requires a gradient but is not in the optimizer: it would be trained "
                         "without privacy, or not at all. Add it, or freeze it with requires_grad_(False).")
    if len(trained & {id(p) for p in names.values()}) < len(trained - _frozen(optimizer)):
        raise ValueError("The optimizer holds a trained parameter that is not in the model: pass the module that owns it.")
    if not names:
        raise ValueError("The model has no parameter that requires a gradient.")
    return names


def _frozen(optimizer: Optimizer) -> set[int]:
    return {id(p) for group in optimizer.param_groups for p in group["params"] if not p.requires_grad}


def _refuse_mixing_modules(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise ValueError(f"Module {name or 'model'!r} is a {type(module).__name__}, which mixes the records of a batch, so "
                             "no record has a gradient of its own. Before the optimizer is made: "
                             "model = discreet.training.replace_batch_norm(model)")


def replace_batch_norm(model: Model, groups: int = 32) -> Model:
    """The model with every BatchNorm replaced by a GroupNorm of at most ``groups`` groups, in place.

    >>> from torch import nn
    >>> replace_batch_norm(nn.Sequential(nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12)), groups=8)[1].num_groups
    6
    """
    whole("groups", groups, low=1)
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                channels = child.num_features
                fitting = max(g for g in range(1, min(groups, channels) + 1) if channels % g == 0)
                setattr(module, name, nn.GroupNorm(fitting, channels, eps=child.eps, affine=child.affine))
    return model


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
    max_grad_norm: float = 1.0,
    clipping: Clipping | Literal["flat", "per-layer", "automatic"] = "flat",
    sampler: str | Sampler = "poisson",
    dataset_size: int | None = None,
    placeholder: Any = None,
    noise_schedule: Schedule | None = None,
    clip_schedule: Schedule | None = None,
    max_physical_batch_size: int | None = None,
    book: Book | None = None,
    label: str = "private training",
    rng: RngLike = None,
    secure: bool = True,
) -> tuple[Model, AnyOptimizer, PrivateLoader]:
    """Make a training loop private: the same model and optimiser, and a loader that draws private batches.

    Two of (epsilon, delta), epochs and noise_multiplier decide the third. Handing over the loader declares its length
    public; ``dataset_size`` overrides. ``max_physical_batch_size`` and ``secure`` concern speed, nothing else.

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
    if hasattr(optimizer, "privacy"):
        raise ValueError("optimizer is private already: make a new one for a new plan.")
    data = checked(loader)
    _refuse_mixing_modules(model)
    parameters = _parameters(model, optimizer)
    if not isinstance(clipping, Clipping):
        automatic = clipping == "automatic"
        clipping = Clipping(max_grad_norm=max_grad_norm, scope="flat" if automatic else clipping,  # type: ignore[arg-type]
                            factor="automatic" if automatic else "abadi")
    public_size = len(data.dataset) if dataset_size is None else whole("dataset_size", dataset_size, low=1)  # type: ignore[arg-type]
    assert data.batch_size is not None
    drawn = _sampler(sampler, data.batch_size, public_size)
    if drawn.adjacency is Adjacency.REPLACE and drawn.dataset_size != len(data.dataset):  # type: ignore[arg-type]
        raise ValueError(f"dataset_size is {drawn.dataset_size}, but must be the number of records: {type(drawn).__name__} "
                         "batches are priced for a public size.")
    plan = planned(drawn, clipping, epsilon=epsilon, delta=delta, epochs=epochs, noise_multiplier=noise_multiplier,
                   noise_schedule=noise_schedule, clip_schedule=clip_schedule)
    if clipping.adaptive is not None:
        plan.sum_multiplier(0)
    if book is not None:
        book.charge(plan.planned, label=label)
    source, reproducible = streams(rng)
    private = PrivateLoader(data, drawn, source, max_physical_batch_size=max_physical_batch_size, placeholder=placeholder)
    clipped = ClippedSum(parameters, clipping, loss_reduction, CHECKED)
    privacy = Privacy(plan, model, optimizer, private, clipped, GaussianNoise(secure), source, reproducible)
    private.listener = privacy
    clipped.watch.attach(model)
    optimizer.register_step_pre_hook(privacy.before_step)
    optimizer.zero_grad = privacy.zero_grad  # type: ignore[method-assign]
    optimizer.privacy = privacy  # type: ignore[attr-defined]
    optimizer.zero_grad()
    return model, optimizer, private
