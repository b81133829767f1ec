"""Hugging Face's own Trainer, private: on tiny models of random weights."""

from __future__ import annotations

import json
import math
from types import MappingProxyType, SimpleNamespace

import pytest
import torch
from torch.utils.data import Dataset

import discreet as dp
from discreet.auditing import GradientCanaries
from discreet.training import PrivateTrainingError

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from discreet.training.integrations.huggingface import (  # noqa: E402
    PrivateTrainer,
    causal_lm_loss,
    token_loss,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")

WORDS, LENGTH, RECORDS = 24, 6, 40
PRIVATE = {"noise_multiplier": 1.0, "rng": 1}


class Texts(Dataset):
    """Records of different lengths, padded; their reading is counted."""

    def __init__(self, records=RECORDS, seed=0):
        chance = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, WORDS, (records, LENGTH), generator=chance)
        lengths = torch.randint(2, LENGTH + 1, (records, 1), generator=chance)
        self.mask = torch.arange(LENGTH) < lengths
        self.read = 0

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        self.read += 1
        return {
            "input_ids": self.ids[i],
            "attention_mask": self.mask[i].long(),
            "labels": self.ids[i].masked_fill(~self.mask[i], -100),
        }


class Classes(Texts):
    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": self.mask[i].long(), "labels": int(self.ids[i][0]) % 2}


def gpt2(seed=0, **more):
    torch.manual_seed(seed)
    still = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0, **still, **more
    )
    return transformers.GPT2LMHeadModel(config)


def still_bert():
    """Without dropout."""
    return bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def bert(seed=0, **more):
    torch.manual_seed(seed)
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=WORDS,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=8,
            **more,
        )
    )


def arguments(folder, **more):
    given = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 10,
        "num_train_epochs": 2,
        "learning_rate": 0.01,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
    }
    return transformers.TrainingArguments(**(given | more))


def trainer(folder, model=None, privacy=None, data=None, loss=causal_lm_loss, options=None, **arguments_):
    return PrivateTrainer(
        gpt2() if model is None else model,
        arguments(folder, **arguments_),
        train_dataset=Texts() if data is None else data,
        compute_loss_func=loss,
        privacy=PRIVATE | (privacy or {}),
        **(options or {}),
    )


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def logged(found):
    return {name for line in found.state.log_history for name in line}


# --- losses -------------------------------------------------------------------------------------------------------


def test_each_record_has_its_own_mean_over_tokens():
    torch.manual_seed(0)
    scores, labels = torch.randn(3, 4, 5), torch.tensor([[1, 2, 3, 4], [0, -100, -100, -100], [1, 9, -100, 2]])
    wanted = []
    for row, words in zip(scores, labels, strict=True):
        kept = [(s, w) for s, w in zip(row, words, strict=True) if 0 <= w < 5]
        wanted.append(sum(torch.nn.functional.cross_entropy(s, w) for s, w in kept) / len(kept))
    torch.testing.assert_close(token_loss((scores,), labels), torch.stack(wanted).mean())
    torch.testing.assert_close(causal_lm_loss({"logits": scores}, labels), token_loss((scores[:, :-1],), labels[:, 1:]))


def test_a_mean_over_the_tokens_of_a_batch_is_refused_before_anything_is_read(tmp_path):
    data = Texts()
    with pytest.raises(ValueError, match=r"compute_loss_func=causal_lm_loss"):
        trainer(tmp_path, data=data, loss=None)
    with pytest.raises(ValueError, match=r"mean over the tokens"):
        trainer(tmp_path, bert(), data=Classes(), loss=None, label_smoothing_factor=0.1)
    assert not data.read


# --- the run ------------------------------------------------------------------------------------------------------


def test_a_language_model_is_trained_to_the_last_step_of_its_plan(tmp_path):
    found = trainer(tmp_path, privacy={"noise_multiplier": None, "epsilon": 4.0, "delta": 1e-3})
    before = weights(found.model).clone()
    answer = found.train()
    assert (answer.global_step, found.privacy.steps, found.privacy.remaining_steps) == (8, 8, 0)
    assert found.privacy.epsilon(1e-3) <= 4.0
    assert not torch.equal(before, weights(found.model))
    with pytest.raises(ValueError, match="a second run is a new plan"):
        found.train()


@pytest.mark.parametrize(("asked", "steps"), [({"max_steps": 5}, 5), ({"num_train_epochs": 1.3}, 6)])
def test_the_plan_is_as_long_as_the_trainer_s_own(tmp_path, asked, steps):
    found = trainer(tmp_path, **asked)
    assert found.train().global_step == steps == found.privacy.plan.steps


def test_a_classifier_needs_no_loss_of_its_own_and_counts_tokens_nowhere(tmp_path):
    found = trainer(tmp_path, bert(), data=Classes(), loss=None, max_steps=2)
    found.train()
    assert found.state.total_flos == 0
    assert found.state.num_input_tokens_seen == 0


def test_accumulation_is_pieces_of_one_batch_and_changes_nothing_else(tmp_path):
    """Counters, schedules and logs are those of whole batches, and so are the weights."""
    whole = trainer(tmp_path, privacy={"noise_multiplier": 1e-9}, learning_rate=0.1, optim="sgd")
    pieces = trainer(
        tmp_path,
        privacy={"noise_multiplier": 1e-9},
        per_device_train_batch_size=2,
        gradient_accumulation_steps=5,
        learning_rate=0.1,
        optim="sgd",
    )
    met = []
    add = pieces._backward
    pieces._backward = lambda piece: (met.append(len(piece["input_ids"])), add(piece))
    assert whole.train().global_step == pieces.train().global_step == 8
    assert len(met) > 8
    assert max(met) == 2
    torch.testing.assert_close(weights(whole.model), weights(pieces.model), rtol=1e-3, atol=1e-4)
    rates = [[line.get("learning_rate") for line in t.state.log_history] for t in (whole, pieces)]
    assert rates[0] == rates[1]
    assert len(set(rates[0])) > 4


def test_a_classifier_s_own_loss_is_accumulated(tmp_path):
    """Pieces of the first batch are met before the Trainer's loop has set what its step divides the loss by."""
    facts = {"privacy": {"noise_multiplier": 1e-9}, "loss": None, "data": Classes(), "optim": "sgd", "max_steps": 3}
    facts |= {"learning_rate": 0.1}
    whole = trainer(tmp_path, still_bert(), per_device_train_batch_size=15, **facts)
    pieces = trainer(tmp_path, still_bert(), per_device_train_batch_size=5, gradient_accumulation_steps=3, **facts)
    met = []
    add = pieces._backward
    pieces._backward = lambda piece: (met.append(pieces.state.global_step), add(piece))
    assert whole.train().global_step == pieces.train().global_step == 3
    assert 0 in met
    torch.testing.assert_close(weights(whole.model), weights(pieces.model), rtol=1e-3, atol=1e-4)


class Listed(Classes):
    """A table of Hugging Face's says of its columns what they are."""

    features = MappingProxyType(
        {
            "input_ids": SimpleNamespace(feature=SimpleNamespace(dtype="int32")),
            "attention_mask": SimpleNamespace(feature=SimpleNamespace(dtype="int8")),
            "labels": SimpleNamespace(dtype="int64"),
        }
    )


PLACEHOLDER = {"input_ids": [1, 2], "attention_mask": [1, 1], "labels": 0}


@pytest.mark.parametrize(("records", "said"), [(Listed(), {}), (Classes(), {"placeholder": PLACEHOLDER})])
def test_a_mistake_in_the_trainer_s_step_is_met_before_the_charge(tmp_path, records, said):
    """On two made-up records, whose error is shown; none of the others is read."""

    def weighted(outputs, labels, num_items_in_batch=None):
        return torch.nn.functional.cross_entropy(outputs["logits"], labels, weight=torch.ones(3))

    book = dp.Ledger("sqlite://").open("people", epsilon=100.0, delta=1e-2)
    wrong = trainer(tmp_path, bert(), privacy={"book": book} | said, data=records, loss=weighted)
    with pytest.raises(ValueError, match=r"two made-up records.*weight tensor"):
        wrong.train()
    assert book.spent().epsilon == 0
    assert not records.read


def test_accumulation_is_said_in_one_place(tmp_path):
    found = trainer(
        tmp_path, privacy={"speed": dp.training.Speed(max_physical_batch_size=2)}, gradient_accumulation_steps=2
    )
    with pytest.raises(ValueError, match="one place"):
        found.train()
    for name in ("epochs", "max_grad_norm"):
        with pytest.raises(ValueError, match=f"{name} is given, but is said by"):
            trainer(tmp_path, privacy={name: 1})


def test_the_trainer_s_clip_norm_is_each_record_s(tmp_path):
    found = trainer(tmp_path, max_grad_norm=0.25, max_steps=1)
    found.train()
    assert found.privacy.clip_norm == 0.25
    own = dp.training.Clipping(max_grad_norm=0.5)
    found = trainer(tmp_path, privacy={"clipping": own}, max_steps=1)
    found.train()
    assert found.privacy.clip_norm == 0.5


@pytest.mark.parametrize(
    "setting",
    ["bf16", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gradient_checkpointing", "torch_compile"))],
)
def test_settings_of_precision_memory_and_speed_change_nothing_but_that(tmp_path, setting):
    plain = trainer(tmp_path, privacy={"noise_multiplier": 1e-9}, max_steps=3, learning_rate=0.1, optim="sgd")
    other = trainer(
        tmp_path, privacy={"noise_multiplier": 1e-9}, max_steps=3, learning_rate=0.1, optim="sgd", **{setting: True}
    )
    plain.train()
    other.train()
    close = 0.02 if setting == "bf16" else 1e-5
    torch.testing.assert_close(weights(plain.model), weights(other.model), rtol=close, atol=close)
    if setting == "bf16":
        assert not torch.allclose(weights(plain.model), weights(other.model), rtol=1e-5, atol=1e-6)


@pytest.mark.slow(sibling="test_a_language_model_is_trained_to_the_last_step_of_its_plan")
def test_an_adapter_is_trained_and_nothing_else(tmp_path):
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(
        gpt2(),
        peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type=peft.TaskType.CAUSAL_LM),
    )
    frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    trained = {name: p.clone() for name, p in model.named_parameters() if p.requires_grad}
    found = trainer(tmp_path, model, max_steps=3)
    found.train()
    now = dict(model.named_parameters())
    assert all(torch.equal(now[name], p) for name, p in frozen.items())
    assert not any(torch.equal(now[name], p) for name, p in trained.items())


# --- charge -------------------------------------------------------------------------------------------------------


def test_a_book_is_charged_before_the_first_record_and_after_everything_public(tmp_path):
    data, book = Texts(), dp.Ledger("sqlite://").open("people", epsilon=1.0, delta=1e-2)
    found = trainer(
        tmp_path, data=data, privacy={"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-3, "book": book}
    )
    with pytest.raises(dp.BudgetExceeded):
        found.train()
    assert not data.read
    book = dp.Ledger("sqlite://").open("people", epsilon=3.0, delta=1e-2)
    wrong = trainer(
        tmp_path,
        data=data,
        privacy={"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-3, "book": book},
        lr_scheduler_type="polynomial",
        lr_scheduler_kwargs={"no_such_option": 1},
    )
    with pytest.raises(TypeError):
        wrong.train()
    assert not data.read
    assert book.spent().epsilon == 0
    found = trainer(
        tmp_path,
        data=data,
        privacy={"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-3, "book": book, "label": "words"},
        max_steps=1,
    )
    found.train()
    assert book.spent().entries == 1


def test_an_error_on_private_records_says_nothing_of_them(tmp_path):
    data = Classes()
    data.ids[3] = 17_539
    found = trainer(tmp_path, bert(), data=data, loss=None, num_train_epochs=5)
    with pytest.raises(PrivateTrainingError, match="withheld") as told:
        found.train()
    assert "17539" not in str(told.value)
    assert told.value.__context__ is None


# --- what is seen -------------------------------------------------------------------------------------------------


def test_an_error_of_reading_records_says_nothing_of_them(tmp_path):
    class Ragged(Texts):
        def __getitem__(self, i):
            found = super().__getitem__(i)
            return {name: value[: 5 if i == 17 else LENGTH] for name, value in found.items()}

    with pytest.raises(PrivateTrainingError, match="The message is withheld") as told:
        trainer(tmp_path, data=Ragged(), privacy={"rng": None}, num_train_epochs=20).train()
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def test_what_is_made_of_training_records_is_not_logged_and_epsilon_is(tmp_path):
    found = trainer(tmp_path, privacy={"noise_multiplier": None, "epsilon": 4.0, "delta": 1e-3}, save_strategy="epoch")
    answer = found.train()
    assert math.isnan(answer.training_loss)
    allowed = {"learning_rate", "epoch", "step", "epsilon", "train_runtime", "train_samples_per_second"}
    assert logged(found) == allowed | {"train_steps_per_second"}
    assert set(answer.metrics) <= logged(found)
    state = json.loads((tmp_path / "checkpoint-8" / "trainer_state.json").read_text())
    assert "loss" not in {name for line in state["log_history"] for name in line}
    spent = [line["epsilon"] for line in found.state.log_history]
    assert spent == sorted(spent)
    assert spent[-1] == found.privacy.epsilon(1e-3)


def test_a_name_makes_nothing_public(tmp_path):
    found = trainer(tmp_path)
    found.log({"eval_loss": 1.0, "reward": 2.0, "learning_rate": 3.0})
    assert logged(found) <= {"learning_rate", "step", "epoch"}
    assert "learning_rate" in logged(found)


def test_figures_for_local_eyes_are_named_so(tmp_path):
    found = trainer(tmp_path, privacy={"local": True}, max_steps=2, include_num_input_tokens_seen="all")
    answer = found.train()
    assert {"local/loss", "local/train_loss", "local/total_flos"} <= logged(found)
    assert "loss" not in logged(found)
    assert answer.training_loss > 0


@pytest.mark.slow(sibling="test_what_is_made_of_training_records_is_not_logged_and_epsilon_is")
def test_epsilon_is_a_metric_like_any_other(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    mlflow = pytest.importorskip("mlflow")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    mlflow.set_tracking_uri((tmp_path / "flow").as_uri())  # a logger of another test may have set its own before
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "private")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    found = trainer(
        tmp_path,
        privacy={"noise_multiplier": None, "epsilon": 4.0, "delta": 1e-3},
        report_to=["tensorboard", "mlflow"],
        max_steps=3,
    )
    found.train()
    board = EventAccumulator(str(tmp_path / "board"))
    board.Reload()
    names = board.Tags()["scalars"]
    assert "train/epsilon" in names
    assert not [name for name in names if "loss" in name or "norm" in name]
    assert board.Scalars("train/epsilon")[-1].value == pytest.approx(found.privacy.epsilon(1e-3))
    [run] = mlflow.search_runs(search_all_experiments=True, output_format="list")
    assert run.data.metrics["epsilon"] == pytest.approx(found.privacy.epsilon(1e-3))
    assert not [name for name in run.data.metrics if "loss" in name or "norm" in name]


@pytest.mark.parametrize("asked", [{"eval_strategy": "steps"}, {"eval_dataset": True}])
def test_evaluation_needs_a_word_that_its_data_are_public(tmp_path, asked):
    options = {"eval_dataset": Texts(8, seed=1)}
    arguments_ = {key: value for key, value in asked.items() if key != "eval_dataset"}
    with pytest.raises(ValueError, match=r'neither declared public.*privacy=\{..., "evaluation": "public"\}'):
        trainer(tmp_path, options=options, **arguments_)
    found = trainer(tmp_path, max_steps=1)
    with pytest.raises(ValueError, match="Evaluation looks at data"):
        found.evaluate(Texts(8, seed=1))
    with pytest.raises(ValueError, match="Prediction looks at data"):
        found.predict(Texts(8, seed=1))


def test_public_data_may_stop_a_run_and_choose_the_best_checkpoint(tmp_path):
    stop = transformers.EarlyStoppingCallback(early_stopping_patience=1, early_stopping_threshold=100.0)
    found = trainer(
        tmp_path,
        privacy={"evaluation": "public"},
        options={"eval_dataset": Texts(8, seed=1), "callbacks": [stop]},
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="steps",
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
    )
    assert found.train().global_step == 2 < found.privacy.plan.steps
    assert found.state.best_model_checkpoint is not None
    assert "eval_loss" in logged(found)
    assert "val_loss" in found.evaluate(metric_key_prefix="val")
    with pytest.raises(ValueError, match="what is protected"):
        found.evaluate(found.train_dataset)
    assert "val_loss" in logged(found)


# --- checkpoints --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["poisson", pytest.param("balls-in-bins", marks=pytest.mark.slow)])
def test_a_run_resumed_in_the_middle_of_an_epoch_is_the_run_that_went_through(tmp_path, sampler):
    through = trainer(tmp_path / "a", privacy={"sampler": sampler}, save_strategy="steps", save_steps=3)
    through.train()
    resumed = trainer(tmp_path / "a", gpt2(seed=5), privacy={"sampler": sampler})
    answer = resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-3"))
    assert (answer.global_step, resumed.privacy.steps) == (8, 8)
    torch.testing.assert_close(weights(resumed.model), weights(through.model))


def test_how_many_numbers_dropout_took_is_in_no_checkpoint(tmp_path):
    for seed, saved in ((None, False), (1, True)):
        found = trainer(tmp_path, privacy={"rng": seed})
        found.get_train_dataloader()
        found._save_rng_state(str(tmp_path))
        assert (tmp_path / "rng_state.pth").exists() == saved


def test_a_checkpoint_of_another_plan_or_of_none_is_refused_before_the_charge(tmp_path):
    trainer(tmp_path / "a", save_strategy="steps", save_steps=2, max_steps=2).train()
    book, data = dp.Ledger("sqlite://").open("people", epsilon=100.0, delta=1e-2), Texts()
    other = trainer(tmp_path / "a", data=data, privacy={"noise_multiplier": 2.0, "book": book})
    with pytest.raises(ValueError, match="another plan"):
        other.train(resume_from_checkpoint=True)
    (tmp_path / "a" / "checkpoint-2" / "privacy.pt").unlink()
    same = trainer(tmp_path / "a", data=data, privacy={"book": book}, max_steps=2)
    with pytest.raises(ValueError, match=r"has no privacy\.pt"):
        same.train(resume_from_checkpoint=True)
    assert book.spent().epsilon == 0
    assert not data.read


@pytest.mark.slow(sibling="test_a_checkpoint_of_another_plan_or_of_none_is_refused_before_the_charge")
def test_what_correlated_noise_remembers_is_kept_apart_from_checkpoints(tmp_path):
    given = {"noise": dp.training.noise.Banded(bands=2), "secrets": tmp_path / "secret"}
    through = trainer(tmp_path / "a", privacy=given, save_strategy="steps", save_steps=3, learning_rate=0.001)
    through.train()
    saved = torch.load(tmp_path / "a" / "checkpoint-3" / "privacy.pt", weights_only=True)
    assert saved["noise"] == {}
    resumed = trainer(tmp_path / "a", gpt2(seed=5), privacy=given, learning_rate=0.001)
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-3"))
    torch.testing.assert_close(weights(resumed.model), weights(through.model))
    without = trainer(tmp_path / "a", privacy={"noise": given["noise"]})
    with pytest.raises(ValueError, match="secret"):
        without.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-3"))


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"auto_find_batch_size": True}, "gradient_accumulation_steps"),
        ({"train_sampling_strategy": "group_by_length"}, "sampler decides"),
        ({"include_num_input_tokens_seen": "all"}, "counts of tokens"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_without_a_private_meaning_are_refused_by_name(tmp_path, setting, told):
    with pytest.raises(ValueError, match=rf"TrainingArguments has {next(iter(setting))}.*{told}"):
        trainer(tmp_path, **setting)


def test_processes_that_do_not_meet_shards_and_scaled_losses_are_refused_by_name(tmp_path, monkeypatch):
    several = arguments(tmp_path)
    monkeypatch.setattr(type(several), "world_size", property(lambda self: 2))
    with pytest.raises(ValueError, match="2 processes or devices, but a private run has 1"):
        PrivateTrainer(gpt2(), several, train_dataset=Texts(), compute_loss_func=causal_lm_loss, privacy=PRIVATE)
    monkeypatch.undo()
    sharded = arguments(tmp_path)
    sharded.fsdp = True
    with pytest.raises(ValueError, match=r"fsdp.*fully_shard"):
        PrivateTrainer(gpt2(), sharded, train_dataset=Texts(), compute_loss_func=causal_lm_loss, privacy=PRIVATE)
    scaled = arguments(tmp_path)
    scaled.fp16 = True
    with pytest.raises(ValueError, match=r"fp16=True.*bf16=True"):
        PrivateTrainer(gpt2(), scaled, train_dataset=Texts(), compute_loss_func=causal_lm_loss, privacy=PRIVATE)


def test_a_search_over_settings_and_wrong_words_are_refused(tmp_path):
    with pytest.raises(PrivateTrainingError, match=r"discreet\.tuning"):
        trainer(tmp_path).hyperparameter_search()
    with pytest.raises(PrivateTrainingError, match="before train"):
        trainer(tmp_path).privacy.steps
    with pytest.raises(ValueError, match="evaluation is 'mine'"):
        trainer(tmp_path, privacy={"evaluation": "mine"})
    with pytest.raises(ValueError, match="local is 'yes'"):
        trainer(tmp_path, privacy={"local": "yes"})


class Draws(Texts):
    """Reading a record draws, as an augmentation does; what was drawn is noted."""

    def __init__(self):
        super().__init__()
        self.drawn = []

    def __getitem__(self, i):
        self.drawn.append(float(torch.rand((), dtype=torch.float64)))
        return super().__getitem__(i)


@pytest.mark.parametrize("seed", [None, 7])
def test_the_seed_of_the_arguments_does_not_decide_what_private_passes_draw(tmp_path, seed):
    """Transformers seeds torch with 42 where nobody says another number."""
    drawn = []
    for _ in range(2):
        data = Draws()
        one = trainer(tmp_path, data=data, privacy={"rng": seed}, max_steps=2)
        one.train()
        drawn.append(set(data.drawn))
    assert min(map(len, drawn)) > 2
    assert bool(drawn[0] & drawn[1]) == (seed is not None)


@pytest.mark.parametrize("resumed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_trainer_with_canaries_says_what_they_show(tmp_path, resumed):
    """At its end, and after a checkpoint, with the canaries it began with; a false alarm has a chance of 1e-6."""
    told = []
    privacy = {"audit": GradientCanaries(100, confidence=1 - 1e-6, report=told.append)}
    found = trainer(tmp_path, privacy=privacy, save_strategy="epoch" if resumed else "no")
    found.train()
    assert [each.steps for each in told] == [found.privacy.plan.steps]
    assert not told[0].violated
    if resumed:
        again = trainer(tmp_path, privacy=privacy, save_strategy="epoch")
        first = min(tmp_path.glob("checkpoint-*"), key=lambda folder: int(folder.name.removeprefix("checkpoint-")))
        again.train(resume_from_checkpoint=str(first))
        assert (again.privacy.observation.inside == found.privacy.observation.inside).all()
        assert told[-1].steps == found.privacy.plan.steps
