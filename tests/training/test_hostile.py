"""Code that would train past the plan, on purpose or by accident: exact, or refused by name; never silently not
private."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet.training import MixedRecords, PrivateTrainingError, Speed, make_private
from discreet.training.gradients.clipping import Clipping
from tests.training.loops import copy_of, data, network, private, run, step, weights
from tests.training.oracle import agree, naive, ours

QUIET = 1e-9  # a noise multiplier that leaves the gradient as it is


def each(loader, act):
    """A loop."""
    for batch in loader:
        act(*batch)


class Two(nn.Module):
    """Two layers and something between them."""

    def __init__(self, between):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.between = nn.Linear(4, 8), nn.Linear(8, 2), between

    def forward(self, x):
        return self.b(self.between(self.a, x).relu())


# --- parameters outside the plan -----------------------------------------------------------------------------------


def test_a_parameter_added_to_the_optimizer_later_is_refused():
    model, optimizer, loader = private()
    scale = nn.Parameter(torch.ones(2))
    optimizer.add_param_group({"params": [scale]})
    for x, y in loader:
        F.cross_entropy(model(x) * scale, y).backward()
        with pytest.raises(PrivateTrainingError, match=r"parameter 0 of group 1, of shape \(2,\)"):
            optimizer.step()
        break
    assert torch.equal(scale, torch.ones(2))


def test_a_parameter_unfrozen_later_is_refused_by_name():
    model = network()
    model[0].requires_grad_(False)
    model, optimizer, loader = private(model)
    model[0].requires_grad_(True)
    with pytest.raises(PrivateTrainingError, match=r"'0\.weight' came or was unfrozen"):
        run(model, optimizer, loader)


def test_a_parameter_put_into_the_model_later_is_refused_by_name():
    model, optimizer, loader = private()
    model.add_module("3", nn.Linear(2, 2))
    with pytest.raises(PrivateTrainingError, match=r"'3\.weight'"):
        run(model, optimizer, loader)


def test_a_parameter_of_the_optimizer_alone_is_refused_by_place():
    model, stranger = network(), nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match=r"parameter 4 of group 0, of shape \(3,\), is not in the model"):
        make_private(
            model,
            torch.optim.SGD([*model.parameters(), stranger], lr=0.1),
            DataLoader(data(), 10),
            epochs=1,
            noise_multiplier=1.0,
            loss_reduction="mean",
        )


def test_a_parameter_frozen_later_gets_neither_gradient_nor_noise():
    model, optimizer, loader = private()
    run(model, optimizer, loader, 1)
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    run(model, optimizer, loader, 1)
    assert torch.equal(model[0].weight, before)


def test_a_gradient_set_by_hand_is_refused_by_name():
    model, optimizer, loader = private()
    for x, y in loader:
        values = {name: p.detach() for name, p in model.named_parameters()}
        found = torch.func.grad(lambda v, x=x, y=y: F.cross_entropy(torch.func.functional_call(model, v, (x,)), y))(
            values
        )
        for name, p in model.named_parameters():
            p.grad = found[name]
        with pytest.raises(
            PrivateTrainingError, match=r"'0\.weight' has a gradient that no handler saw: it was set by hand"
        ):
            optimizer.step()
        break


def test_a_hook_on_a_parameter_is_refused_by_name():
    model, optimizer, loader = private()
    model[2].bias.register_hook(lambda g: g * 0)
    with pytest.raises(PrivateTrainingError, match=r"'2\.bias' has a hook"):
        run(model, optimizer, loader)


def test_a_scripted_model_is_refused_by_name(recwarn):
    model = torch.jit.trace(network(), torch.randn(3, 4))
    with pytest.raises(ValueError, match="TracedModule, which runs outside Python"):
        private(model)


@pytest.mark.parametrize("kind", [nn.DataParallel])
def test_a_model_that_is_split_among_devices_is_refused(kind):
    with pytest.raises(ValueError, match="DataParallel, which splits"):
        private(kind(network()))


def test_complex_parameters_are_refused_by_name():
    model = nn.Module()
    model.phase = nn.Parameter(torch.ones(2, dtype=torch.cfloat))
    with pytest.raises(ValueError, match=r"'phase' is of type torch\.complex64"):
        private(model)


# --- backward passes -----------------------------------------------------------------------------------------------


def test_a_second_backward_through_the_same_graph_is_refused():
    model, optimizer, loader = private()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)
        with pytest.raises(MixedRecords, match="twice"):
            loss.backward()
        break
    assert optimizer.privacy.steps == 0


def test_a_gradient_penalty_is_refused():
    model, _, loader = private()

    def penalised(x, y):
        slope = torch.autograd.grad(F.cross_entropy(model(x.requires_grad_()), y), x, create_graph=True)[0]
        slope.square().sum().backward()

    with pytest.raises(MixedRecords, match="gradient penalty"):
        each(loader, penalised)


def test_backward_through_an_earlier_batch_is_refused():
    model, optimizer, loader = private(sampler="fixed-size")
    batches = iter(loader)
    x, y = next(batches)
    loss = F.cross_entropy(model(x), y)
    next(batches)
    with pytest.raises(MixedRecords, match="earlier batch"):
        loss.backward()
    assert optimizer.privacy.steps == 0


def test_backward_that_stops_at_parameters_is_refused():
    model, _, loader = private()
    with pytest.raises(PrivateTrainingError, match="inputs="):
        each(loader, lambda x, y: F.cross_entropy(model(x), y).backward(inputs=list(model.parameters())))


def test_a_backward_pass_without_a_step_is_not_forgotten_in_silence():
    """Gradient accumulation by hand: the sum of two batches has another price than either."""
    model, optimizer, loader = private()
    with pytest.raises(PrivateTrainingError, match="max_physical_batch_size"):
        each(loader, lambda x, y: F.cross_entropy(model(x), y).backward())
    for i, (x, y) in enumerate(loader):  # one that is dropped on purpose
        F.cross_entropy(model(x), y).backward()
        optimizer.zero_grad()
        if i == 2:
            break


def test_two_forward_passes_and_two_backward_passes_are_one_gradient():
    for together in (True, False):
        model, optimizer, loader = private(noise_multiplier=QUIET)
        for x, y in loader:
            wanted = (
                naive(
                    copy_of(model),
                    (x, y),
                    lambda m, a, b: F.cross_entropy(m(a), b) + F.cross_entropy(m(-a), b),
                    Clipping(),
                    1.0,
                )
                / 10
            )
            optimizer.zero_grad()
            one, other = F.cross_entropy(model(x), y), F.cross_entropy(model(-x), y)
            if together:
                (one + other).backward()
            else:
                one.backward()
                other.backward()
            optimizer.step()
            found = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
            torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-6)


def test_zero_grad_in_any_place_and_form_changes_nothing():
    straight = weights(run(*private(), 1))
    for form in ("late", "zeros", "never"):
        model, optimizer, loader = private()
        for x, y in loader:
            if form == "zeros":
                model.zero_grad(set_to_none=False)
            loss = F.cross_entropy(model(x), y)
            if form == "late":
                optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
        assert torch.equal(weights(model), straight), form


# --- records that do not stay in their rows ------------------------------------------------------------------------


def test_a_model_that_changes_the_order_of_records_on_the_way_is_refused():
    """Its answers are right, but one layer's row i is another layer's row j: norms would be added across records."""
    with pytest.raises(MixedRecords, match=r"meet at parameter 'a\.weight'"):
        run(*private(Two(lambda layer, x: layer(x.flip(0)).flip(0))))


def test_a_hook_that_mixes_gradients_is_refused_and_one_that_does_not_is_followed():
    def hooked(change):
        def between(layer, x):
            h = layer(x)
            if h.requires_grad:
                h.register_hook(change)
            return h

        return Two(between)

    with pytest.raises(MixedRecords, match="hook"):
        run(*private(hooked(lambda g: g / g.norm())))
    torch.manual_seed(0)
    agree(hooked(lambda g: 3 * g), (torch.randn(5, 4),), lambda m, x: m(x).square().sum())


def test_a_full_backward_hook_is_followed():
    torch.manual_seed(0)
    model = network()
    model[1].inplace = False
    model[2].register_full_backward_hook(lambda module, into, out: (into[0] * 2,))
    agree(model, (torch.randn(5, 4),), lambda m, x: m(x).square().sum())


def test_a_backward_pass_of_ones_own_that_mixes_is_refused():
    class Centre(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g - g.mean(0)

    with pytest.raises(MixedRecords, match="backward pass"):
        run(*private(Two(lambda layer, x: Centre.apply(layer(x)))))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: 0.5 * x + 0.5 * x[torch.randperm(len(x))],
        lambda x: x - x.mean(0),
        lambda x: (x + x.roll(1, 0)).detach(),
    ],
    ids=["mixup", "centred", "neighbours"],
)
def test_records_mixed_before_the_model_are_refused(mix):
    model, optimizer, loader = private()
    with pytest.raises(MixedRecords, match="several rows"):
        each(loader, lambda x, y: step(model, optimizer, (mix(x), y)))


def test_noise_and_a_new_order_of_the_batch_are_no_mixing():
    model, optimizer, loader = private()
    for x, y in loader:
        order = torch.randperm(len(x))
        step(model, optimizer, (x[order] + 0.1 * torch.randn_like(x), y[order]))
    assert optimizer.privacy.steps == 6


def test_learning_to_remove_noise_is_no_mixing():
    """Noise as input and as target."""
    model = nn.Linear(4, 4)
    model, optimizer, loader = private(model)
    for x, _ in loader:
        noise, strength = torch.randn_like(x), torch.empty(len(x), 1).uniform_()
        optimizer.zero_grad()
        F.mse_loss(model(x + strength * noise), noise).backward()
        optimizer.step()
    assert optimizer.privacy.steps == 6


def test_a_call_on_some_rows_of_the_batch_is_refused():
    model, _, loader = private()
    with pytest.raises(MixedRecords, match="max_physical_batch_size"):
        each(loader, lambda x, y: F.cross_entropy(model(x[:2]), y[:2]).backward())


def test_some_rows_are_not_taken_for_a_turned_batch():
    """As many tokens as records: half of the rows look like a batch with records in the second dimension."""
    model = nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 2))
    records = TensorDataset(torch.randint(0, 7, (60, 10)), torch.randint(0, 2, (60, 10)))
    model, _, loader = private(model, records, sampler="fixed-size")
    with pytest.raises(MixedRecords, match=r"shape \(5, 10\)"):
        each(loader, lambda x, y: F.cross_entropy(model(x[:5]).transpose(1, 2), y[:5]).backward())


def test_a_batch_that_is_turned_is_exact():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 2))
    records = TensorDataset(torch.randint(0, 7, (60, 6)), torch.randint(0, 2, (60, 6)))
    straight = private(copy.deepcopy(model), records, sampler="fixed-size", noise_multiplier=QUIET)
    turned = private(model, records, sampler="fixed-size", noise_multiplier=QUIET)
    for (a, b), (c, d) in zip(straight[2], turned[2], strict=True):
        for optimizer, out, y in ((straight[1], straight[0](a), b), (turned[1], turned[0](c.t()).transpose(0, 1), d)):
            optimizer.zero_grad()
            F.cross_entropy(out.transpose(1, 2), y).backward()
            optimizer.step()
    torch.testing.assert_close(weights(straight[0]), weights(turned[0]))


def test_a_loss_inside_the_model_is_looked_at():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.out = nn.Embedding(7, 4), nn.Linear(4, 7)

        def forward(self, words, labels, mean=True):
            scores = self.out(self.word(words))
            loss = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="mean" if mean else "sum")
            return {"loss": loss, "logits": scores}

    def train(labels, **options):
        model, optimizer, loader = private(Language(), TensorDataset(words, labels), **options)
        for a, b in loader:
            optimizer.zero_grad()
            model(a, b, options.get("loss_reduction") != "none")["loss"].backward()
            optimizer.step()

    torch.manual_seed(0)
    words = torch.randint(0, 7, (60, 6))
    train(words)
    train(words, loss_reduction="none")
    with pytest.raises(MixedRecords, match="loss_reduction is 'sum', but the loss divides"):
        train(words, loss_reduction="sum")
    with pytest.raises(MixedRecords, match="mean over tokens"):
        train(torch.where(torch.rand(60, 6) < 0.5, -100, words))


def test_a_size_asked_for_by_the_loop_does_not_hide_a_wrong_declaration():
    model, optimizer, loader = private(loss_reduction="sum")
    sizes = []
    with pytest.raises(MixedRecords, match="loss_reduction"):
        each(loader, lambda x, y: (sizes.append(len(x)), step(model, optimizer, (x, y))))


def test_a_running_total_of_the_loop_is_not_touched_by_the_checks():
    model, optimizer, loader = private()
    total, by_hand = torch.zeros(()), 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        total += loss.detach()
        by_hand += loss.item()
        loss.backward()
        optimizer.step()
    assert float(total) == pytest.approx(by_hand)


def test_buffers_that_keep_what_records_say_are_refused_by_name():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = nn.Linear(4, 2), 0
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x):
            self.steps += 1
            if self.seen:
                self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
            return self.layer(x)

    model = Running()
    run(*private(model), 1)
    assert float(model.steps) == 6  # the checks leave no trace
    model = Running()
    model.seen = 1
    with pytest.raises(PrivateTrainingError, match="Buffer 'mean' of Running"):
        run(*private(model))


# --- ways to run a model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_is_exact(reentrant):
    straight = run(*private(Two(lambda layer, x: layer(x)), noise_multiplier=QUIET), 1)
    recomputed = run(
        *private(
            Two(lambda layer, x: checkpoint(layer, x.requires_grad_(), use_reentrant=reentrant)), noise_multiplier=QUIET
        ),
        1,
    )
    torch.testing.assert_close(weights(recomputed), weights(straight))


def test_control_flow_that_looks_at_the_data_is_exact_where_it_looks_at_a_record():
    def between(layer, x):
        return torch.stack([layer(row) if bool(row.sum() > 0) else -layer(row) for row in x])

    torch.manual_seed(0)
    with pytest.raises(PrivateTrainingError):  # one record at a time has no row of the batch
        run(*private(Two(between)))
    agree(
        Two(lambda layer, x: torch.where(x.sum(1, keepdim=True) > 0, layer(x), -layer(x))),
        (torch.randn(5, 4),),
        lambda m, x: m(x).square().sum(),
    )


def test_forward_without_call_functional_call_evaluation_and_no_grad():
    straight = weights(run(*private(), 1))
    for way in (
        lambda m, x: m.forward(x),
        lambda m, x: torch.func.functional_call(m, dict(m.named_parameters()), (x,)),
    ):
        model, optimizer, loader = private()
        for x, y in loader:
            with torch.no_grad():
                model(torch.randn(3, 4))
            optimizer.zero_grad()
            F.cross_entropy(way(model, x), y).backward()
            optimizer.step()
        torch.testing.assert_close(weights(model), straight)
    assert torch.equal(weights(run(*private(network().eval()), 1)), straight)


def test_sparse_tables_get_dense_gradients():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 3, sparse=True), nn.Flatten(), nn.Linear(12, 2))
    dense = copy.deepcopy(model)
    dense[0].sparse = False
    x = torch.randint(0, 7, (5, 4))
    found, wanted = (ours(m, (x,), lambda m, a: m(a).square().sum(), Clipping(), 1.0) for m in (model, dense))
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_the_clip_bound(dtype):
    """Norms, factors and sums in single precision: in half, a record could exceed its bound by a percent, and a sum of
    many records by far more."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 300), nn.PReLU()).to(dtype)
    x = torch.randn(200, 1, 4).to(dtype)
    sums = [ours(model, (part,), lambda m, a: m(a).float().square().sum(), Clipping(), 0.01) for part in (x, x[1:])]
    assert sums[0].dtype == torch.float32
    assert float((sums[0] - sums[1]).norm()) <= 0.01 * (1 + 2**-10)
    assert float((sums[0] - sums[1]).norm()) > 0.0099


def test_single_and_double_parameters_together_declare_the_coarser_rounding():
    from discreet.training.gradients.clipped_sum import ClippedSum

    mixed = {"a": torch.zeros(2), "b": torch.zeros(2, dtype=torch.float64)}
    assert ClippedSum(mixed, Clipping(), "sum").sensitivity(1.0) == 1 + 2**-10
    assert ClippedSum({"b": mixed["b"]}, Clipping(), "sum").sensitivity(1.0) == 1 + 2**-40


# --- copies and the account ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps, lambda o: torch.save(o, io.BytesIO())])
def test_a_copy_of_the_optimizer_is_refused(copied):
    """It would step without noise and without an account."""
    _, optimizer, loader = private()
    for what in (optimizer, optimizer.privacy, loader):
        if what is optimizer or copied is copy.deepcopy:
            with pytest.raises(PrivateTrainingError, match="state_dict"):
                copied(what)


def test_copies_and_pickles_of_the_model_are_ordinary_models():
    """An average of weights along the way, a saved model: neither disturbs the run, and both are plain torch."""
    model, optimizer, loader = private()
    average = torch.optim.swa_utils.AveragedModel(model)
    for batch in loader:
        step(model, optimizer, batch)
        average.update_parameters(model)
        average(batch[0])
    assert torch.equal(weights(model), weights(run(*private(), 1)))
    file = io.BytesIO()
    torch.save(model, file)
    loaded = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    loaded(torch.randn(3, 4)).sum().backward()
    assert all(p.grad is not None for p in loaded.parameters())


def test_going_back_to_an_earlier_checkpoint_is_refused():
    model, optimizer, loader = private()
    start = optimizer.privacy.state_dict()
    run(model, optimizer, loader, 1)
    with pytest.raises(ValueError, match="earlier step"):
        optimizer.privacy.load_state_dict(start)
    assert optimizer.privacy.steps == 6


def test_a_checkpoint_cannot_reset_a_book():
    """A run that starts again from a checkpoint is a plan of its own: it is charged, and refused where nothing is
    left."""
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("people", epsilon=3.0, delta=1e-5)
    target = {"epsilon": 2.0, "delta": 5e-6, "noise_multiplier": None, "book": book}
    model, optimizer, loader = private(**target)
    saved = optimizer.privacy.state_dict()
    run(model, optimizer, loader)
    with pytest.raises(dp.BudgetExceeded):
        private(**target)
    assert optimizer.privacy.state_dict()["steps"] > saved["steps"]


def test_a_wrong_argument_costs_nothing():
    """The book is charged after everything that needs no data was looked at, and before data is."""

    class Book:
        charged = 0

        def charge(self, event, label="", *, unit="one record", reproducible=False):
            self.charged += 1

    class Unread(TensorDataset):
        def __getitem__(self, i):
            raise AssertionError("data was read")

    book = Book()
    for wrong in (
        {"speed": Speed},
        {"loss_reduction": "max"},
        {"sampler": "any"},
        {"clipping": "none"},
        {"max_grad_norm": -1.0},
        {"clipping": Clipping(scope={"head": 1.0})},
    ):
        with pytest.raises(ValueError, match=r"."):
            private(book=book, **wrong)
    assert book.charged == 0
    private(records=Unread(*data().tensors), book=book)
    assert book.charged == 1


def test_a_norm_or_a_size_said_twice_must_agree():
    from discreet.training import Poisson

    with pytest.raises(ValueError, match="max_grad_norm is 2"):
        private(clipping=Clipping(max_grad_norm=1.0), max_grad_norm=2.0)
    with pytest.raises(ValueError, match="dataset_size is 50"):
        private(sampler=Poisson(batch_size=5, dataset_size=60), dataset_size=50)


def test_a_schedule_is_asked_once_for_each_step():
    """What runs is what was priced, also if the schedule changes its mind."""
    calls = iter(range(1, 1000))
    _, optimizer, _ = private(noise_schedule=lambda step: float(next(calls)))
    plan = optimizer.privacy.plan
    assert [plan.multiplier(s) for s in range(plan.steps)] == [float(s) for s in range(1, 13)]
    assert optimizer.privacy.planned == plan.price(plan.steps)
