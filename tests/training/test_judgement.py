"""What verification cannot judge it refuses, or says so in the account; and no private record makes it stop an honest
run."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import PerUser, PrivateTrainingError, Speed, fit, make_private
from discreet.training.distributed.likeness import likeness
from discreet.training.errors import UNREPEATABLE
from discreet.training.verification.listening import written_tensors
from discreet.training.verification.rounding import RandomRounding, in_double
from searches import plain
from tests.training.adversaries import Around, Book, C, D, loop, tensors, train
from tests.training.loops import network

# --- no record stops an honest run -----------------------------------------------------------------------------------


class Norm(nn.Module):
    """The first thing done to a record divides it by its own spread, which a constant row does not have."""

    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.norm(x).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.network, self.out = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.network(x)[0][:, -1])


@pytest.mark.parametrize(("kind", "value"), [(Norm, 1e4), (Norm, 1e8), (Norm, 1e19), (Recurrent, 3e38)])
def test_no_constant_record_of_any_size_stops_a_run(kind, value):
    """What is left of it is rounding: another one alone than beside others."""
    x = torch.randn(6, 6, 8, generator=torch.Generator().manual_seed(0))
    x[0] = value
    data = TensorDataset(x, torch.arange(6) % 3)
    for seed in (1, 2):  # at which a single look stopped it
        torch.manual_seed(seed)
        train(kind(), data=data, batch=6, sampler="fixed-size", steps=3, epochs=8, rng=seed)


def test_a_tie_that_rounding_breaks_says_nothing():
    """Which expert sees a record of zeros is decided by the last bit of what the gate says."""

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.a, self.b = nn.Linear(D, 2, bias=False), nn.Linear(D, C), nn.Linear(D, C)
            with torch.no_grad():
                self.gate.weight[1] = self.gate.weight[0] * (1 + 2**-23)

        def forward(self, x):
            chances = self.gate(x).softmax(1)
            first = (chances.argmax(1) == 0).unsqueeze(1)
            return torch.where(first, self.a(x), self.b(x)) * chances.max(1, keepdim=True).values

    torch.manual_seed(0)
    train(Experts(), steps=6, epochs=2)


@pytest.mark.parametrize("name", plain.MODELS)
def test_plain_models_are_not_refused(name):
    """One seed of each, in pieces; ``python -m searches plain`` tries fifty. The large made-up record saturates the
    gates of recurrent ones."""
    plain.trained(name, 3)


# --- what rounding may do --------------------------------------------------------------------------------------------


def test_random_rounding_moves_what_is_computed_and_leaves_what_is_chosen():
    x = torch.randn(50, generator=torch.Generator().manual_seed(0))
    rounding = RandomRounding([x], seed=0)
    with rounding:
        moved, chosen, mask = x.exp(), x.max(), torch.ones(3, 3).triu()
    away = ((moved - x.exp()) / x.exp()).abs()
    assert 1e-7 < float(away.max()) < 1e-5
    assert float(chosen) == float(x.max())
    assert torch.equal(mask, torch.ones(3, 3).triu())
    with RandomRounding([x], seed=0):
        again = x.exp()
    assert torch.equal(moved, again)  # a sample is one run, and can be repeated


def test_a_model_in_double_precision_is_put_back_as_it_was():
    model = nn.BatchNorm1d(3)
    kept = {name: (x.data_ptr(), x.dtype) for name, x in model.state_dict(keep_vars=True).items()}
    with in_double(model):
        model(torch.randn(4, 3, dtype=torch.float64)).sum().backward()
    assert {name: (x.data_ptr(), x.dtype) for name, x in model.state_dict(keep_vars=True).items()} == kept
    assert model.weight.grad is None


# --- records that do not answer alike twice --------------------------------------------------------------------------


class Chance(Around):
    """Half of the batch's mean is taken away, and chance is by a generator that nobody follows."""

    def __init__(self):
        super().__init__(between=self.mixed)
        self.generator = np.random.default_rng(0)

    def mixed(self, _, h, x):
        drawn = torch.from_numpy(self.generator.random(h.shape).astype("f"))
        return (h - 0.5 * h.mean(0)) * (drawn > 0.5)


class Box:
    mean = 0.0


class Boxed(Around):
    """A running mean of activations in an object that is no module."""

    def __init__(self):
        super().__init__(between=self.centred)
        self.box = Box()

    def centred(self, _, h, x):
        out, self.box.mean = h - self.box.mean, 0.5 * self.box.mean + 0.5 * h.detach().mean(0)
        return out


class InArray(Around):
    """The same in an array of numpy's that is an attribute."""

    def __init__(self):
        super().__init__(between=self.centred)
        self.mean = np.zeros(4, np.float32)

    def centred(self, _, h, x):
        out, self.mean = h - torch.from_numpy(self.mean), 0.5 * self.mean + 0.5 * h.detach().mean(0).numpy()
        return out


@pytest.mark.parametrize("kind", [Chance, Boxed])
def test_a_record_that_does_not_answer_alike_twice_is_not_judged(kind):
    with pytest.raises(PrivateTrainingError) as refused:
        train(kind())
    assert str(refused.value) == UNREPEATABLE
    _, optimizer = train(kind(), unverified="by hand")
    assert optimizer.privacy.unverified == "by hand"


def test_a_running_mean_in_an_array_is_refused_by_name():
    with pytest.raises(PrivateTrainingError, match="Attribute 'mean' of InArray"):
        train(InArray())


# --- writes of the loop's own ----------------------------------------------------------------------------------------


def in_a_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


WRITES = {
    "parameter": lambda m, x, loss: m.a.bias.add_(1e-3 * x.mean()),
    "parameter replaced": lambda m, x, loss: setattr(m.a.bias, "data", m.a.bias.data + 1e-3 * x.mean()),
    "buffer": lambda m, x, loss: m.seen.add_(x.sum(0)),
    "loss": lambda m, x, loss: m.seen.__setitem__(0, m.seen[0] + loss.detach()),
    "out": lambda m, x, loss: torch.sum(x, 0, out=m.seen),
}
UNSEEN = {
    "thread": lambda m, x, loss: in_a_thread(lambda: m.seen.add_(x.sum(0))),
    "numpy": lambda m, x, loss: np.add(m.seen.numpy(), x.sum(0).numpy(), out=m.seen.numpy()),
}
NUMBERS = {"number": lambda m, x, loss: m.seen.fill_(loss.item())}
PUBLIC = {
    "moving average": lambda m, x, loss: m.old.lerp_(m.a.weight.detach(), 0.1),
    "replaced": lambda m, x, loss: setattr(m.old, "data", 0.9 * m.old + 0.1 * m.a.weight.data),
    "limits": lambda m, x, loss: m.a.weight.clamp_(-1, 1),
    "number while losses are read": lambda m, x, loss: (loss.item(), m.old.mul_(0.9)),
    "loaded": lambda m, x, loss: m.b.load_state_dict(m.b.state_dict()),
    "measured": lambda m, x, loss: (x.argmax(1) == 0).float().mean(),
}


def writing(write, *, after=False):
    def act(model, optimizer, x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if after:
            optimizer.step()
        with torch.no_grad():
            write(model, x, loss)
        if not after:
            optimizer.step()

    loop(act, Around(seen=torch.zeros(D), old=torch.zeros(4, D)))


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("after", [False, True])
def test_what_the_loop_writes_into_the_model_from_a_batch_is_refused(name, after):
    with pytest.raises(PrivateTrainingError, match=r"(Parameter|Buffer) '(a\.bias|seen)'|earlier batch"):
        writing(WRITES[name], after=after)


@pytest.mark.parametrize("name", [*UNSEEN, *NUMBERS])
def test_what_nobody_saw_written_before_the_step_is_refused(name):
    with pytest.raises(PrivateTrainingError, match=r"Buffer 'seen'|asks a tensor for values"):
        writing((UNSEEN | NUMBERS)[name])


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("after", [False, True])
def test_what_the_loop_writes_from_anything_else_passes(name, after):
    writing(PUBLIC[name], after=after)
    assert not _get_current_function_mode_stack()


def test_a_tensor_made_of_a_batch_after_its_step_is_not_used_on_the_next():
    bank = []

    def act(model, optimizer, x, y):
        optimizer.zero_grad()
        out = model(x)
        F.cross_entropy(out - torch.stack(bank).mean(0) if bank else out, y).backward()
        optimizer.step()
        with torch.no_grad():
            bank.append(model(x).mean(0))

    with pytest.raises(PrivateTrainingError, match="earlier batch"):
        loop(act)
    assert len(bank) == 1


def test_calls_that_write_are_known():
    x, y = torch.zeros(2), torch.ones(2)
    for func, args, kwargs in (
        (torch.Tensor.__setitem__, (x, 0, 1), {}),
        (torch.Tensor.__iadd__, (x, y), {}),
        (torch.add, (y, y), {"out": x}),
        (torch._foreach_add_, ([x], [y]), {}),
    ):
        assert [z is x for z in written_tensors(func, args, kwargs)] == [True]
    assert not written_tensors(torch._foreach_add, ([x], [y]), {})
    assert not written_tensors(torch.Tensor.grad.__set__, (x, y), {})


# --- pieces that hold one unit ---------------------------------------------------------------------------------------


class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.mean = nn.Linear(D, 8), nn.Linear(8, C), torch.zeros(8)

    def forward(self, x):
        h = self.a(x)
        out, self.mean = self.b(torch.relu(h - self.mean)), 0.9 * self.mean + 0.1 * h.detach().mean(0)
        return out


BY_ONE = {
    "pieces of one record": {"speed": Speed(max_physical_batch_size=1)},
    "units larger than a piece": {
        "speed": Speed(max_physical_batch_size=2),
        "sampler": PerUser(users=[i // 4 for i in range(40)], records_per_user=4, batch_size=4, dataset_size=10),
    },
    "batches of one unit": {
        "sampler": PerUser(users=[i // 4 for i in range(40)], records_per_user=4, batch_size=1, dataset_size=10)
    },
}


@pytest.mark.parametrize("name", BY_ONE)
def test_pieces_of_one_unit_are_verified_on_made_up_records_and_the_account_says_so(name):
    book = Book()
    _, optimizer = train(Around(), steps=6, epochs=2, book=book, **BY_ONE[name])
    assert optimizer.privacy.unverified == f"{name} are verified on made-up records alone"
    assert name in book.label
    with pytest.raises(PrivateTrainingError, match="Attribute 'mean' of Keeps"):
        train(Keeps(), steps=6, epochs=2, **BY_ONE[name])
    with pytest.raises(PrivateTrainingError, match="loss_reduction"):
        train(Around(), lambda o, y: F.cross_entropy(o, y, reduction="sum"), steps=6, epochs=2, **BY_ONE[name])


def test_a_loop_that_asks_for_sizes_passes_in_pieces_of_one_record():
    train(Around(), change=lambda x, y: (x.view(len(x), -1), y), steps=6, epochs=2, **BY_ONE["pieces of one record"])


def test_a_fit_in_pieces_of_one_record_says_so_in_its_label():
    book = Book()
    options = {"noise_multiplier": 1.0, "epochs": 0.2, "batch_size": 8, "speed": Speed(max_physical_batch_size=1)}
    fit(Around(), tensors(), book=book, **options)
    assert "made-up records alone" in book.label


def test_usual_runs_say_nothing():
    model = network()
    options = {"noise_multiplier": 1.0, "epochs": 1, "loss_reduction": "mean"}
    loader = DataLoader(TensorDataset(torch.zeros(20, 4)), 5)
    _, optimizer, _ = make_private(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, **options)
    assert optimizer.privacy.unverified == ""


# --- ranks -----------------------------------------------------------------------------------------------------------


def test_ranks_compare_all_of_a_model():
    class Two:
        count = 2

    def measured(change):
        torch.manual_seed(0)
        model = Around(seen=torch.ones(D))
        with torch.no_grad():
            change(model)
        return likeness(model, Two())

    as_it_is = measured(lambda m: None)
    assert measured(lambda m: m.a.weight[1:].add_(3)) != as_it_is
    assert measured(lambda m: m.seen.add_(1)) != as_it_is
