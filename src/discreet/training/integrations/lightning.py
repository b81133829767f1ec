"""``PrivateTraining``: a callback that makes the training of a Lightning trainer private.

Lightning owns the loop: ``training_step``, ``configure_optimizers`` and the trainer stay as they are. When the fit
starts the optimiser is made private and the loader replaced; what ``training_step`` logs is made of training records,
and goes nowhere unless it is for local eyes.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import extra
from discreet.training.distributed import Ranks
from discreet.training.errors import PrivateTrainingError
from discreet.training.integrations.terms import LOCAL, Batches, TrainerTerms, refuse_processes
from discreet.training.privacy import Privacy

with extra("torch"):
    from torch.utils.data import DataLoader

with extra("lightning"):
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.callbacks import (
        BatchSizeFinder,
        GradientAccumulationScheduler,
        LearningRateFinder,
        ThroughputMonitor,
    )
    from lightning.pytorch.trainer.call import _call_strategy_hook

__all__ = ["PrivateTraining"]

logger = logging.getLogger("discreet.training")
DECLARED = 'PrivateTraining(..., evaluation="public")'


class PrivateTraining(Callback):
    """Makes a fit private; the arguments are those of ``make_private``, and of ``Terms``.

    Guarantee: that of ``callback.privacy.planned``, whatever checkpoints and logs are published, unless ``local`` is
    set. ``accumulate_grad_batches`` cuts a batch of so many times the loader's into pieces.

    >>> trainer = Trainer(max_epochs=3, callbacks=[PrivateTraining(epsilon=3.0, delta=1e-5)])  # doctest: +SKIP
    """

    log: Any  # the module's, which Lightning puts here

    def __init__(self, **privacy: Any) -> None:
        self._terms = TrainerTerms(**privacy)
        self._terms.refuse_set(epochs="the trainer (max_epochs, max_steps)")
        self._batches: Batches | None = None
        self._dropped: set[str] = set()

    @property
    def privacy(self) -> Privacy:
        """The account of the run: ``planned``, ``executed``, ``epsilon(delta)``."""
        if self._batches is None:
            raise PrivateTrainingError("The run has no account before fit has begun.")
        return self._batches.privacy

    # --- the run ---------------------------------------------------------------------------------------------------

    def setup(self, trainer: Any, pl_module: LightningModule, stage: str) -> None:
        """Refuse what would train before this callback, or tell of batches beside the module's log."""
        _refuse_callbacks(trainer.callbacks, self._terms)

    def on_fit_start(self, trainer: Any, pl_module: LightningModule) -> None:
        """Make the optimiser private and replace the loader; what is publicly wrong is refused here."""
        self._refuse(trainer, pl_module)
        source = trainer.fit_loop._data_source
        loader, times = source.dataloader(), trainer.accumulate_grad_batches
        if not isinstance(loader, DataLoader):
            raise ValueError(f"The training loader is a {type(loader).__name__}, but must be one torch DataLoader.")
        accumulates = times > 1 and loader.batch_size is not None
        whole = _with_batches_of(loader, (loader.batch_size or 1) * times) if accumulates else loader
        trainer.accumulate_grad_batches = 1  # a batch is whole when the loop meets it
        steps = trainer.max_steps if trainer.max_steps > 0 else None
        self._batches = self._terms.arranged(
            pl_module,
            trainer.strategy.optimizers[0],
            whole,
            lambda piece: _backward(trainer, piece),
            epochs=trainer.max_epochs,
            max_steps=None if steps is None else self._steps(trainer, whole, steps),
            pieces=loader.batch_size if accumulates else None,
        )
        source.instance = self._batches
        kept = self._log(trainer, pl_module.log)
        object.__setattr__(pl_module, "log", kept)
        for other in trainer.callbacks:  # they log through the module, and were handed its method before
            if other is not self:
                object.__setattr__(other, "log", kept)

    def _steps(self, trainer: Trainer, loader: DataLoader[Any], steps: int) -> int:
        """The fewer of ``max_steps`` and ``max_epochs``."""
        if trainer.max_epochs is None or trainer.max_epochs < 0:
            return steps
        return min(steps, trainer.max_epochs * self._terms.steps_per_pass(loader))

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Log epsilon of the steps so far, as any metric."""
        epsilon = None if self._batches is None else self._batches.epsilon()
        if epsilon is not None:
            self.log("epsilon", epsilon, on_step=True, on_epoch=False)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Let the module log again as it did."""
        pl_module.__dict__.pop("log", None)

    # --- what is seen ----------------------------------------------------------------------------------------------

    def _log(self, trainer: Trainer, log: Callable[..., None]) -> Callable[..., None]:
        """``module.log`` without what is made of training records."""

        def kept(name: str, *args: Any, **options: Any) -> None:
            if not trainer.training:
                return log(name, *args, **options)
            if self._terms.local:
                return log(LOCAL + name, *args, **options)
            if name not in self._dropped:
                self._dropped.add(name)
                logger.warning(
                    "%r is made of training records and is not logged. For your own eyes: "
                    "PrivateTraining(..., local=True).",
                    name,
                )
            return None

        return kept

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Validation needs data that was declared public."""
        self._terms.refuse_evaluation("Validation", DECLARED)

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Testing needs data that was declared public."""
        self._terms.refuse_evaluation("Testing", DECLARED)

    # --- what is refused -------------------------------------------------------------------------------------------

    def _refuse(self, trainer: Any, module: LightningModule) -> None:
        refuse_processes(max(trainer.world_size, Ranks.current().count), Ranks())
        accumulates = any(isinstance(callback, GradientAccumulationScheduler) for callback in trainer.callbacks)
        refused = {
            "a second fit": (self._batches is not None, "a plan is carried out once; make a new PrivateTraining"),
            "manual optimisation": (
                not module.automatic_optimization,
                "one step per batch is what is paid for; use make_private in a loop of your own",
            ),
            "a strategy that wraps the module": (
                trainer.strategy.model is not module,
                "gradients would be made outside of the run; train on a single device",
            ),
            "a compiled LightningModule": (
                getattr(module, "_compiler_ctx", None) is not None,
                "its training_step would be traced with the run inside; compile the network that it holds",
            ),
            "16-mixed precision": (
                trainer.precision == "16-mixed",
                "a scaled loss has scaled gradients; take bf16-mixed",
            ),
            "gradient_clip_val": (
                trainer.gradient_clip_val is not None,
                "there is no gradient before the step; write "
                "PrivateTraining(..., max_grad_norm=...), which clips each record's",
            ),
            "a GradientAccumulationScheduler": (accumulates, "a plan has one batch size; leave it out"),
        }
        for what, (given, why) in refused.items():
            if given:
                raise ValueError(f"The trainer has {what}, but {why}.")
        if trainer.enable_validation:
            self._terms.refuse_evaluation("Validation", DECLARED)
        for name, monitored in _monitors(trainer):
            if monitored.startswith(LOCAL):
                raise ValueError(f"{name} follows {monitored!r}, which is not private: it may be seen, not acted on.")
            if monitored != "epsilon":
                self._terms.refuse_evaluation(f"{name}, which follows {monitored!r},", DECLARED)


def _refuse_callbacks(callbacks: list[Any], terms: TrainerTerms) -> None:
    refused = {
        "a LearningRateFinder": (
            LearningRateFinder,
            "it trains without noise and chooses by the training loss; choose on public data, or by tuning.search",
        ),
        "a BatchSizeFinder": (
            BatchSizeFinder,
            "it trains without noise; cut batches into pieces with accumulate_grad_batches",
        ),
    }
    if not terms.local:
        refused["a ThroughputMonitor"] = (
            ThroughputMonitor,
            "it counts records; leave it out, or write PrivateTraining(..., local=True)",
        )
    for what, (kind, why) in refused.items():
        if any(isinstance(callback, kind) for callback in callbacks):
            raise ValueError(f"The trainer has {what}, but {why}.")


def _monitors(trainer: Any) -> list[tuple[str, str]]:
    """What decides by a metric: callbacks (early stopping, the best checkpoint) and learning-rate schedulers."""
    metrics = [(type(callback).__name__, getattr(callback, "monitor", None)) for callback in trainer.callbacks]
    plans = [config for config in trainer.lr_scheduler_configs if config.reduce_on_plateau]
    metrics += [(type(config.scheduler).__name__, config.monitor) for config in plans]
    return [(name, str(monitored)) for name, monitored in metrics if monitored is not None]


def _backward(trainer: Trainer, piece: Any) -> None:
    """What Lightning does with a batch, for a piece that it does not meet; none of its counters moves."""
    module, optimizer = trainer.lightning_module, trainer.strategy.optimizers[0]
    batch = trainer.precision_plugin.convert_input(piece)
    batch = module._on_before_batch_transfer(batch, dataloader_idx=0)
    batch = _call_strategy_hook(trainer, "batch_to_device", batch, dataloader_idx=0)
    given = trainer.fit_loop.epoch_loop._build_kwargs(OrderedDict(), batch, 0)
    output = _call_strategy_hook(trainer, "training_step", *given.values())
    _call_strategy_hook(trainer, "backward", output["loss"] if isinstance(output, Mapping) else output, optimizer)


def _with_batches_of(loader: DataLoader[Any], batch_size: int) -> DataLoader[Any]:
    """The loader with another batch size; what is odd about it is refused where all loaders are."""
    return DataLoader(
        loader.dataset,
        batch_size=batch_size,
        sampler=loader.sampler,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        timeout=loader.timeout,
    )
