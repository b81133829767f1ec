"""The course of a private run: who knows which step it is, which batch is out, and what has been released.

A ``Run`` alone owns the number of steps, the position in a pass, the current batch, the streams, the state of noise and
clipping, and the checkpoint. The loader asks it which steps to draw and tells it of each batch; the optimiser's hooks
ask it for the noisy gradient of a step; ``optimizer.privacy`` reads its account off it.

Decisions 73 and 124.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np

from discreet.errors import extra
from discreet.random import Rng, Streams, gaussian_noise
from discreet.random.tap import draw_output, heard
from discreet.sessions import PaidOnce, one_at_a_time
from discreet.training.chance import Chance
from discreet.training.distributed import Ranks, Shards, Sums, as_one_process, as_shards, bits, likeness, options
from discreet.training.errors import PrivateTrainingError
from discreet.training.gradients import ClippedSum
from discreet.training.gradients.scaling import Scales
from discreet.training.gradients.units import Owners
from discreet.training.noise.base import Gaussians, Step, shown
from discreet.training.noise.independent import gaussian
from discreet.training.noise.observer import Observation, canary_sum
from discreet.training.plan import Plan
from discreet.training.sampling import Indices
from discreet.training.verification.verification import StepVerification

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["Batch", "Run", "label_of_charge"]

logger = logging.getLogger("discreet.training")


NO_CANARIES: Indices = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Batch:
    """A piece of a logical batch: its rows, their weights (none: all one), its place in the logical batch, and whose
    the rows are (none: each is a unit)."""

    rows: int
    weights: Tensor | None
    step: int
    first: bool
    last: bool
    indices: tuple[int, ...] = ()
    owners: Owners | None = None
    number: int = 0  # of the piece
    sample: int = 0  # the same for the same records, of all ranks together
    canaries: Indices = field(default_factory=lambda: NO_CANARIES)  # of an audit, drawn for the whole batch


def label_of_charge(label: str, unverified: str, debug: bool, in_part: str = "") -> str:
    """The label of a charge, with what the account must repeat: why the loop is believed, and what is verified in part.

    >>> label_of_charge("survey", "rows by hand", debug=False)
    'survey [not verified: rows by hand]'
    """
    told = [f"not verified: {x}" for x in (unverified, in_part) if x] + ["debug: not private"] * debug
    return f"{label} [{'; '.join(told)}]" if told else label


class Run(PaidOnce):
    """One private run of a plan. Its attributes are for reading: only the run itself writes them.

    A batch is handed out, and a step made of it, in one thread at a time: two would release one step twice.
    """

    def __init__(
        self,
        plan: Plan,
        model: nn.Module,
        optimizer: Optimizer,
        clipped: ClippedSum,
        verification: StepVerification,
        streams: Streams,
        *,
        secure: bool = True,
        unverified: str = "",
        debug: bool = False,
        in_part: str = "",
        ranks: Ranks | None = None,
        trained: Mapping[str, nn.Parameter] | None = None,
        shards: Shards | None = None,
        observation: Observation | None = None,
    ) -> None:
        super().__init__()
        self.unverified, self.debug, self.ranks = unverified, debug, ranks or Ranks()
        self.in_part = in_part  # what verification can look at in part alone, in words
        self.trained: dict[str, Any] = dict(trained or clipped.parameters)  # what the optimiser has: perhaps shards
        self._sums = Sums(self.ranks, self.trained)
        self._alone = self._sums.alone
        self._shards = shards if shards is not None else Shards(model, self.ranks)
        self._sharded = bool(self._shards)
        self.observation = observation
        self.plan, self.model, self.optimizer, self.clipped, self.streams = plan, model, optimizer, clipped, streams
        self.verification = verification
        self._movement = plan.participation.movement  # of a sum, by one record, in clip norms
        self._noise, self._secure = plan.noise.begun(plan.participation, plan.steps), secure
        # of this run alone: ties a checkpoint and the secret state that belongs to it
        self._name: str = self.ranks.of_first(uuid4().hex)
        self.steps = 0  # that were released; of a pass, up to the last batch that was
        self.position = 0  # batches that were handed out
        self.loop = 0  # which loop over the loader is the current one
        self.batch: Batch | None = None
        self.chance, self._next = Chance(streams), (0, 0)  # of the passes; the step and the piece that come next
        self._at_batches: Callable[[], None] = lambda: None  # what else happens when a batch is handed out
        self.between_pieces = False  # whether the last step was of a piece, and more of its batch will come
        self.clip_norm = plan.clipping.max_grad_norm
        scale = plan.clipping.scale
        self._scales = Scales() if scale is None else scale.begun(clipped.parameters)
        if scale is not None:
            self._noise.spread(0)  # which scales are made with: refused here, where it is not known
        clipped.scale(self._scales.values)
        self._last: tuple[Step, list[Tensor] | None] | None = None  # the last release, and what it was scaled by
        self._pass: tuple[int, Indices | None] = (-1, None)
        self.restoring, self._lacks_state = False, False  # a checkpoint is being loaded; part of one was, not all
        gaussian_noise(1, 0.0, secure=secure)  # loads the compiled code before the first step

    @property
    def reproducible(self) -> bool:
        """Whether what it releases is not private: it has a seed, or its refusals show private records."""
        return self.streams.reproducible or self.debug

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse copies, of the optimiser too: one would train without noise and without an account."""
        raise PrivateTrainingError(
            "A private optimizer cannot be copied or pickled: the copy would train without noise. Save "
            "optimizer.privacy.state_dict(), and load it after make_private."
        )

    # --- batches ---------------------------------------------------------------------------------------------------

    def call_at_batches(self, act: Callable[[], None]) -> None:
        """Call this, too, when a batch is handed out."""
        self._at_batches = act

    @one_at_a_time
    def begin_pass(self) -> range:
        """A loop begins, and what another left unfinished is dropped, never released; the steps it is to draw.

        A batch of a pass is dealt once, used or not; other batches are drawn for the step they will be.
        """
        self.batch, self.loop, self.between_pieces = None, self.loop + 1, False
        self.clipped.begin()
        length = self.plan.sampler.steps_per_pass
        steps = range(self.steps, self.steps + length)
        if self.plan.sampler.passes:
            steps = range(self.position, self.position + length - self.position % length)
        self._next = steps.start, 0
        return steps

    def begin_fetch(self) -> None:
        """The loader is about to read records: what users' code draws from now on, until their step, is secret."""
        self.chance.begin(*self._next)

    def sampling(self, step: int) -> Rng:
        """The source of a step's batch. One that is shared by ranks is another in every loop: a step that a loop draws
        once more, because a batch was left out, must not see the batch that an earlier step was made of."""
        return self.streams.sampling(*([step] if self.streams.reproducible else [step, 1 + self.loop]))

    def order(self, step: int, draw: Callable[[Rng], Indices | None]) -> Indices | None:
        """What the pass of a step has drawn for all its steps; drawn when it is asked for first."""
        number = 0 if self.plan.sampler.kept else step // self.plan.sampler.steps_per_pass
        if self.plan.sampler.passes and self._pass[0] != number:
            self._pass = number, draw(self.streams.sampling(number, 1))  # two places: not a step's stream
        return self._pass[1]

    @one_at_a_time
    def hand_out(
        self, batch: Batch, yielded: Any = (), loop: int | None = None, alone: Callable[..., Any] | None = None
    ) -> None:
        """The loader is about to yield: a batch that was given a backward pass must have been given its step.

        ``loop`` is the loop it yields to. One that went on beside another would bring records to a step that is not
        theirs, or the same step twice. ``alone`` collates some of its records alone, where that may differ from their
        rows.
        """
        if loop not in (None, self.loop):
            raise PrivateTrainingError(
                "Another loop over the private loader has begun, so this one has ended: a run is priced for one loop "
                "at a time. Finish one loop, or leave it, before the next."
            )
        if self.batch is not None and self.clipped.waiting:
            raise PrivateTrainingError(
                "backward was called on a batch, but step was not (gradient accumulation by hand, by accelerate or by "
                "gradient_accumulation_steps of a trainer?), and its gradient cannot wait for the next batch. Set "
                "gradient_accumulation_steps to 1, give the DataLoader the batch size wanted in all and make_private "
                "speed=Speed(max_physical_batch_size=...), and call step for every piece; to drop a batch, call "
                "zero_grad."
            )
        self.refuse_part_of_a_checkpoint()
        if self.ranks.count > 1:
            self.ranks.refuse_stopped()
        if not self.chance.held:
            self.begin_fetch()
        self._next = (batch.step + 1, 0) if batch.last else (batch.step, batch.number + 1)
        self._at_batches()
        if batch.first:
            self.clipped.begin()
        self.clipped.expect(batch.rows, yielded, alone, batch.owners)
        self.batch, self.position = batch, batch.step + 1

    # --- steps -----------------------------------------------------------------------------------------------------

    def refuse_step(self) -> None:
        """Refuse a step without a new batch."""
        if self.batch is None:
            raise PrivateTrainingError(
                "step was called without a new batch from the private loader: a batch may be used for "
                "one step only, and only batches of this loader have an account."
            )

    @property
    def number(self) -> int:
        """The step that the current batch belongs to."""
        assert self.batch is not None
        return self.batch.step if self.plan.sampler.passes else self.steps

    @one_at_a_time
    def take_step(self, refuse: Callable[[], None] = lambda: None) -> list[Tensor] | None:
        """Add up what the backward passes brought; of a complete batch, the noisy gradient, one tensor a parameter.

        What ``refuse`` or a verification refuses on one rank, all ranks refuse, before their sums meet.
        """
        self.refuse_step()  # once more, with the lock held: another thread may have taken the batch
        batch, step = self.batch, self.number
        assert batch is not None
        self.plan.check(step)
        clip_norm = self.clip_norm * self.plan.clip_factor(step)
        with self._meeting(step, batch, clip_norm):
            refuse()
            self.clipped.add(batch.weights, clip_norm, batch.owners)
        if self._sharded:
            self._shards.end()
        self.batch, self.between_pieces = None, not batch.last
        if not batch.last:
            return None
        with self.ranks.unbroken() if self.ranks.count > 1 else nullcontext():
            return self._release(step, clip_norm, batch.canaries)

    def _meeting(self, step: int, batch: Batch, clip_norm: float) -> AbstractContextManager[None]:
        """Where the ranks meet before their sums do: at the same place, alike, and none has refused."""
        if self.ranks.count == 1:
            return nullcontext()
        place = step, self.loop, batch.step, batch.number, batch.sample, bits(clip_norm)
        alike = options(self.optimizer, self.ranks)
        return self.ranks.together(*place, alike, near=likeness(self.model, self.ranks))

    def leave_pass(self, loop: int) -> None:
        """A loop over the loader is over, or was left: what was held for its last batch goes."""
        if loop == self.loop:
            self.chance.end() if self.batch is None else self.chance.leave()
        self.verification.end()
        self._shards.end()
        self.between_pieces = False

    def _release(self, number: int, clip_norm: float, canaries: Indices) -> list[Tensor]:
        plan, clipped, total = self.plan, self.clipped, self.clipped.total
        assert total is not None
        sampler, movement = plan.sampler, self._movement
        step = Step(
            number=number,
            multiplier=plan.sum_multiplier(number),
            sensitivity=clipped.sensitivity(clip_norm),
            movement=movement,
            divisor=sampler.expected if clipped.mean else 1.0,
        )
        self.steps = number + 1  # before the noise is drawn: a step that fails afterwards has been paid for
        gaussians = Gaussians(self.streams.noise(number), self._secure)
        if self.observation is not None:
            total.append(self._canary_sum(canaries, clip_norm, total[0]))
        own, added = (total, lambda: total) if self._alone else self._sums.opened(total, step.divisor)
        self._add_noise(step, own, lambda: self._noise.release(step, own, gaussians))
        gradient = added()
        if self.observation is not None:
            self.observation.observe(step, canaries, gradient.pop(), gradient)
            if self.steps == plan.steps and self.ranks.rank == 0:
                self.observation.report()
        self._last = step, self._scales.values
        if plan.clipping.scale is not None:
            self._scales.undo(gradient)
            self._scales.learn(gradient, [self.noise_variance(p) for p in self.trained.values()])
            clipped.scale(self._scales.values)
        if plan.clipping.adaptive is not None:
            self._adapt(gaussians, movement)
        clipped.begin()
        return gradient

    def _canary_sum(self, drawn: Indices, clip_norm: float, like: Tensor) -> Tensor:
        """What canaries contribute to a step; the first rank adds it for all."""
        assert self.observation is not None
        signs = self.observation.contributions(drawn)
        return canary_sum(signs if self.ranks.rank == 0 else signs.zero_(), self.plan.clipping, clip_norm, like)

    def _add_noise(self, step: Step, own: list[Tensor], draw: Callable[[], None]) -> None:
        """Let ``draw`` put the noise of a step on a sum, seen by record-and-replay where it listens."""
        if heard() is None:
            draw()
            return
        correlated = self._noise.correlated
        shown(
            f"clipped sum, noise multiplier {step.multiplier:.6g}, sensitivity {step.sensitivity:.6g}",
            own,
            step.limit,
            draw,
            event=self.plan.event if correlated else gaussian(step.sigma, step.limit),
            once=self if correlated else None,
        )

    def noise_variance(self, parameter: Tensor) -> float | Tensor:
        """The variance of the noise in the entries of a parameter's gradient, at the last step."""
        if self._last is None:
            return 0.0
        (step, scales), places = self._last, [p is parameter for p in self.trained.values()]
        if True not in places:
            raise ValueError("The parameter is not one of those that the run trains.")
        variance = (step.sigma / step.divisor * self._noise.spread(step.number)) ** 2
        return variance if scales is None else variance / scales[places.index(True)] ** 2

    def _adapt(self, gaussians: Gaussians, movement: int) -> None:
        """Let the clip norm follow a noisy count of the units that were within it."""
        adaptive, sampler, value = self.plan.clipping.adaptive, self.plan.sampler, self.clipped.unclipped
        assert adaptive is not None
        first = self.ranks.rank == 0  # draws the noise; the counts are added up with it
        sigma, limit = adaptive.sigma(sampler.expected), 0.5 * movement
        count = float(
            draw_output(
                f"count of unclipped records, sigma {sigma:.6g}",
                np.float64(value),
                "l2",
                limit,
                lambda: self.ranks.summed(gaussians.number(value, sigma) if first else value),
                event=gaussian(sigma, limit),
            )
        )
        self.clip_norm = adaptive.next_norm(self.clip_norm, count, sampler.expected)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """One checkpoint of model, optimiser, sampler, clip state, noise and account; streams are found again by their
        step."""
        number, order = self._pass
        self._shards.end()
        return {
            "model": as_one_process(self.model.state_dict()),
            "optimizer": as_one_process(self.optimizer.state_dict()),
            "steps": self.steps,
            "position": self.position,
            "pass": number,
            "order": None if order is None else torch.from_numpy(order),
            "clip_norm": self.clip_norm,
            "scale": self._scales.state_dict(),
            "noise": {} if self._noise.correlated else self._noise.state_dict(),
            "planned": self.plan.event.to_json(),
            "plan": self.plan.identity,
            "run": self._name,
            **({} if self.observation is None else {"audit": self.observation.state_dict()}),
            # where the user's generator goes on, under a seed; otherwise nothing of any generator, because how many
            # numbers the loop took may tell how many records there were
            **({"chance": self.chance.users_state} if self.streams.reproducible else {}),
        }

    @property
    def mark(self) -> dict[str, Any]:
        """What the optimiser's own state says of the run; ``whole`` if no later step needs more than this."""
        remembers = self._noise.correlated or self._noise.state_dict() or self.plan.clipping.scale is not None
        return {
            "run": self._name,
            "plan": self.plan.identity,
            "steps": self.steps,
            "position": self.position,
            "clip_norm": self.clip_norm,
            "whole": not (remembers or self.needs_order(self.position)),
        }

    def needs_order(self, position: int) -> bool:
        """Whether steps after so many batches need what was drawn for a pass: one that goes on, or serves the run."""
        sampler = self.plan.sampler
        return sampler.passes and position > 0 and (sampler.kept or position % sampler.steps_per_pass > 0)

    @one_at_a_time
    def follow_mark(self, mark: Mapping[str, Any]) -> None:
        """The optimiser was given the state of a private run: go on with that run's count, or refuse.

        An earlier state of this run itself is taken as it is: the count does not go back with it.
        """
        if mark["run"] == self._name and mark["steps"] <= self.steps:
            return
        done = f"The optimizer's state is of a private run that had made {mark['steps']} steps"
        if mark["plan"] != self.plan.identity:
            raise ValueError(
                f"{done} of another plan: noise, sampling or steps differ, and those steps would not be counted. To go "
                "on with that run, call make_private as it did. To begin a run of its own from its weights, load the "
                "model alone, with model.load_state_dict(...): what both runs cost then adds up."
            )
        if self.steps:
            raise ValueError(
                f"{done}, and this run has made {self.steps} of its own: the steps of one would not be counted. Load "
                "it before the first step."
            )
        self._name, self.steps, self.position = mark["run"], int(mark["steps"]), int(mark["position"])
        self.clip_norm, self._lacks_state = float(mark["clip_norm"]), not mark["whole"]
        logger.warning("%s: this run goes on from there, with %d left.", done, self.plan.steps - self.steps)

    def refuse_part_of_a_checkpoint(self) -> None:
        """Refuse to go on from an optimiser's state where the run needs more than that."""
        if self._lacks_state:
            raise PrivateTrainingError(
                "Model and optimizer were loaded, but this run also needs what its noise, its scales or the order of "
                "its pass remember. Save optimizer.privacy.state_dict(), and load it after make_private with "
                "optimizer.privacy.load_state_dict(...)."
            )

    def secret_state_dict(self) -> dict[str, Any]:
        """What correlated noise remembers: with it, noise that was released can be taken away."""
        if not self._noise.correlated:
            return {}
        share = [self.ranks.rank, self.ranks.count]  # each rank remembers its part of the noise
        return {"run": self._name, "steps": self.steps, "share": share, "noise": self._noise.state_dict()}

    @one_at_a_time
    def load_state_dict(self, state: Mapping[str, Any], secret: Mapping[str, Any] | None = None) -> None:
        """Go on from a checkpoint of the same plan and, with correlated noise, its run's secret state of the same
        step."""
        if state.get("plan") != self.plan.identity:
            raise ValueError(
                "The checkpoint belongs to another plan: noise, sampling or steps differ. Call make_private as in "
                "the run that saved it."
            )
        if state["steps"] < self.steps:
            raise ValueError(
                "The checkpoint is of an earlier step than this run: going back and training again would release "
                "more than the plan. Make a new plan for it, and charge that."
            )
        if self._noise.correlated and any((secret or {}).get(name) != state[name] for name in ("run", "steps")):
            raise ValueError(
                "The noise of this run is correlated, and the checkpoint does not hold what it remembers, which is "
                "secret: pass secret=, the secret_state_dict() of the same run and step."
            )
        if secret and list(secret.get("share", [0, 1])) != [self.ranks.rank, self.ranks.count]:
            raise ValueError(
                "The secret state is of another rank, or of another number of ranks, and each remembers its part of "
                "the noise: go on with as many ranks as saved it, each with its own secret_state_dict()."
            )
        self._shards.end()
        model, optimizer = as_shards(state, self.model, self.optimizer)
        self.model.load_state_dict(model)
        self.restoring = True
        try:
            self.optimizer.load_state_dict(optimizer)
        finally:
            self.restoring = False
        self._noise.load_state_dict(secret["noise"] if self._noise.correlated and secret else state["noise"])
        self._scales.load_state_dict(state.get("scale", {}))
        self.clipped.scale(self._scales.values)
        order, self._name = state["order"], state["run"]
        self.steps, self.position, self.clip_norm = (
            int(state["steps"]),
            int(state["position"]),
            float(state["clip_norm"]),
        )
        if self.observation is not None and "audit" in state:
            self.observation.load_state_dict(state["audit"])
        self._lacks_state = False
        self.batch, self._pass = None, (int(state["pass"]), None if order is None else order.numpy())
        if self.streams.reproducible and self.ranks.rank == 0:  # the other ranks' loops draw by themselves
            torch.set_rng_state(state["chance"])
        self.clipped.begin()
        self.optimizer.zero_grad()
