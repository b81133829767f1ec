"""``PrivateTrainer``: Hugging Face's Trainer with a private loader, a private step and a quiet log.

The Trainer owns the loop; what differs is what must. Batches are the sampler's, ``gradient_accumulation_steps`` cuts
them into pieces, ``max_grad_norm`` is the clip norm of each record, one step of the Trainer is one private step, and
of what it logs only that remains which is not made of training records.

Decision 442.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping
from typing import Any

from discreet.errors import extra
from discreet.training.distributed import Ranks
from discreet.training.errors import PrivateTrainingError
from discreet.training.fitting.fit import quietly
from discreet.training.integrations.terms import LOCAL, Batches, TrainerTerms, refuse_processes
from discreet.training.privacy import Privacy

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
    from torch.utils.data import DataLoader

with extra("hf"):
    from transformers import Trainer, TrainingArguments

__all__ = ["PrivateTrainer", "causal_lm_loss", "token_loss"]

SAVED = "privacy.pt"
PUBLIC = {"learning_rate", "epoch", "step", "epsilon", "train_runtime", "train_samples_per_second"}
PUBLIC |= {"train_steps_per_second"}
"""What is logged of training without being made of its records; clocks are not part of the guarantee."""

BY_RECORD = ("ForSequenceClassification", "ForImageClassification", "ForVideoClassification", "ForAudioClassification")
"""Kinds of models whose own loss is a mean over records."""


def token_loss(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
    """The mean over records of each record's own mean over its tokens; a label that is no word counts for nothing.

    For ``PrivateTrainer(..., compute_loss_func=token_loss)``: masked words, or a class for each token.

    >>> scores, labels = torch.zeros(2, 3, 5), torch.tensor([[1, 2, 3], [4, -100, -100]])
    >>> round(float(token_loss({"logits": scores}, labels)), 4) == round(math.log(5), 4)
    True
    """
    scores = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    within = (labels >= 0) & (labels < scores.shape[-1])
    each = F.cross_entropy(scores.flatten(0, 1), labels.where(within, 0).flatten(), reduction="none")
    own = (each.view_as(labels) * within).sum(1) / within.sum(1).clamp(min=1)
    return own.mean()


def causal_lm_loss(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
    """``token_loss`` of each next word: position i is to say label i + 1."""
    scores = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    return token_loss((scores[:, :-1],), labels[:, 1:])


class PrivateTrainer(Trainer):
    """A ``Trainer`` whose training is private; ``privacy`` holds the arguments of ``make_private``, and ``Terms``.

    Guarantee: that of ``trainer.privacy.planned``, whatever checkpoints and logs are published, unless ``local`` is
    set. Training loss, gradient norms, counts of tokens and sizes of batches are not logged.

    >>> trainer = PrivateTrainer(model, args, train_dataset=data, compute_loss_func=causal_lm_loss,
    ...                          privacy={"epsilon": 3.0, "delta": 1e-5})  # doctest: +SKIP
    """

    model: Any  # both are there when training begins
    optimizer: Any

    def __init__(
        self,
        model: Any = None,
        args: TrainingArguments | None = None,
        *others: Any,
        privacy: Mapping[str, Any],
        **options: Any,
    ) -> None:
        self._terms = TrainerTerms(**privacy)
        self._terms.refuse_set(
            epochs="TrainingArguments (num_train_epochs, max_steps)", max_grad_norm="max_grad_norm of TrainingArguments"
        )
        self._terms.withhold_errors()
        args = TrainingArguments("tmp_trainer") if args is None else args
        _refuse_arguments(args, self._terms)
        self._ranks = Ranks.current(args.device)
        refuse_processes(args.world_size * max(args.n_gpu, 1), self._ranks)
        self._pieces = args.per_device_train_batch_size if args.gradient_accumulation_steps > 1 else None
        self._batches: Batches | None = None
        self._evaluated: set[str] = set()  # prefixes of metrics of public data
        super().__init__(model, _whole_batches(args), *others, **options)
        self.current_gradient_accumulation_steps = 1  # which its loop sets later than the first piece is met
        sharded = ("is_fsdp_enabled", "is_deepspeed_enabled", "is_distributed_loading_by_transformers")
        if any(getattr(self, name, False) for name in sharded):
            raise ValueError(
                "The Trainer is to put the model in shards (accelerate's configuration, or a distributed_config), but "
                "every rank must have all of it. For shards call fully_shard and make_private in a loop of your own."
            )
        if self.eval_dataset is not None:
            self._refuse_evaluation("eval_dataset")
        self._refuse_loss()

    @property
    def privacy(self) -> Privacy:
        """The account of the run: ``planned``, ``executed``, ``epsilon(delta)``."""
        if self._batches is None:
            raise PrivateTrainingError("The run has no account before train() has begun.")
        return self._batches.privacy

    # --- batches and steps -----------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> Any:
        """The private batches; what is publicly wrong is refused here, before the charge."""
        if self.train_dataset is None or self._batches is not None:
            raise ValueError(
                "train needs a train_dataset, and trains once: a second run is a new plan, with a price of its own. "
                "Make a new PrivateTrainer for it."
            )
        args, collate = self.args, self._get_collator_with_removed_columns(self.data_collator, "Training")
        loader: Any = DataLoader(
            self.train_dataset,
            batch_size=args.per_device_train_batch_size * self._ranks.count,
            collate_fn=collate,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory and args.device.type == "cuda",
        )
        own_norm = self._terms.plan.get("clipping")
        clip = {} if own_norm is not None and not isinstance(own_norm, str) else {"max_grad_norm": args.max_grad_norm}
        self.create_optimizer()
        self._batches = self._terms.arranged(
            self.model,
            self.optimizer,
            loader,
            self._backward,
            ranks=self._ranks,
            epochs=float(args.num_train_epochs),
            max_steps=args.max_steps if args.max_steps > 0 else None,
            pieces=self._pieces,
            **clip,
        )
        return self._batches

    def _backward(self, piece: Any) -> None:
        self.training_step(self.model, piece)

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """The Trainer's own, on the model itself, not on a compiled one or in ``DistributedDataParallel``, whose
        averaging begins with a call of it; its loss is for local eyes."""
        losses: list[Tensor] = []

        def step() -> None:
            losses.append(super(PrivateTrainer, self).training_step(self.model, inputs))

        quietly(step) if self._terms.withholds else step()
        return losses[0] if self._terms.local else torch.zeros_like(losses[0])

    def num_examples(self, dataloader: Any) -> int:
        """Of the training data, the number that was declared public."""
        if isinstance(dataloader, Batches):
            return dataloader.run.plan.sampler.dataset_size
        return super().num_examples(dataloader)

    def _get_num_items_in_batch(self, *_: Any) -> None:
        """Nothing: a loss that is divided by the tokens of a batch mixes its records."""

    def _clip_grad_norm(self, model: nn.Module) -> None:
        """Nothing: each record's gradient is clipped, and there are no others before the step."""

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> None:
        """Nothing."""

    def floating_point_ops(self, inputs: Any) -> int:
        """Zero, unless for local eyes: it counts tokens."""
        return super().floating_point_ops(inputs) if self._terms.local else 0

    # --- what is seen ----------------------------------------------------------------------------------------------

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log what is public, with epsilon of the steps so far; of the rest nothing, or under ``local/`` names."""
        for name in [name for name in logs if not self._is_public(name)]:
            value = logs.pop(name)
            if self._terms.local:
                logs[LOCAL + name] = value
        epsilon = None if self._batches is None else self._batches.epsilon()
        if epsilon is not None:
            logs["epsilon"] = epsilon
        super().log(logs, start_time)

    def _is_public(self, name: str) -> bool:
        return name in PUBLIC or any(name.startswith(f"{prefix}_") for prefix in self._evaluated)

    def _finalize_training(self, *args: Any) -> Any:
        output = super()._finalize_training(*args)
        return output if self._terms.local else output._replace(training_loss=math.nan)

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> Any:
        """Evaluate, on data that was declared public."""
        self._refuse_evaluation(description)
        if getattr(dataloader, "dataset", None) is self.train_dataset:
            raise ValueError(f"{description} is asked of train_dataset, which is what is protected: it is not public.")
        self._evaluated.add(metric_key_prefix)
        return super().evaluation_loop(dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix)

    def hyperparameter_search(self, *_: Any, **__: Any) -> Any:
        """Refused: every trial would be a run of its own."""
        raise PrivateTrainingError(
            "hyperparameter_search trains many times, and each run costs what the plan says. Use "
            "discreet.tuning.search, which charges for the choice, or choose on public data."
        )

    def _refuse_evaluation(self, what: str) -> None:
        self._terms.refuse_evaluation(what, 'PrivateTrainer(..., privacy={..., "evaluation": "public"})')

    def _refuse_loss(self) -> None:
        """Refuse a model whose own loss is a mean over the tokens of a batch."""
        inner = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        by_record = getattr(inner, "loss_type", BY_RECORD[0]) in BY_RECORD  # other modules are judged when they run
        if self.compute_loss_func is None and (self.label_smoother is not None or not by_record):
            raise ValueError(
                "The loss is a mean over the tokens of a batch, which mixes records of different lengths. Write "
                "PrivateTrainer(..., compute_loss_func=causal_lm_loss), or token_loss, of "
                "discreet.training.integrations.huggingface: each record's own mean."
            )

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        assert self._batches is not None
        state = self._batches.state_dict()  # on every rank, each of which may have secrets to keep
        if self.args.should_save:
            torch.save(state, os.path.join(output_dir, SAVED))

    def _save_rng_state(self, output_dir: str) -> None:
        """Nothing, unless there is a seed: how many numbers dropout took tells how many tokens there were."""
        if self.privacy.reproducible:
            super()._save_rng_state(output_dir)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None or self._batches is None:
            return
        path = os.path.join(checkpoint, SAVED)
        if not os.path.isfile(path):
            raise ValueError(f"The checkpoint has no {SAVED}: it is of an ordinary run, or saved with save_only_model.")
        self._batches.load_state_dict(torch.load(path, weights_only=True))


def _refuse_arguments(args: TrainingArguments, terms: TrainerTerms) -> None:
    """Refuse settings that have no private meaning, each with what to write."""
    refused = {
        "fp16=True": (args.fp16, "a scaled loss has scaled gradients; take bf16=True, which needs no scaling"),
        "deepspeed": (bool(args.deepspeed), "it makes gradients by itself; leave it out"),
        "fsdp": (bool(args.fsdp), "it is set up too late; call fully_shard and make_private in a loop of your own"),
        "parallelism_config": (
            getattr(args, "parallelism_config", None) is not None,
            "records are shared out among all processes, and the model is whole on each; leave it out",
        ),
        "auto_find_batch_size=True": (
            args.auto_find_batch_size,
            "how large a batch was is private; cut batches into pieces with gradient_accumulation_steps",
        ),
        f"train_sampling_strategy={args.train_sampling_strategy!r}": (
            args.train_sampling_strategy != "random",
            'the sampler decides what privacy costs; write privacy={..., "sampler": ...}',
        ),
        f"include_num_input_tokens_seen={args.include_num_input_tokens_seen!r}": (
            str(args.include_num_input_tokens_seen) not in ("no", "False") and not terms.local,
            'counts of tokens are private; leave it out, or write privacy={..., "local": True}',
        ),
    }
    for setting, (given, why) in refused.items():
        if given:
            raise ValueError(f"TrainingArguments has {setting}, but {why}.")
    if args.eval_strategy != "no" or args.load_best_model_at_end:
        terms.refuse_evaluation(
            "eval_strategy of TrainingArguments", 'PrivateTrainer(..., privacy={..., "evaluation": "public"})'
        )


def _whole_batches(args: TrainingArguments) -> TrainingArguments:
    """The arguments as they are meant here: accumulated batches are whole, and none is skipped when a run is
    resumed."""
    args = copy.copy(args)
    args.per_device_train_batch_size *= args.gradient_accumulation_steps
    args.gradient_accumulation_steps, args.ignore_data_skip = 1, True
    return args
