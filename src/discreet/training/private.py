"""``make_private``: the user's model, optimiser and loader, and a plan between them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, TypeVar

from discreet.errors import extra
from discreet.habits import BUDGETS, answer_arguments
from discreet.random import RngLike, Streams
from discreet.release import Chargeable
from discreet.training.distributed import (
    Ranks,
    Shards,
    SharedStreams,
    admit_wrapper,
    forbid_collectives,
    is_sharded,
    unwrap,
)
from discreet.training.gradients import ClippedSum, Clipping, Reduction
from discreet.training.gradients.trace.trees import tensors
from discreet.training.loader import PrivateLoader, checked
from discreet.training.memory import keep_freed_memory
from discreet.training.noise import Noise
from discreet.training.noise.comparison import Auto
from discreet.training.noise.observer import Observer, checked_observer
from discreet.training.optimisers import admission
from discreet.training.optimisers.hooks import OptimizerHooks
from discreet.training.optimisers.marks import mark_of
from discreet.training.plan import Plan, Schedule
from discreet.training.planning import plan_for
from discreet.training.privacy import Privacy
from discreet.training.run import Batch, Run, label_of_charge
from discreet.training.sampling import Sampler
from discreet.training.sampling.pieces import what_made_up_records_judge
from discreet.training.sampling.rehearsal import made_up_batch, run_plainly
from discreet.training.speed import Speed, check_speed
from discreet.training.verification.numbers import numbers_of_options
from discreet.training.verification.verification import StepVerification, public_choices

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.optim import SGD, Optimizer
    from torch.utils.data import DataLoader

__all__ = ["count_canaries", "make_private", "prepare", "rehearse_step", "start", "what_is_verified_in_part"]

Model = TypeVar("Model", bound="nn.Module")
AnyOptimizer = TypeVar("AnyOptimizer", bound="Optimizer")

OTHER_NAMES: Mapping[str, str] = BUDGETS | {
    "module": "give the model first, make_private(model, optimizer, loader, ...)",
    "data_loader": "give the loader third, make_private(model, optimizer, loader, ...)",
    "poisson_sampling": "write sampler=, as 'poisson' or 'shuffled'; Poisson is the default",
    "max_physical_batch_size": "write speed=Speed(max_physical_batch_size=...)",
    "grad_sample_mode": "leave it out: there is one way, and it makes no gradients of single records",
    "class_weight": "weights of classes belong to your loss: torch.nn.CrossEntropyLoss(weight=...)",
    "accountant": "give the book that is charged: book=ledger.open(...)",
}
"""Arguments of other libraries, with what to write here."""


@answer_arguments(OTHER_NAMES)
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
    sampler: str | Sampler | None = None,
    dataset_size: int | None = None,
    placeholder: Any = None,
    noise: Noise | Auto | Literal["auto"] | None = None,
    noise_schedule: Schedule | None = None,
    clip_schedule: Schedule | None = None,
    speed: Speed | None = None,
    unit: str | None = None,
    book: Chargeable | None = None,
    label: str = "private training",
    rehearse: Callable[[Model, Any], Tensor] | None = None,
    unverified: str = "",
    debug: bool = False,
    audit: Observer | None = None,
    rng: RngLike = None,
) -> tuple[Model, AnyOptimizer, PrivateLoader]:
    """Make a training loop private: the same model and optimiser, and a loader that draws private batches.

    Two of (epsilon, delta), epochs and noise_multiplier decide the third. Handing over the loader declares its length
    public; ``dataset_size`` overrides. ``unit`` says whom a record is all of, where that is more than a record; a
    ``PerUser`` sampler says it itself. ``noise`` is ``training.noise.Independent()`` unless another is given;
    ``sampler`` is the one that the noise is proved with, Poisson for independent noise. ``noise="auto"`` takes the best
    of ``training.compare``. ``speed`` concerns time and
    memory, nothing else.

    ``rehearse`` is the loss of a batch, ``lambda model, batch: loss_fn(model(batch[0]), batch[1])``: it runs once on
    made-up records, as a step of a copy of the model, before the book is charged. With a collate function of your own
    give ``placeholder``, a made-up record.

    Some batches are verified: a few of their records are run alone, and must have the gradients that were claimed.
    ``unverified`` is the reason to believe a loop that cannot be verified; the account and the label of the charge
    repeat it. With ``debug`` a refusal says where records meet, and the run counts as not private. ``audit``, as
    ``discreet.auditing.GradientCanaries(500)``, adds so many canaries, which count as records and bound epsilon from
    below: ``optimizer.privacy.audit``.

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
    ranks = Ranks.current(next((p.device for p in model.parameters()), "cpu"))
    with ranks.together():
        data = checked(loader)
        plan = plan_for(
            len(data.dataset),  # type: ignore[arg-type]
            data.batch_size or 1,
            epsilon=epsilon,
            delta=delta,
            epochs=epochs,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            clipping=clipping,
            sampler=sampler,
            dataset_size=dataset_size,
            noise=noise,
            noise_schedule=noise_schedule,
            clip_schedule=clip_schedule,
            unit=unit,
            canaries=count_canaries(audit),
        )
        told = label_of_charge(label, unverified, debug, what_is_verified_in_part(plan, check_speed(speed)))
    run, private = prepare(
        model,
        optimizer,
        data,
        plan,
        loss_reduction,
        Streams(rng) if ranks.count == 1 else SharedStreams(rng, ranks),
        speed=speed,
        placeholder=placeholder,
        unverified=unverified,
        debug=debug,
        ranks=ranks,
        audit=audit,
    )
    if rehearse is not None:
        _refuse_rehearsal(ranks)
        batch = made_up_batch(data, placeholder, rows=plan.sampler.static_size or 2)
        rehearse_step(model, data, plan, loss_reduction, batch, rehearse, unverified=unverified)
    ranks.pay(plan, book, told, reproducible=run.reproducible)
    start(run)
    return model, optimizer, private


def prepare(
    model: nn.Module,
    optimizer: Optimizer,
    loader: DataLoader[Any],
    plan: Plan,
    loss_reduction: Reduction,
    streams: Streams,
    *,
    speed: Speed | None = None,
    placeholder: Any = None,
    unverified: str = "",
    debug: bool = False,
    ranks: Ranks | None = None,
    pieces_are_met: bool = True,
    audit: Observer | None = None,
) -> tuple[Run, PrivateLoader]:
    """A run and its loader, or the reason there is none; nothing is read, and model and optimiser are as they were."""
    ranks = ranks or Ranks()
    with ranks.together():
        if not isinstance(unverified, str) or not isinstance(debug, bool):
            raise ValueError("unverified must be a reason in words, and debug True or False.")
        admission.refuse_optimizer(optimizer)
        model = unwrap(model, ranks)
        admission.refuse_modules(model)
        admission.refuse_plan(optimizer, plan)
        plan.sampler.check(len(loader.dataset) + count_canaries(audit))  # type: ignore[arg-type]
        trained, shards, how = admission.parameters(model, optimizer), Shards(model, ranks), check_speed(speed)
        if shards and plan.clipping.scale is not None:
            raise ValueError(
                "Clipping(scale=...) has a number for each entry of a whole parameter: not with fully_shard."
            )
    ranks.agree(plan.facts | _facts(loader, loss_reduction, how, trained))
    told: Any = {"unverified": unverified, "debug": debug}
    in_part = what_is_verified_in_part(plan, how)
    admitted = partial(admit_wrapper, ranks=ranks)
    clipped = ClippedSum(shards.seen(trained), plan.clipping, loss_reduction, admit_wrapper=admitted)
    before_batch = shards.attach(clipped)
    verification = StepVerification(
        clipped,
        public_choices(streams),
        before_batch=before_batch,
        while_judging=partial(forbid_collectives, unverified) if ranks.count > 1 else nullcontext,
        options=partial(numbers_of_options, optimizer),
        by_one=bool(in_part),
        **told,
    )
    clipped.subscribe(verification)
    observation = None if audit is None else audit.begin(plan, trained, ranks.of_first)
    run = Run(
        plan,
        model,
        optimizer,
        clipped,
        verification,
        streams,
        secure=how.secure,
        ranks=ranks,
        trained=trained if shards else None,
        shards=shards,
        in_part=in_part,
        observation=observation,
        **told,
    )
    mark = mark_of(optimizer.param_groups)  # of a state of a private run, loaded before this
    if mark is not None:
        run.follow_mark(mark)
    size = how.max_physical_batch_size
    met: Any = {"placeholder": placeholder, "pieces_are_met": pieces_are_met}
    return run, PrivateLoader(loader, run, max_physical_batch_size=size, **met)


def count_canaries(audit: Observer | None) -> int:
    """How many records an audit adds to those of a loader."""
    observer = checked_observer(audit)
    return 0 if observer is None else observer.canaries


def _refuse_rehearsal(ranks: Ranks) -> None:
    if ranks.count > 1:
        raise ValueError(
            "rehearse runs in one process, but there are several. Rehearse in one, with no book, and leave it out here."
        )


def rehearse_step(
    model: Model,
    loader: DataLoader[Any],
    plan: Plan,
    loss_reduction: Reduction,
    batch: Any,
    loss_of: Callable[[Model, Any], Tensor],
    *,
    unverified: str = "",
) -> None:
    """Run a batch of made-up records, plainly and then as a verified step of a copy of the model; nothing remains.

    Whether records are kept apart is asked only of records that differ, which those with fractions do.
    """
    if batch is None:
        raise ValueError(
            "rehearse needs to know what a record looks like, which is not public where a collate function makes "
            "batches: give placeholder=, a made-up record."
        )

    def backward(of: Model) -> None:
        loss = loss_of(of, batch)
        (loss.sum() if loss.dim() else loss).backward()

    run_plainly(model, lambda: backward(model))
    if not any(x.is_floating_point() and x.dim() and not x[:1].eq(x[1:]).all() for x in tensors(batch)):
        return
    try:
        twin = copy.deepcopy(model)
    except Exception:  # what cannot be copied has at least run
        return
    rows = len(next(x for x in tensors(batch) if x.dim()))
    trained = [p for p in twin.parameters() if p.requires_grad]
    run, _ = prepare(twin, SGD(trained, lr=0.0), loader, plan, loss_reduction, Streams(0), unverified=unverified)
    with torch.random.fork_rng(devices=[]):
        start(run)
        run.begin_pass()
        run.hand_out(Batch(rows, None, 0, True, last=False), batch)
        backward(twin)
        run.optimizer.step()
        run.leave_pass(run.loop)


def what_is_verified_in_part(plan: Plan, speed: Speed) -> str:
    """What verification can look at in part alone, in words; known before anything is read."""
    sampler = plan.sampler
    return what_made_up_records_judge(
        sampler.batch_size, getattr(sampler, "records_per_user", 1), speed.max_physical_batch_size
    )


def _facts(
    loader: DataLoader[Any], reduction: Reduction, speed: Speed, trained: Mapping[str, nn.Parameter]
) -> dict[str, object]:
    """What the ranks of a run must agree about beside the plan, by name."""
    return {
        "loss_reduction": reduction,
        "speed": repr(speed),
        "the number of records": len(loader.dataset),  # type: ignore[arg-type]
        "the model": [(name, tuple(p.shape), str(p.dtype)) for name, p in trained.items()],
    }


def start(run: Run) -> None:
    """Make model and optimiser private: from here on the optimiser moves by noisy gradients alone."""
    run.clipped.attach(run.model)
    run.ranks.copy_from_first([x for x in [*run.model.parameters(), *run.model.buffers()] if not is_sharded(x)])
    OptimizerHooks(run).attach(run.optimizer)
    run.optimizer.privacy = Privacy(run)  # type: ignore[attr-defined]
    run.optimizer.zero_grad()
    keep_freed_memory()
