"""``optimizer.privacy``: the account of a private run, what happens at each of its steps, and its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet import accounting
from discreet.errors import extra
from discreet.events import Event
from discreet.training.admission import refuse_gradients, refuse_strangers
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.spot_check import LossTape, sweep
from discreet.training.loader import Batch, PrivateLoader
from discreet.training.memory import give_back
from discreet.training.noise.independent import GaussianNoise
from discreet.training.plan import Plan
from discreet.training.refusals import PrivateTrainingError

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["CHECKED", "Privacy", "uncopied"]

CHECKED = 3  # batches on which model and loss are checked for records that mix


class Privacy:
    """What a private optimiser knows of its run; ``optimizer.privacy``."""

    def __init__(self, plan: Plan, model: nn.Module, optimizer: Optimizer, loader: PrivateLoader, clipped: ClippedSum,
                 noise: GaussianNoise, source: Any, reproducible: bool) -> None:
        self.plan, self.reproducible = plan, reproducible
        self.clip_norm = plan.clipping.max_grad_norm
        self._model, self._optimizer, self._loader = model, optimizer, loader
        self._clipped, self._noise, self._source = clipped, noise, source
        self._tape: LossTape | None = None
        self._unchecked, self._looked = CHECKED, False  # batches to be checked; whether the last one was
        self._known = {id(p): name for name, p in clipped.parameters.items()}
        self._left: dict[str, tuple[Tensor, int]] = {}  # the gradients the last step left, to tell them from foreign ones

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

    @property
    def local(self) -> bool:
        """Whether figures that are not private are kept, for the eyes of who trains; none are, unless this is set."""
        return self._clipped.local

    @local.setter
    def local(self, kept: bool) -> None:
        self._clipped.local = kept

    @property
    def clip_rate(self) -> float:
        """The share of the last batch's records whose gradient was clipped. Not private, so only where ``local`` is set."""
        if not self.local:
            raise PrivateTrainingError("clip_rate is not private: it counts records without noise. For your own eyes set "
                                       "optimizer.privacy.local = True; to publish it, let clipping follow a Quantile, which "
                                       "releases such a count with noise.")
        return self._clipped.clip_rate

    # --- one step --------------------------------------------------------------------------------------------------

    def new_batch(self, batch: Batch, yielded: Any = ()) -> None:
        """The loader is about to yield: a batch that was given a backward pass must have been given its step."""
        watch = self._clipped.watch
        if self._loader.current is not None and watch.uses:
            raise PrivateTrainingError("backward was called on a batch, but step was not, and its gradient cannot wait for the "
                                       "next batch. To accumulate gradients, give the DataLoader the batch size wanted in all "
                                       "and make_private max_physical_batch_size=, and call step for every piece; to drop a "
                                       "batch, call zero_grad.")
        if batch.first:
            self._clipped.begin()
        self.stop_checking()
        if self._looked:
            give_back()
        watch.begin(batch.rows, yielded)
        self._looked = self._unchecked > 0 and batch.rows > 1
        if self._looked:
            self._unchecked -= 1
            watch.keeps = True
            self._tape = LossTape(watch, self._clipped.reduction, yielded)
            self._tape.__enter__()

    def abandon(self) -> None:
        """A loop begins: what another left unfinished is dropped, never released."""
        self._loader.current = None
        self._clipped.begin()

    def stop_checking(self) -> None:
        """Put the tape of the loss away."""
        tape, self._tape = self._tape, None
        self._clipped.watch.forget()
        if tape is not None:
            tape.finish()
            sweep()

    def before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Turn what the backward passes brought into a noisy gradient; a piece of a batch is only added up.

        A closure is called here, once: the optimiser's own call would come after the gradient was made.
        """
        batch = self._loader.current
        if batch is None:
            raise PrivateTrainingError("step was called without a new batch from the private loader: a batch may be used for "
                                       "one step only, and only batches of this loader have an account.")
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        answer = None if closure is None else _called(closure)
        self.stop_checking()
        step = batch.step if self.plan.sampler.passes else self.steps
        self.plan.check(step)
        refuse_strangers(self._model, optimizer, self._known)
        refuse_gradients(self._clipped.parameters, self._left)
        clip_norm = self.clip_norm * self.plan.clip_factor(step)
        self._clipped.add(batch.weights, clip_norm / self.plan.sampler.records_per_unit)
        self._loader.current = self._clipped.watch.records = None
        if batch.last:
            self._release(step, clip_norm)
        else:
            self._set_gradients(None)  # the optimiser passes over parameters without a gradient
        return None if closure is None else ((args[0], answer), {})

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

    def _set_gradients(self, flat: Tensor | None) -> None:
        self._left.clear()
        parts = [None] * len(self._clipped.sizes) if flat is None else flat.split_with_sizes(self._clipped.sizes)
        for (name, p), part in zip(self._clipped.parameters.items(), parts, strict=True):
            if part is None or not p.requires_grad:  # frozen on the way
                p.grad = None
                continue
            gradient = part if p.dim() == 1 else part.view(p.shape)
            p.grad = gradient = gradient if p.dtype == part.dtype and p.device == part.device else gradient.to(p)
            self._left[name] = gradient, gradient._version

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
        if state["loader"]["steps"] < self.steps:
            raise ValueError("The checkpoint is of an earlier step than this run: going back and training again would release "
                             "more than the plan. Make a new plan for it, and charge that.")
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._loader.load_state_dict(state["loader"])
        self.clip_norm = float(state["clip_norm"])
        torch.set_rng_state(state["chance"])
        self._clipped.begin()
        self._set_gradients(None)


def _called(closure: Callable[[], Any]) -> Callable[[], Any]:
    """Call a closure, and give the optimiser one that repeats its answer once."""
    with torch.enable_grad():
        answers = [closure()]

    def answer() -> Any:
        if not answers:
            raise PrivateTrainingError("The optimizer called its closure twice, but a batch may be used once a step: use an "
                                       "optimizer that needs no line search.")
        return answers.pop()

    return answer


def uncopied(*_: Any) -> Any:
    """In place of ``__reduce_ex__``: a copy of the optimiser would train without noise and without an account."""
    raise PrivateTrainingError("A private optimizer cannot be copied or pickled: the copy would train without noise. Save "
                               "optimizer.privacy.state_dict(), and load it after make_private.")
