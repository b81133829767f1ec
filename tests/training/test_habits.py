"""Habits of real loops: schedulers, accumulation, clipping by hand, scalers, wrappers. Each works, or is told what to
write."""

from __future__ import annotations

import copy
import time
import weakref
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed import HashStore
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader

from discreet.training import Clipping, PrivateTrainingError, PublicScale, Speed, make_private
from discreet.training.distributed import Ranks, admit_wrapper, ranks
from discreet.training.gradients.rules.handlers import LAYERS
from tests.training.loops import data, network, private, run, step, weights

PIECES = Speed(max_physical_batch_size=3)


@pytest.mark.parametrize(
    "kind",
    [
        lambda o: lr_scheduler.StepLR(o, 1, 0.9),
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=40),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 5),
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o, 0.5, 2), lr_scheduler.ExponentialLR(o, 0.9)], [2]
        ),
    ],
    ids=["step", "one cycle", "restarts", "sequence"],
)
def test_schedulers_step_once_a_private_step_whatever_the_pieces(kind):
    rates = []
    for speed in (None, PIECES):
        model, optimizer, loader = private(speed=speed)
        scheduler, seen, calls = kind(optimizer), [], 0
        for batch in loader:
            before = optimizer.privacy.steps
            step(model, optimizer, batch)
            scheduler.step()
            calls += 1
            if optimizer.privacy.steps > before:
                seen.append(optimizer.param_groups[0]["lr"])
        rates.append(seen)
    assert calls > len(rates[1]) == len(rates[0])  # there were pieces
    assert rates[0] == rates[1]
    assert len(set(rates[0])) > 1


def test_a_scheduler_of_an_ordinary_optimizer_is_as_it_was():
    private(speed=PIECES)
    optimizer = torch.optim.SGD(network().parameters(), lr=1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_only_schedulers_of_private_optimizers_are_touched():
    """And those of any class, also one that came later; a copy is of the class it was written as."""
    before = {kind: vars(kind).get("step") for kind in (lr_scheduler.LRScheduler, lr_scheduler.StepLR)}
    others = lr_scheduler.StepLR(torch.optim.SGD(network().parameters(), lr=1.0), 1, 0.5)
    model, optimizer, loader = private(speed=PIECES)

    class Halving(lr_scheduler.StepLR):
        def step(self, *args):
            return super().step(*args)

    kept, seen = Halving(optimizer, 1, 0.5), []
    for batch in loader:
        step(model, optimizer, batch)
        kept.step()
        seen.append(optimizer.privacy.between_pieces)
    assert any(seen)
    assert kept.last_epoch == optimizer.privacy.steps
    assert type(others) is lr_scheduler.StepLR
    assert {kind: vars(kind).get("step") for kind in before} == before
    assert copy.copy(kept).__class__ is Halving


def test_a_loop_left_between_pieces_does_not_hold_its_scheduler():
    model, optimizer, loader = private(speed=PIECES)
    scheduler = lr_scheduler.StepLR(optimizer, 1, 0.5)
    for batch in loader:
        step(model, optimizer, batch)
        assert optimizer.privacy.between_pieces
        break
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


def each(loader, act):
    """A loop."""
    for batch in loader:
        act(*batch)


def test_accumulation_by_hand_is_refused_with_the_line_to_write():
    model, _, loader = private()
    with pytest.raises(
        PrivateTrainingError, match=r"gradient_accumulation_steps.*speed=Speed\(max_physical_batch_size"
    ):
        each(loader, lambda x, y: F.cross_entropy(model(x), y).backward())


@pytest.mark.parametrize("zero", [True, False])
def test_clipping_gradients_by_hand_changes_nothing_and_says_so(zero):
    straight = private()
    for batch in straight[2]:
        step(*straight[:2], batch)
    model, optimizer, loader = private()

    def clipped(x, y):
        if zero:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        assert float(nn.utils.clip_grad_norm_(model.parameters(), 0.01)) == 0.0
        optimizer.step()

    with pytest.warns(UserWarning, match="clip_grad_norm_") as told:
        each(loader, clipped)
    assert len(told) == 1
    assert torch.equal(weights(model), weights(straight[0]))


def test_a_gradient_scaler_is_refused_by_name():
    model, optimizer, loader = private()
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)

    def scaled(x, y):
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)

    with pytest.raises(PrivateTrainingError, match=r"GradScaler.*bfloat16"):
        each(loader, scaled)
    off = torch.amp.GradScaler("cpu", enabled=False)
    model, optimizer, loader = private()
    for x, y in loader:
        optimizer.zero_grad()
        off.scale(F.cross_entropy(model(x), y)).backward()
        off.step(optimizer)
        off.update()
    assert optimizer.privacy.steps == 6


@pytest.fixture
def alone():
    """A process group of one process."""
    torch.distributed.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_distributed_data_parallel_of_one_process_changes_nothing(alone):
    expected = weights(run(*private()))
    model, optimizer, loader = private()
    wrapped = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    assert torch.equal(weights(run(wrapped, optimizer, loader)), expected)
    assert torch.equal(weights(run(*private(nn.parallel.DistributedDataParallel(network())))), expected)
    with pytest.raises(ValueError, match="inside the model"):
        private(nn.Sequential(nn.parallel.DistributedDataParallel(network())))


def test_a_hook_of_distributed_data_parallel_that_would_never_run_is_refused(alone):
    wrapped = nn.parallel.DistributedDataParallel(network())
    wrapped.register_comm_hook(None, allreduce_hook)
    with pytest.raises(PrivateTrainingError, match="communication hook"):
        private(wrapped)


@pytest.fixture
def borrowed(monkeypatch):
    """What collectives were given, as a thread of the backend keeps it. The other rank has what this one has."""
    given = []

    def keep(tensor, *_, **__):
        given.append(tensor)
        tensor[1:] = tensor[:1]

    for name in ("all_reduce", "broadcast"):
        monkeypatch.setattr(torch.distributed, name, keep)
    for name in ("all_gather_object", "broadcast_object_list"):
        monkeypatch.delattr(torch.distributed, name)  # of what they lend, nobody here would know
    return given


def test_a_process_does_not_end_before_its_collectives_let_go(borrowed, monkeypatch):
    # gloo's thread needs Python for that: a process that ends just then aborts
    both = Ranks(0, 2)
    both.add_up(torch.ones(3))
    both.copy_from_first([torch.ones(2), torch.zeros(1)])
    assert both.largest(5) == [5]
    assert both.of_first("key") == "key"
    both.agree({"rate": 0.1})
    assert len(borrowed) == 8
    monkeypatch.setattr(time, "sleep", lambda _: borrowed.pop(3 % len(borrowed)))
    ranks.wait_for_borrowers()
    assert not borrowed


def test_a_real_collective_lets_go_while_python_can_answer(alone):
    Ranks.current().add_up(torch.ones(50_000))
    ranks.wait_for_borrowers()
    assert not ranks._not_given_back()


def test_a_collective_that_never_lets_go_does_not_keep_a_process_for_ever(borrowed, monkeypatch):
    Ranks(0, 2).add_up(torch.ones(3))
    clock = iter([0.0, 1.0, 4.9, 5.1])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    ranks.wait_for_borrowers()
    assert borrowed
    assert not list(clock)


def test_what_was_given_back_is_not_kept(borrowed):
    both = Ranks(0, 2)
    both.add_up(numbers := torch.ones(3))
    kept = weakref.ref(borrowed[0])
    assert kept().data_ptr() == numbers.data_ptr()
    borrowed.clear()
    both.add_up(torch.ones(3))
    assert kept() is not None  # the last one is, and those that are lent
    both.add_up(torch.ones(3))
    assert kept() is None


def test_a_process_group_that_came_after_make_private_is_refused():
    *_, loader = private()
    with pytest.raises(PrivateTrainingError, match="Call init_process_group before"):
        admit_wrapper(SimpleNamespace(process_group=SimpleNamespace(size=lambda: 2)), loader.run.ranks)


@pytest.mark.parametrize(("part", "name"), [("", "FSDPSequential"), ("0", "FSDPLinear")], ids=["whole", "a layer"])
def test_a_sharded_model_is_trained_and_one_sharded_later_is_refused_by_name(alone, part, name):
    expected = weights(run(*private()))
    model = network()
    fully_shard(model.get_submodule(part), mesh=init_device_mesh("cpu", (1,)))
    assert any(isinstance(p, DTensor) for p in model.parameters())
    run(*private(model))
    assert torch.equal(
        torch.cat([getattr(p, "full_tensor", lambda p=p: p)().flatten() for p in model.parameters()]), expected
    )
    model, optimizer, loader = private()
    fully_shard(model.get_submodule(part), mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(PrivateTrainingError, match=f"{name} after make_private.*First fully_shard"):
        each(loader, lambda *batch: step(model, optimizer, batch))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_sharded_recurrent_network_is_trained(alone, kind):
    """The memory of a gathered parameter is given back after each call, which numpy's sight of it would forbid."""

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.over, self.out = kind(2, 3, batch_first=True), nn.Linear(3, 2)
            self.wide = nn.Linear(4, 1100)  # so many numbers that they are compared in another way

        def forward(self, x):
            x = x + self.wide(x).unflatten(1, (4, -1)).mean(2)
            return self.out(self.over(x.view(-1, 2, 2))[0][:, -1])

    expected = weights(run(*private(Last())))
    model = Last()
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    run(*private(model))
    assert torch.equal(torch.cat([p.full_tensor().flatten() for p in model.parameters()]), expected)


def test_a_policy_of_fully_shard_that_was_never_tried_is_refused(alone):
    model = network()
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    with pytest.raises(ValueError, match="mixed-precision or an offload policy"):
        private(model)


def test_scales_of_whole_parameters_are_refused_for_shards(alone):
    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(ValueError, match=r"scale=.*not with fully_shard"):
        private(model, clipping=Clipping(scale=PublicScale(values={})))


def test_shards_in_which_a_record_has_no_gradient_of_its_own_are_refused(alone, monkeypatch):
    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (1, 1), mesh_dim_names=("again", "shard")))
    with pytest.raises(ValueError, match=r"mesh of shape \(1, 1\)"):
        private(model)
    parallel = network()
    mesh = init_device_mesh("cpu", (1,))
    parallel[0].weight = nn.Parameter(distribute_tensor(parallel[0].weight, mesh, [Shard(1)]))
    with pytest.raises(ValueError, match=r"'0.weight' is a DTensor also where its module is called"):
        private(parallel)
    own = network()
    fully_shard(own[0], mesh=mesh)
    monkeypatch.setitem(LAYERS, nn.Linear, {})
    with pytest.raises(ValueError, match="call fully_shard on its parent"):
        private(own)
    with pytest.raises(ValueError, match="FullyShardedDataParallel, which keeps its parameters in one flat vector"):
        private(type("FullyShardedDataParallel", (nn.Sequential,), {})(nn.Linear(4, 2)))


def test_what_accelerate_prepared_is_refused_as_such():
    accelerate = pytest.importorskip("accelerate")
    helper = accelerate.Accelerator(cpu=True)
    model, plain = network(), DataLoader(data(), 10)
    optimizer, loader = helper.prepare(torch.optim.SGD(model.parameters(), lr=0.1), plain)
    given = {"epochs": 1, "noise_multiplier": 1.0, "loss_reduction": "mean"}
    with pytest.raises(ValueError, match="loader was prepared by accelerate"):
        make_private(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, **given)
    with pytest.raises(ValueError, match="optimizer was prepared by accelerate"):
        make_private(model, optimizer, plain, **given)


def test_accelerate_may_prepare_what_is_private_already():
    accelerate = pytest.importorskip("accelerate")
    expected = weights(run(*private()))
    helper = accelerate.Accelerator(cpu=True)
    model, optimizer, loader = helper.prepare(*private())
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            helper.backward(F.cross_entropy(model(x), y))
            optimizer.step()
    assert torch.equal(weights(model), expected)


@pytest.mark.parametrize(("name", "line"), [("target_epsilon", "epsilon="), ("module", "model first")])
def test_an_argument_of_another_library_is_answered_with_the_one_to_write(name, line):
    with pytest.raises(TypeError, match=line):
        private(**{name: 1.0})
    with pytest.raises(TypeError, match="unexpected keyword"):
        private(nothing_of_the_kind=1)
