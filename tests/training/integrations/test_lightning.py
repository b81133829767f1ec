"""Lightning's own Trainer with the callback that makes a fit private."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet.training import PrivateTrainingError
from tests.training.loops import data, network, weights

lightning = pytest.importorskip("lightning.pytorch")

from lightning.pytorch.callbacks import (  # noqa: E402
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateFinder,
    ModelCheckpoint,
    ThroughputMonitor,
)

from discreet.training.integrations.lightning import PrivateTraining  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")

PRIVATE = {"noise_multiplier": 1.0, "rng": 1}
PUBLIC = {"evaluation": "public"}


class Task(lightning.LightningModule):
    def __init__(self, optimizer=torch.optim.Adam, scheduler=False):
        super().__init__()
        self.net, self._optimizer, self._scheduler = network(), optimizer, scheduler
        self.rates = []

    def training_step(self, batch):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def on_train_batch_end(self, *_):
        self.rates.append(self.optimizers().param_groups[0]["lr"])

    def configure_optimizers(self):
        made = self._optimizer(self.parameters(), lr=0.05)
        if not self._scheduler:
            return made
        plan = torch.optim.lr_scheduler.ExponentialLR(made, 0.9)
        return {"optimizer": made, "lr_scheduler": {"scheduler": plan, "interval": "step"}}


class Validated(Task):
    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))


class Noted(lightning.loggers.logger.DummyLogger if hasattr(lightning.loggers.logger, "DummyLogger") else object):
    """A logger that keeps what it is given."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def log_metrics(self, metrics, step=None):
        self.lines.append(dict(metrics))

    @property
    def names(self):
        return {name for line in self.lines for name in line}


def loader(batch=10, records=None):
    return DataLoader(data() if records is None else records, batch)


def fit(folder, task=None, privacy=None, batches=None, val=None, callbacks=(), path=None, **options):
    callback, noted = PrivateTraining(**(PRIVATE | (privacy or {}))), Noted()
    given = {"max_epochs": 2, "log_every_n_steps": 1, "enable_checkpointing": False} | options
    trainer = lightning.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback, *callbacks],
        **({"logger": noted} | given),
    )
    task = Task() if task is None else task
    trainer.fit(task, loader() if batches is None else batches, val, ckpt_path=path)
    return task, callback, noted, trainer


# --- the run ------------------------------------------------------------------------------------------------------


def test_a_module_is_trained_to_the_last_step_of_its_plan(tmp_path):
    task, callback, noted, trainer = fit(tmp_path, privacy={"noise_multiplier": None, "epsilon": 4.0, "delta": 1e-3})
    assert (trainer.global_step, callback.privacy.steps, callback.privacy.remaining_steps) == (12, 12, 0)
    assert not torch.equal(weights(task), weights(network()))
    assert noted.lines[-1]["epsilon"] == pytest.approx(callback.privacy.epsilon(1e-3))
    assert noted.names == {"epsilon", "epoch"}
    assert "log" not in vars(task)


@pytest.mark.parametrize(
    "asked", [{"max_steps": 5}, {"max_steps": 5, "max_epochs": 40}, {"max_steps": 50, "max_epochs": 2}]
)
def test_the_plan_is_as_long_as_the_trainer_s_own(tmp_path, asked):
    _, callback, _, trainer = fit(tmp_path, **({"max_epochs": None} | asked))
    assert (
        callback.privacy.plan.steps
        == trainer.global_step
        == min(asked["max_steps"], 6 * (asked.get("max_epochs") or 9))
    )


def test_a_mistake_in_the_training_step_is_met_before_the_charge(tmp_path):
    class Wrong(Task):
        def training_step(self, batch):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1], weight=torch.ones(3))

    book = dp.Ledger("sqlite://").open("people", epsilon=100.0, delta=1e-2)
    with pytest.raises(ValueError, match=r"two made-up records.*weight tensor"):
        fit(tmp_path, Wrong(), {"book": book})
    assert book.spent().epsilon == 0


def test_accumulation_is_pieces_of_one_batch_and_no_counter_follows_them(tmp_path):
    exact = {"noise_multiplier": 1e-9}
    whole, _, _, first = fit(tmp_path, Task(torch.optim.SGD, True), exact)
    pieces, callback, _, other = fit(tmp_path, Task(torch.optim.SGD, True), exact, loader(2), accumulate_grad_batches=5)
    torch.testing.assert_close(weights(whole), weights(pieces), rtol=1e-4, atol=1e-5)
    assert whole.rates == pieces.rates
    assert len(set(whole.rates)) == 12
    assert callback.privacy.plan.sampler.batch_size == 10
    counted = [t.fit_loop.epoch_loop.automatic_optimization.optim_progress.state_dict() for t in (first, other)]
    assert counted[0] == counted[1]
    assert first.global_step == other.global_step


def test_mixed_precision_in_bfloat16(tmp_path):
    exact = {"noise_multiplier": 1e-9}
    plain, *_ = fit(tmp_path, Task(torch.optim.SGD), exact)
    half, *_ = fit(tmp_path, Task(torch.optim.SGD), exact, precision="bf16-mixed")
    torch.testing.assert_close(weights(plain), weights(half), rtol=0.05, atol=0.02)
    assert not torch.equal(weights(plain), weights(half))


def test_a_book_is_charged_before_the_first_record(tmp_path):
    class Unread(TensorDataset):
        def __getitem__(self, i):
            raise AssertionError("data was read")

    book = dp.Ledger("sqlite://").open("people", epsilon=1.0, delta=1e-2)
    asked = {"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-3, "book": book}
    with pytest.raises(dp.BudgetExceeded):
        fit(tmp_path, privacy=asked, batches=loader(records=Unread(*data().tensors)))
    assert book.spent().epsilon == 0
    fit(tmp_path, privacy=asked | {"epsilon": 0.5})
    assert book.spent().entries == 1


# --- what is seen -------------------------------------------------------------------------------------------------


def test_what_is_made_of_training_records_is_for_local_eyes_only(tmp_path, caplog):
    *_, noted, trainer = fit(tmp_path)
    assert not [name for name in noted.names | set(trainer.callback_metrics) if "loss" in name]
    assert "local=True" in caplog.text
    *_, noted, _ = fit(tmp_path, privacy={"local": True})
    assert "local/train_loss" in noted.names
    assert "train_loss" not in noted.names


def test_what_other_callbacks_log_of_training_is_dropped_too(tmp_path):
    class Other(lightning.Callback):
        def on_train_batch_end(self, trainer, module, outputs, *_):
            self.log("their_loss", outputs["loss"])
            self.log_dict({"in_dict": outputs["loss"]})

    *_, noted, _ = fit(tmp_path, callbacks=[Other()], max_steps=2)
    assert noted.names <= {"epoch"}
    *_, noted, _ = fit(tmp_path, privacy={"local": True}, callbacks=[Other()], max_steps=2)
    assert {"local/their_loss", "local/in_dict"} <= noted.names


def test_what_is_not_private_may_be_seen_but_not_acted_on(tmp_path):
    with pytest.raises(ValueError, match=r"EarlyStopping follows 'local/train_loss'"):
        fit(tmp_path, privacy={"local": True} | PUBLIC, callbacks=[EarlyStopping("local/train_loss")])


@pytest.mark.slow(sibling="test_a_module_is_trained_to_the_last_step_of_its_plan")
def test_epsilon_is_a_metric_like_any_other(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    mlflow = pytest.importorskip("mlflow")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    board = lightning.loggers.TensorBoardLogger(tmp_path)
    flow = lightning.loggers.MLFlowLogger(tracking_uri=(tmp_path / "flow").as_uri())
    asked = {"noise_multiplier": None, "epsilon": 4.0, "delta": 1e-3}
    _, callback, *_ = fit(tmp_path, privacy=asked, logger=[board, flow], max_steps=3)
    seen = EventAccumulator(board.log_dir)
    seen.Reload()
    assert seen.Scalars("epsilon")[-1].value == pytest.approx(callback.privacy.epsilon(1e-3))
    assert not [name for name in seen.Tags()["scalars"] if "loss" in name]
    run = mlflow.MlflowClient((tmp_path / "flow").as_uri()).get_run(flow.run_id)
    assert run.data.metrics["epsilon"] == pytest.approx(callback.privacy.epsilon(1e-3))


def test_validation_early_stopping_and_the_best_checkpoint_need_public_data(tmp_path):
    held = loader(records=data(20, seed=3))
    line = r'PrivateTraining\(\.\.\., evaluation="public"\)'
    with pytest.raises(ValueError, match=f"Validation looks at data.*{line}"):
        fit(tmp_path, Validated(), val=held)
    for decides in (EarlyStopping("train_loss"), ModelCheckpoint(tmp_path, monitor="train_loss")):
        with pytest.raises(ValueError, match=f"follows 'train_loss'.*{line}"):
            fit(tmp_path, callbacks=[decides], enable_checkpointing=isinstance(decides, ModelCheckpoint))
    stop, best = EarlyStopping("val_loss", patience=1, min_delta=100.0), ModelCheckpoint(tmp_path, monitor="val_loss")
    _, callback, noted, trainer = fit(
        tmp_path,
        Validated(),
        PUBLIC,
        val=held,
        callbacks=[stop, best],
        max_epochs=9,
        enable_checkpointing=True,
    )
    assert trainer.global_step == callback.privacy.steps == 12 < callback.privacy.plan.steps
    assert "val_loss" in noted.names
    assert best.best_model_path


def test_validation_outside_a_fit_needs_public_data_too(tmp_path):
    trainer = lightning.Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        callbacks=[PrivateTraining(**PRIVATE)],
    )
    with pytest.raises(ValueError, match="Validation looks at data"):
        trainer.validate(Validated(), loader())


# --- checkpoints --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["poisson", "balls-in-bins"])
@pytest.mark.parametrize("at", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_a_run_resumed_is_the_run_that_went_through(tmp_path, sampler, at):
    saves = ModelCheckpoint(tmp_path, every_n_train_steps=at, save_top_k=-1, filename="{step}")
    through, *_ = fit(tmp_path, privacy={"sampler": sampler}, callbacks=[saves], enable_checkpointing=True)
    path = tmp_path / f"step={at}.ckpt"
    resumed, callback, _, trainer = fit(tmp_path, privacy={"sampler": sampler}, path=path)
    assert trainer.global_step == callback.privacy.steps == 12
    torch.testing.assert_close(weights(resumed), weights(through))
    book = dp.Ledger("sqlite://").open("people", epsilon=100.0, delta=1e-2)
    with pytest.raises(ValueError, match="another plan"):
        fit(tmp_path, privacy={"sampler": sampler, "noise_multiplier": 3.0, "book": book}, path=path)
    assert book.spent().epsilon == 0


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"gradient_clip_val": 1.0}, "max_grad_norm"),
        ({"task": "compiled"}, "compile the network that it holds"),
        ({"callbacks": [GradientAccumulationScheduler({0: 1, 1: 2})]}, "one batch size"),
    ],
)
def test_settings_without_a_private_meaning_are_refused_by_name(tmp_path, options, told):
    if "task" in options:
        options = {"task": torch.compile(Task(), backend="eager")}
    with pytest.raises(ValueError, match=f"The trainer has .*{told}"):
        fit(tmp_path, **options)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (lambda: LearningRateFinder(num_training_steps=2), "trains without noise"),
        (lambda: ThroughputMonitor(len), "counts records"),
    ],
)
def test_callbacks_that_look_at_batches_by_themselves_are_refused_before_they_do(tmp_path, other, told):
    class Unread(Task):
        def training_step(self, batch):
            raise AssertionError

    with pytest.raises(ValueError, match=f"The trainer has .*{told}"):
        fit(tmp_path, Unread(), callbacks=[other()])


def test_loops_by_hand_and_second_fits_are_refused(tmp_path):
    class ByHand(Task):
        automatic_optimization = False

    with pytest.raises(ValueError, match="manual optimisation"):
        fit(tmp_path, ByHand())
    task, _, _, trainer = fit(tmp_path, max_steps=1)
    with pytest.raises(ValueError, match="a second fit"):
        trainer.fit(task, loader())
    with pytest.raises(PrivateTrainingError, match="before fit"):
        PrivateTraining(**PRIVATE).privacy.steps
    with pytest.raises(ValueError, match="epochs is given"):
        PrivateTraining(**PRIVATE, epochs=3)


def test_loaders_without_an_account_are_refused(tmp_path):
    weighted = torch.utils.data.WeightedRandomSampler([1.0] * 60, 60)
    for odd in (
        DataLoader(data(), 10, sampler=weighted),
        DataLoader(data(), batch_sampler=torch.utils.data.BatchSampler(weighted, 10, False)),
    ):
        for times in (1, 2):
            with pytest.raises(ValueError, match="the sampler decides what privacy costs"):
                fit(tmp_path, batches=odd, accumulate_grad_batches=times)
    with pytest.raises(ValueError, match="one torch DataLoader"):
        fit(tmp_path, batches=[loader(), loader()])
