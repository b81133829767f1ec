"""The zoo: on every model that people bring, the clipped sum is that of a loop over records, and a record moves it by
at most the clip norm.

The fast tests take a few members; the slow ones take all of them, through checkpointing, autocast and pieces.
"""

from __future__ import annotations

import gc
import logging

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from discreet.auditing import replay
from discreet.release import Release
from discreet.training import make_private
from discreet.training.gradients import joint
from discreet.training.gradients.clipped_sum import ClippedSum
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.rules import outer_products
from discreet.training.gradients.trace import interception
from discreet.training.gradients.units import Owners
from tests.training.oracle import clipped, trained, watching
from tests.training.sensitivity import SAMPLERS, OfZoo, movement
from tests.training.zoo import ADAPTERS, RECORDS, TRANSFORMERS, ZOO, made

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers warns of many things

FEW = ("gpt2", "mixtral, eager", "swin", "lora", "lstm", "experts", "sorted", "latents", "graphs in one list")
EXACT = 1e-5  # as a share of the sum's norm
HALF = 0.1  # autocast: the forward pass itself is that coarse


def few(names, fast=FEW):
    """The members by name; all but a few are slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(autouse=True, scope="module")
def quiet():
    """Without advice of transformers, and without the memory of one member in the next."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    yield
    gc.collect()


def each(member):
    """Every record's gradient, alone through plain autograd."""
    parameters = list(trained(member.model).values())
    for i in range(RECORDS):
        loss = member.losses(member.model, {name: x[i : i + 1] for name, x in member.batch.items()})
        found = torch.autograd.grad(loss.sum(), parameters, allow_unused=True)
        yield [(torch.zeros_like(p) if g is None else g).double() for g, p in zip(found, parameters, strict=True)]


def middle(gradients):
    """A clip norm that half of the records exceed."""
    norms = sorted(float(sum(g.square().sum() for g in parts).sqrt()) for parts in gradients)
    return norms[len(norms) // 2] * 0.999


def ours(member, clip_norm, batch=None, owners=None):
    """The engine's sum, in one forward and one backward pass."""
    batch = member.batch if batch is None else batch
    found = ClippedSum(trained(member.model), Clipping(), "sum")
    found.watch.begin(len(next(iter(batch.values()))))
    with watching(member.model, found.watch):
        member.losses(member.model, batch).sum().backward()
    assert all(p.grad is None for p in member.model.parameters()), "an ordinary gradient was computed"
    found.add(None, clip_norm, owners)
    return torch.cat([part.reshape(-1) for part in found.total])


def gap(found, wanted):
    assert float(wanted.norm()) > 0
    return float((found.double() - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("name", few(ZOO))
def test_the_clipped_sum_of_a_model_is_that_of_a_loop(name):
    """Also in pieces, and at a clip norm that all records exceed."""
    member = made(name)
    gradients = list(each(member))
    clip_norm = middle(gradients)
    wanted = clipped(member.model, gradients, Clipping(), clip_norm)
    assert gap(ours(member, clip_norm), wanted) <= EXACT
    pieces = [{key: x[i : i + 2] for key, x in member.batch.items()} for i in range(0, RECORDS, 2)]
    assert gap(sum(ours(member, clip_norm, piece) for piece in pieces), wanted) <= EXACT
    assert gap(ours(member, clip_norm / 50), clipped(member.model, gradients, Clipping(), clip_norm / 50)) <= EXACT


UNCHECKPOINTED = {"albert", "convnext", "resnet", "prefix"}  # these have no checkpointing to turn on
CROSSING = {"t5", "deberta"}  # a table of positions goes from block to block: refused, not wrong
BLOCKED = [name for name in [*TRANSFORMERS, *ADAPTERS] if name not in UNCHECKPOINTED | CROSSING]


@pytest.mark.parametrize("reentrant", [False, True], ids=["", "reentrant"])
@pytest.mark.parametrize("name", few(BLOCKED, ("gpt2",)))
def test_gradient_checkpointing_changes_nothing(name, reentrant):
    member = made(name)
    member.model.train()
    clip_norm = middle(list(each(member)))
    before = ours(member, clip_norm)
    member.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    if reentrant and "swin" not in name:  # whose embeddings give a tuple, which this cannot mark
        member.model.enable_input_require_grads()
    assert gap(ours(member, clip_norm), before.double()) <= EXACT


@pytest.mark.parametrize("name", few(ZOO, ("gpt2", "lstm")))
def test_autocast_clips_what_it_computes(name):
    """The sum is that of the loop as far as half precision goes, and one record alone is clipped to the clip norm."""
    member = made(name)
    gradients = list(each(member))
    clip_norm = middle(gradients)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert gap(ours(member, clip_norm), clipped(member.model, gradients, Clipping(), clip_norm)) <= HALF
        alone = ours(member, clip_norm / 20, {key: x[:1] for key, x in member.batch.items()})
    assert float(alone.double().norm()) <= clip_norm / 20 * (1 + 2**-10)


TIED = {"gpt2": 50_257, "bert, mlm": 30_522, "llama, tied": 32_000}  # words; in 32 dimensions too many to be formed


@pytest.mark.parametrize("name", few(TIED, ("gpt2",)))
def test_a_tied_table_of_a_real_vocabulary_is_never_formed_for_a_record(monkeypatch, name):
    measured, formed = [], []
    tied, form = joint._tied, joint.Use.formed
    monkeypatch.setattr(joint, "_tied", lambda uses: measured.append(tied(uses)) or measured[-1])
    monkeypatch.setattr(joint.Use, "formed", lambda use: formed.append(use.target.shape) or form(use))
    member = made(name, words=TIED[name], **{"n_embd" if name == "gpt2" else "hidden_size": 32})
    gradients = list(each(member))
    clip_norm = middle(gradients)
    assert gap(ours(member, clip_norm), clipped(member.model, gradients, Clipping(), clip_norm)) <= EXACT
    assert [norms.shape for norms in measured] == [(RECORDS,)]
    assert not [shape for shape in formed if shape[0] == TIED[name]]


@pytest.mark.parametrize("name", few(ZOO, ("gpt2", "swin", "latents")))
def test_no_model_of_the_zoo_takes_the_slow_way(monkeypatch, name):
    taken, recomputed = set(), interception.recomputed
    monkeypatch.setattr(
        interception, "recomputed", lambda func, *rest: taken.add(func.__name__) or recomputed(func, *rest)
    )
    ours(made(name), 1.0)
    assert not taken


# --- end to end ------------------------------------------------------------------------------------------------------


class Pool(Dataset):
    """Records of a pool by their numbers."""

    def __init__(self, member, rows):
        self.member, self.rows = member, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {key: x[self.rows[i]] for key, x in self.member.batch.items()}


def training(name, rows, sampler):
    """A private run on these records of a member's batch, every one of which is clipped."""
    member = made(name)
    for x in member.batch.values():  # the first record is a wild one
        if x.is_floating_point():
            x[0] *= 100.0
    placeholder = {key: torch.zeros_like(x[0]) for key, x in member.batch.items()}
    model, optimizer, loader = make_private(
        member.model,
        torch.optim.SGD([p for p in member.model.parameters() if p.requires_grad], lr=1e-3),
        DataLoader(Pool(member, rows), batch_size=2),
        epochs=1,
        noise_multiplier=1.0,
        max_grad_norm=1e-3,
        sampler=sampler,
        dataset_size=4,
        placeholder=placeholder,
        loss_reduction="mean",
        rng=7,
    )
    for batch in loader:
        optimizer.zero_grad()
        member.losses(model, batch).mean().backward()
        optimizer.step()
    return [p.detach().numpy().copy() for p in trained(model).values()], optimizer.privacy.executed


def slow(name, sampler):
    return pytest.param(name, sampler, marks=pytest.mark.slow)


SPREAD = [(name, list(SAMPLERS)[i % len(SAMPLERS)]) for i, name in enumerate(ZOO) if i % 5 == 0]


@pytest.mark.parametrize(("name", "sampler"), [slow(*pair) for pair in SPREAD] + [("graphs in one list", "per user")])
def test_a_worst_case_record_moves_the_released_sum_of_any_model_with_any_sampler_by_the_clip_norm(name, sampler):
    """Some of all pairs, each sampler at least once; ``python -m searches zoo`` tries the whole product."""
    assert {sampler for _, sampler in SPREAD} == set(SAMPLERS)
    moved, most = movement(OfZoo(name), sampler)
    assert 0 < moved <= most


SAMPLED = [("experts", sampler) for sampler in ("poisson", "truncated-poisson", "balls-in-bins")]


@pytest.mark.parametrize(("name", "sampler"), SAMPLED + [slow(name, "poisson") for name in ZOO if name != "experts"])
def test_a_record_more_or_less_moves_the_released_sum_by_one_clip_norm(name, sampler):
    """Record and replay of whole runs with and without the wild record; what meets noise moves by at most the declared
    limit, which is the clip norm, widened."""
    replay(lambda rows: Release(*training(name, rows, sampler)), [0, 1, 2, 3], [1, 2, 3], seeded=True)


@pytest.mark.parametrize("sampler", ["fixed-size", "shuffled"])
def test_another_record_in_its_place_moves_the_released_sum_by_two(sampler):
    replay(lambda rows: Release(*training("experts", rows, sampler)), [0, 1, 2, 3], [4, 1, 2, 3], seeded=True)


@pytest.mark.parametrize("formed", [True, False])
@pytest.mark.parametrize("name", few(ZOO))
def test_a_user_of_several_records_is_clipped_as_one(name, formed, monkeypatch):
    """Two users and a row of nobody's; with and without gradients that are formed."""
    if not formed:
        monkeypatch.setattr(outer_products, "KEPT", 0)
        monkeypatch.setattr(joint, "KEPT", 0)
    member, owners = made(name), Owners(torch.tensor([0, 1, 0, -1, 1]))
    parameters = list(trained(member.model).values())
    gradients = []
    for user in range(2):
        rows = list(owners.rows(user))
        loss = member.losses(member.model, {key: x[rows] for key, x in member.batch.items()})
        found = torch.autograd.grad(loss.sum(), parameters, allow_unused=True)
        gradients.append(
            [(torch.zeros_like(p) if g is None else g).double() for g, p in zip(found, parameters, strict=True)]
        )
    clip_norm = middle(gradients) * 0.7
    assert gap(ours(member, clip_norm, owners=owners), clipped(member.model, gradients, Clipping(), clip_norm)) < EXACT
