"""The loops people have: each runs as it is."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import discreet as dp
from discreet.training import Clipping, MixedRecords, Speed, make_private
from tests.training.loops import data, network, private, run, weights
from tests.training.oracle import agree, close, naive, ours


class Dictionaries(Dataset):
    """Records that are dictionaries."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        torch.manual_seed(i)
        return {"input_ids": torch.randint(0, 7, (5,)), "labels": torch.tensor(i % 2)}


class Classifier(nn.Module):
    """Takes keywords and returns a dictionary with its loss, as pretrained models do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.encoder = (
            nn.Embedding(7, 8),
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True),
        )
        self.head = nn.Linear(8, 2)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.encoder(self.embed(input_ids)).mean(1))
        return {"loss": None if labels is None else F.cross_entropy(logits, labels), "logits": logits}


def test_a_loop_over_dictionaries_with_the_loss_inside_the_model():
    model = Classifier()
    optimizer = torch.optim.AdamW(
        [
            {"params": model.encoder.parameters(), "lr": 1e-3},
            {"params": [*model.embed.parameters(), *model.head.parameters()]},
        ],
        lr=1e-2,
    )
    model, optimizer, loader = make_private(
        model, optimizer, DataLoader(Dictionaries(), 8), epochs=2, noise_multiplier=1.0, loss_reduction="mean", rng=1
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    model.train()
    for _ in range(2):
        for batch in loader:
            model(**batch)["loss"].backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    assert optimizer.privacy.remaining_steps == 0


def test_a_trainer_that_owns_the_loop():
    """A module with training_step and configure_optimizers, and a trainer that steps with closures and clips what it
    sees."""

    class Task(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def training_step(self, batch):
            x, y = batch
            return F.cross_entropy(self.net(x), y)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    task = Task()
    task, optimizer, loader = make_private(
        task,
        task.configure_optimizers(),
        DataLoader(data(), 10),
        epochs=2,
        noise_multiplier=1.0,
        loss_reduction="mean",
        rng=1,
    )

    def closure(batch):
        loss = task.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(task.parameters(), 1.0)
        return loss

    def fit():
        for _ in range(2):
            for batch in loader:
                optimizer.step(closure=lambda batch=batch: closure(batch))

    with pytest.warns(UserWarning, match="clip_grad_norm_"):
        fit()
    assert optimizer.privacy.remaining_steps == 0


class LowRank(nn.Module):
    """A frozen layer and a trained correction of low rank: beside it, or merged into its weight."""

    def __init__(self, layer, rank, merged):
        super().__init__()
        self.layer, self.merged = layer.requires_grad_(False), merged
        self.down = nn.Parameter(torch.randn(rank, layer.in_features))
        self.up = nn.Parameter(torch.randn(layer.out_features, rank))

    def forward(self, x):
        if self.merged:
            return F.linear(x, self.layer.weight + self.up @ self.down, self.layer.bias)
        return self.layer(x) + F.linear(F.linear(x, self.down), self.up)


@pytest.mark.parametrize("merged", [False, True])
def test_frozen_layers_with_adapters_are_exact_and_stay_frozen(merged):
    torch.manual_seed(0)
    model = nn.Sequential(LowRank(nn.Linear(4, 8), 2, merged), nn.Tanh(), LowRank(nn.Linear(8, 2), 2, merged))
    agree(copy.deepcopy(model), (torch.randn(5, 4),), lambda m, x: m(x).square().sum())
    frozen = model[0].layer.weight.clone()
    trained = [p for p in model.parameters() if p.requires_grad]
    model, optimizer, loader = make_private(
        model,
        torch.optim.Adam(trained),
        DataLoader(data(), 10),
        epochs=1,
        noise_multiplier=1.0,
        loss_reduction="mean",
        rng=1,
    )
    run(model, optimizer, loader, 1)
    assert torch.equal(frozen, model[0].layer.weight)


def test_the_whole_optimizer_may_hold_frozen_parameters():
    model = network()
    model[0].requires_grad_(False)
    run(*private(model), 1)


def test_mixed_precision_keeps_the_clip_bound():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), torch.randn(50, 64)

    def loss(m, a):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m(a).float().square().sum()

    one, other = (ours(model, (part,), loss, Clipping(), 0.01) for part in (x, x[1:]))
    assert 0.0099 < float((one - other).norm()) <= 0.01 * (1 + 2**-10)
    torch.testing.assert_close(one.double(), naive(model, (x,), loss, Clipping(), 0.01), rtol=0.05, atol=1e-3)
    model, optimizer, loader = private()
    for a, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = F.cross_entropy(model(a), y)
        out.backward()
        optimizer.step()
    assert optimizer.privacy.steps == 6


class Casting(nn.Module):
    """Half precision inside, single outside: as accelerate prepares a model."""

    def __init__(self, inner, mixes):
        super().__init__()
        self.inner, self.mixes = inner, mixes

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.inner(x)
        return (out - 0.2 * out.mean(0)).float() if self.mixes else out.float()


@pytest.mark.parametrize("mixes", [False, True])
def test_half_precision_inside_the_model_is_seen_where_its_outputs_are_single(mixes):
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Linear(4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 3))
    model, optimizer, loader = private(Casting(wide, mixes))
    with pytest.raises(MixedRecords) if mixes else nullcontext():
        run(model, optimizer, loader)
    assert mixes or optimizer.privacy.steps == 12


class Wrapper(nn.Module):
    """As compilers wrap a module: another module in front, with the same parameters."""

    def __init__(self, inner):
        super().__init__()
        self._orig_mod = inner

    def forward(self, *args):
        return self._orig_mod(*args)


def test_wrapped_models_are_exact():
    torch.testing.assert_close(weights(run(*private(Wrapper(network())), 1)), weights(run(*private(), 1)))


@pytest.mark.slow(sibling="test_wrapped_models_are_exact")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("part", [False, True], ids=["whole", "a part"])
def test_compiled_models_are_exact_and_compiled_for_evaluation_alone(part):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    model = network()
    if part:
        model[0] = torch.compile(model[0], backend=backend)
    else:
        model = torch.compile(model, backend=backend)
    trained = run(*private(model), 1)
    assert not graphs  # a private pass runs as it was written
    torch.testing.assert_close(weights(trained), weights(run(*private(), 1)))
    with torch.no_grad():
        trained(data().tensors[0])
    assert graphs


def test_two_private_optimizers_of_one_game():
    """Generator and critic, each with a loader, a plan and an account of its own."""
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
    encoder = nn.Linear(4, 4)
    critic, ours_, reals = private(critic, optimizer=torch.optim.Adam)
    encoder, theirs, more = private(encoder, optimizer=torch.optim.Adam, noise_multiplier=2.0)
    for (x, _), (z, _) in zip(reals, more, strict=True):
        ours_.zero_grad()
        F.softplus(-critic(x)).mean().backward()
        ours_.step()
        theirs.zero_grad()
        F.softplus(-critic(encoder(z))).mean().backward()
        theirs.step()
    assert (ours_.privacy.steps, theirs.privacy.steps) == (6, 6)
    assert ours_.privacy.epsilon(1e-5) > theirs.privacy.epsilon(1e-5)


def test_large_batches_in_pieces_are_gradient_accumulation():
    whole, pieces = (
        private(noise_multiplier=1e-9),
        private(noise_multiplier=1e-9, speed=Speed(max_physical_batch_size=4)),
    )
    torch.testing.assert_close(weights(run(*whole, 1)), weights(run(*pieces, 1)), rtol=1e-5, atol=1e-6)


def test_empty_batches_of_dictionaries_are_placeholders():
    model = Classifier()
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(Dictionaries(), 1),
        epochs=1,
        noise_multiplier=1.0,
        loss_reduction="mean",
        rng=3,
    )
    empty = 0
    for batch in loader:
        empty += loader.run.batch.weights is not None
        assert batch["input_ids"].shape[0] >= 1
        optimizer.zero_grad()
        model(**batch)["loss"].backward()
        optimizer.step()
    assert empty > 3
    assert optimizer.privacy.steps == 40


def test_epsilon_comes_with_its_adjacency():
    _, optimizer, _ = private(sampler="shuffled")
    assert "replace" in repr(optimizer.privacy)
    _, optimizer, _ = private()
    assert "add-remove" in repr(optimizer.privacy)


def test_a_loss_of_one_column_and_of_several_through_the_loop():
    """Shapes [B, 1] and [B, k], in the user's own loop: the sum is that of a loop over records."""
    for columns in (1, 3):
        torch.manual_seed(0)
        model = nn.Linear(4, columns)
        twin = copy.deepcopy(model).double()
        records = TensorDataset(10 * torch.randn(60, 4), torch.randn(60, columns))
        model, optimizer, loader = private(model, records, noise_multiplier=1e-9, loss_reduction="none")
        for x, y in loader:
            wanted = naive(
                twin, (x.double(), y.double()), lambda m, a, b: F.mse_loss(m(a), b, reduction="sum"), Clipping(), 1.0
            )
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y, reduction="none")
            loss.backward(torch.ones_like(loss))
            optimizer.step()
            close(torch.cat([p.grad.reshape(-1) for p in model.parameters()]), wanted, torch.float32)
            break


def test_a_book_is_charged_before_the_first_record_is_read():
    class Unread(TensorDataset):
        def __getitem__(self, i):
            raise AssertionError("data was read")

    book = dp.Ledger("sqlite://").open("people", epsilon=1.0, delta=1e-5)
    with pytest.raises(dp.BudgetExceeded):
        private(records=Unread(*data().tensors), book=book, noise_multiplier=None, epsilon=2.0, delta=1e-6)


@pytest.mark.parametrize("frozen", [False, True])
def test_dropout_inside_attention_and_recurrent_networks_is_no_mixing(frozen):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
            self.memory, self.head = nn.LSTM(4, 4, num_layers=2, dropout=0.5, batch_first=True), nn.Linear(4, 2)
            for p in (*self.layer.parameters(), *self.memory.parameters()) if frozen else ():
                p.requires_grad_(False)

        def forward(self, x):
            return self.head(self.memory(self.layer(x.unsqueeze(1).expand(-1, 3, -1)))[0].mean(1))

    run(*private(Net()), 1)
