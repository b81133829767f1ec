"""A private run that another's loop carries out: what was asked of it, and the batches it is given.

The loop meets one batch a private step. Where batches come in pieces, all but the last are added up before the loop
sees the last one: how many pieces there were is private, and no counter, log or checkpoint of the loop may follow it.
The book is charged when the first batch is asked for, after everything that the loop itself may refuse.

Decisions 440 and 441.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from discreet import accounting
from discreet.errors import extra
from discreet.random import RngLike, Streams
from discreet.release import Chargeable
from discreet.training.distributed import Ranks, SharedStreams
from discreet.training.fitting.fit import quietly
from discreet.training.gradients import Reduction
from discreet.training.loader import PrivateLoader, checked
from discreet.training.noise.observer import Observer
from discreet.training.planning import plan_for
from discreet.training.privacy import Privacy
from discreet.training.private import count_canaries, prepare, start
from discreet.training.run import Run, label_of_charge
from discreet.training.sampling.rehearsal import made_up_batch, run_plainly
from discreet.training.speed import Speed

with extra("torch"):
    import torch
    from torch import nn
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

__all__ = ["LOCAL", "Batches", "TrainerTerms", "refuse_processes"]

LOCAL = "local/"
"""What the names of figures begin with that are not private, and only for the eyes of who trains."""

POINTS = 20  # of a run at which the logged epsilon is computed; accounts take a moment each


def refuse_processes(count: int, ranks: Ranks) -> None:
    """Refuse a loop that counts other processes or devices than those that carry out the run together, each of which
    would clip and noise a part by itself."""
    if count != ranks.count:
        raise ValueError(
            f"The trainer has {count} processes or devices, but a private run has {ranks.count} here: each would clip "
            "and noise a part by itself. Start one process per device with torchrun, if the trainer supports it; "
            "otherwise use one process with one device, and let large batches come in pieces."
        )


class TrainerTerms:
    """What is asked of a private run: the arguments of ``make_private``, and what may be seen beside the model.

    ``evaluation``
        ``"public"`` declares that what is evaluated on is public data; otherwise evaluation, early stopping and the
        choice of the best checkpoint are refused, because each is a release that nobody paid for.
    ``local``
        Lets training loss, token counts and the like be logged, under names that begin with ``local/``. They are not
        private.
    ``secrets``
        A folder for what no checkpoint may hold: what correlated noise remembers, and which batch of a pass each
        record is in; needed to resume such a run.
    ``rehearse``
        The loop's own step runs once on two made-up records before the book is charged; False leaves that out. They
        look like ``placeholder``, a made-up record, or as the columns of a ``TensorDataset`` or the ``features`` of a
        table say; there is no rehearsal where nothing does.
    """

    def __init__(
        self,
        *,
        evaluation: Literal["public"] | None = None,
        local: bool = False,
        secrets: str | PathLike[str] | None = None,
        book: Chargeable | None = None,
        label: str = "private training",
        loss_reduction: Reduction = "mean",
        speed: Speed | None = None,
        rehearse: bool = True,
        placeholder: Any = None,
        unverified: str = "",
        debug: bool = False,
        audit: Observer | None = None,
        rng: RngLike = None,
        **plan: Any,
    ) -> None:
        if evaluation not in (None, "public"):
            raise ValueError(f"evaluation is {evaluation!r}, but must be 'public', or be left out.")
        for name, flag in {"local": local, "rehearse": rehearse}.items():
            if not isinstance(flag, bool):
                raise ValueError(f"{name} is {flag!r}, but must be True or False.")
        self.public, self.local = evaluation == "public", local
        self.secrets = None if secrets is None else Path(secrets)
        self.book, self.label, self._rehearses = book, label, rehearse
        self.speed, self._reduction, self._rng = speed or Speed(), loss_reduction, rng
        self.debug, self.withholds = debug, False  # whether errors of reading records are withheld
        self._shown = {"placeholder": placeholder, "unverified": unverified, "debug": debug, "audit": audit}
        self.plan = {"canaries": count_canaries(audit), **plan}

    def withhold_errors(self) -> None:
        """Do not show errors of reading records, unless the run is for local eyes or not private anyway."""
        self.withholds = not (self.local or self.debug)

    def refuse_set(self, **said_elsewhere: str) -> None:
        """Refuse arguments that the loop's own settings say."""
        for name, where in said_elsewhere.items():
            if self.plan.get(name) is not None:
                raise ValueError(f"{name} is given, but is said by {where}: say it in one place.")

    def refuse_evaluation(self, what: str, how: str) -> None:
        """Refuse what looks at data that nobody declared public or paid for; ``how`` is the line to write."""
        if not self.public:
            raise ValueError(
                f"{what} looks at data that was neither declared public nor paid for, and what comes of it would be "
                f"released. If that data is public, write {how}; if it is private, leave it out, and release a "
                "statistic of the trained model's predictions from a book."
            )

    def arranged(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        loader: Any,
        backward: Callable[[Any], None],
        *,
        ranks: Ranks | None = None,
        epochs: float | None = None,
        max_steps: int | None = None,
        pieces: int | None = None,
        **plan: Any,
    ) -> Batches:
        """The batches of a run of so many epochs or steps, in pieces of at most so many rows; nothing is read.

        ``backward`` is what the loop does with a batch before the optimiser's step.

        ``loader`` has the batch size of all ranks together; ``pieces`` are of each rank.
        """
        ranks = ranks or Ranks()
        with ranks.together():
            data: DataLoader[Any] = checked(loader)
            records, batch_size = len(data.dataset), data.batch_size or 1  # type: ignore[arg-type]
            if pieces is not None and self.speed.max_physical_batch_size is not None:
                raise ValueError(
                    "Accumulated batches and max_physical_batch_size both cut a batch: say it in one place."
                )
            if max_steps is not None:
                epochs = (max_steps - 0.5) / self.steps_per_pass(data)  # exactly so many, whatever rounding does
            whole_plan = plan_for(records, batch_size, epochs=epochs, **{**self.plan, **plan})
            size = self.speed.max_physical_batch_size if pieces is None else pieces
        run, private = prepare(
            model,
            optimizer,
            data,
            whole_plan,
            self._reduction,
            Streams(self._rng) if ranks.count == 1 else SharedStreams(self._rng, ranks),
            speed=replace(self.speed, max_physical_batch_size=size),
            ranks=ranks,
            pieces_are_met=False,  # but for the last: see Batches
            **self._shown,
        )
        start(run)
        return Batches(self, run, private, backward)

    def rehearse(self, run: Run, loader: PrivateLoader, backward: Callable[[Any], None]) -> None:
        """Let the loop go backward once from made-up records: what is wrong with every record is found here."""
        if not self._rehearses or run.ranks.count > 1:
            return
        rows = run.plan.sampler.static_size or 2
        batch = made_up_batch(loader, self._shown["placeholder"], rows, may_read=False)
        if batch is None:
            return
        withholds, self.withholds = self.withholds, False  # made-up records have nothing to hide
        try:
            with run.clipped.watch.without_watching():
                run_plainly(run.model, lambda: backward(batch))
        finally:
            self.withholds = withholds
            run.optimizer.zero_grad()

    def steps_per_pass(self, loader: DataLoader[Any]) -> int:
        """Of a run over a loader."""
        same = {name: self.plan[name] for name in ("sampler", "dataset_size", "noise", "canaries") if name in self.plan}
        size: int = len(loader.dataset)  # type: ignore[arg-type]
        return plan_for(size, loader.batch_size or 1, epochs=1, noise_multiplier=1.0, **same).sampler.steps_per_pass


class Batches:
    """What a loop iterates over, once an epoch: one batch a private step."""

    def __init__(self, terms: TrainerTerms, run: Run, loader: PrivateLoader, backward: Callable[[Any], None]) -> None:
        self._terms, self.run, self._loader, self._backward = terms, run, loader, backward
        self.privacy = Privacy(run)
        self._paid = False
        self._priced: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        if not self._paid:
            self.run.refuse_part_of_a_checkpoint()
            self._terms.rehearse(self.run, self._loader, self._backward)
            self.run.ranks.agree({"the checkpoint": self.run.steps})
            label = label_of_charge(self._terms.label, self.run.unverified, self.run.debug, self.run.in_part)
            self.run.ranks.pay(self.run.plan, self._terms.book, label, reproducible=self.run.reproducible)
            self._paid = True
        left = len(self) - self.run.steps % len(self)  # an epoch that was begun before a checkpoint is finished
        for piece in self._read(iter(self._loader)):
            batch = self.run.batch
            assert batch is not None
            if not batch.last:
                self._backward(piece)
                self.run.optimizer.step()
                continue
            yield piece
            left -= 1
            if not left:
                return

    def _read(self, pieces: Iterator[Any]) -> Iterator[Any]:
        """The pieces; what a dataset or a collate function says of records that it cannot take may be withheld."""
        waiting: list[Any] = []

        def read() -> None:
            waiting[:] = islice(pieces, 1)

        try:
            while True:
                quietly(read) if self._terms.withholds else read()
                if not waiting:
                    return
                yield waiting.pop()
        finally:
            pieces.close()  # type: ignore[attr-defined]

    def epsilon(self) -> float | None:
        """Epsilon of the steps so far, rounded up to a twentieth of the run; none where no delta was given."""
        delta, plan = self._terms.plan.get("delta"), self.run.plan
        if delta is None:
            return None
        stride = max(1, plan.steps // POINTS)
        steps = min(plan.steps, math.ceil(self.run.steps / stride) * stride)
        if steps not in self._priced:
            self._priced[steps] = (
                accounting.epsilon(plan.price(steps), delta, adjacency=plan.adjacency) if steps else 0.0
            )
        return self._priced[steps]

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs beside model and optimiser, which the loop saves itself; nothing that is secret."""
        state = self.privacy.state_dict()
        secret = self.privacy.secret_state_dict()
        if state["order"] is not None and not self.privacy.reproducible:  # of each record its batch, and how many
            secret["order"], state["order"] = state["order"], None
        path = self._secret(state)
        if secret and path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(secret, path)
        return {name: value for name, value in state.items() if name not in ("model", "optimizer")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint whose model and optimiser were loaded already."""
        path = self._secret(state)
        secret = torch.load(path, weights_only=True) if path is not None and path.exists() else {}
        loaded = {"model": self.run.model.state_dict(), "optimizer": self.run.optimizer.state_dict()}
        order = secret.pop("order", state["order"])
        if order is None and self.run.needs_order(state["position"]):
            raise ValueError(
                "This run draws the batches of a whole pass at once. They are secret, so the checkpoint does not "
                "have them: give secrets=, the folder of the run that saved it."
            )
        self.privacy.load_state_dict({**state, **loaded, "order": order}, secret or None)

    def _secret(self, state: Mapping[str, Any]) -> Path | None:
        folder = self._terms.secrets
        ranks = self.run.ranks  # each remembers its part of the noise
        part = f"-{ranks.rank}-of-{ranks.count}" if ranks.count > 1 else ""
        return None if folder is None else folder / f"{state['run']}-{int(state['steps'])}{part}.pt"
