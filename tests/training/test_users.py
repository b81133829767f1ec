"""Users of several records: one gradient each, clipped as a whole, whatever the pieces; a cap that is paid for."""

from __future__ import annotations

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import discreet as dp
from discreet import events
from discreet.release import Enforced
from discreet.training import (
    Clipping,
    MixedRecords,
    PerUser,
    PrivateTrainingError,
    Quantile,
    RecordsPerUser,
    Speed,
    Training,
    make_private,
)
from discreet.training.gradients import joint, units
from discreet.training.gradients.rules import outer_products
from discreet.training.noise import LambdaCGD
from discreet.training.run import Run
from discreet.training.sampling.pieces import pieces
from discreet.training.verification.verification import StepVerification
from tests.operations.contract import Log, SpyBook
from tests.training import oracle
from tests.training.sensitivity import QUIET, Heard

OWNERS = ["ada", "bob", "ada", "eve", "ada", "bob", "ada", None]  # a missing name is a user too
WORDS, CLASSES = 11, 3


class Tied(nn.Module):
    """A table that is the output layer too, a normalisation, a sequence, a bare parameter."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.inner = nn.Embedding(WORDS, 6), nn.LayerNorm(6), nn.Linear(6, 6)
        self.shift = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return F.linear(torch.tanh(self.inner(self.norm(self.table(x)))) + self.shift, self.table.weight)


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 3, 3), nn.Linear(3 * 16, CLASSES)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)).flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.GRU(4, 5, batch_first=True), nn.Linear(5, CLASSES)

    def forward(self, x):
        return self.last(self.inner(x)[0][:, -1])


def vectors():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, CLASSES)), torch.randn(8, 4)


MODELS = {
    "vectors": vectors,
    "tied": lambda: (Tied(), torch.randint(0, WORDS, (8, 5))),
    "convolution": lambda: (Convolved(), torch.randn(8, 1, 6, 6)),
    "recurrent": lambda: (Recurrent(), torch.randn(8, 4, 4)),
}


def made(name):
    torch.manual_seed(3)
    model, x = MODELS[name]()
    return model, x, torch.randint(0, CLASSES, (8,))


def each_loss(model, x, y):
    out = model(x)
    return F.cross_entropy(out.mean(1) if out.dim() == 3 else out, y % out.shape[-1], reduction="none")


def by_hand(model, x, y, users, clipping, clip_norm):
    """The sum over users of the clipped sum of their gradients, by plain autograd."""
    parameters = list(oracle.trained(model).values())
    each = []
    for user in dict.fromkeys(users):
        rows = [i for i, name in enumerate(users) if name == user]
        found = torch.autograd.grad(each_loss(model, x[rows], y[rows]).sum(), parameters)
        each.append([g.double() for g in found])
    return oracle.clipped(model, each, clipping, clip_norm)


def released(model, x, y, users, *, clip_norm=0.3, piece=None, reduction="mean", size=None, steps=1, **options):
    """The sum of the last step of a run in which every user takes part, as noise is put on it."""
    size = len(set(users)) if size is None else size
    sampler = PerUser(batch_size=size, dataset_size=size, users=users, records_per_user=len(users) or 1)
    given = {"epochs": steps, "noise_multiplier": QUIET, "max_grad_norm": clip_norm, "noise": Heard(), "rng": 1}
    model = copy.deepcopy(model)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        DataLoader(TensorDataset(x, y), batch_size=2),
        sampler=sampler,
        loss_reduction=reduction,
        speed=Speed(max_physical_batch_size=piece),
        **(given | options),
    )
    for _ in range(steps):
        for inputs, target in loader:
            optimizer.zero_grad()
            losses = each_loss(model, inputs, target)
            (losses.mean() if reduction == "mean" else losses.sum()).backward()
            optimizer.step()
    assert optimizer.privacy.steps == steps
    return optimizer.privacy._run._noise.total


# --- one gradient a user ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formed", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_sum_of_a_users_gradients_is_clipped_whatever_the_pieces(name, formed, monkeypatch):
    if not formed:  # through Gram sums and tables of look-ups, as large models are
        monkeypatch.setattr(outer_products, "KEPT", 0)
        monkeypatch.setattr(joint, "KEPT", 0)
    wanted = by_hand(*made(name), OWNERS, Clipping(), 0.3)
    for piece, reduction in ((None, "mean"), (None, "sum"), (4, "mean"), (3, "sum"), (1, "mean")):
        found = released(*made(name), OWNERS, piece=piece, reduction=reduction)
        assert float((found - wanted).norm()) < 1e-5 * float(wanted.norm())


def test_it_is_the_sum_that_is_clipped_and_not_each_record():
    model, x, y = made("vectors")
    together, apart = (released(model, x, y, users, clip_norm=1e-3) for users in (OWNERS, list(range(8))))
    assert float(together.norm()) <= 4e-3 * 1.001  # four users, not eight records
    assert float(apart.norm()) > 1.2 * float(together.norm())


@pytest.mark.parametrize("piece", [None, 3])
def test_blocks_are_clipped_each(piece):
    clipping = Clipping(max_grad_norm=0.2, scope="per-layer")
    model, x, y = made("vectors")
    wanted = by_hand(model, x, y, OWNERS, clipping, 0.2)
    found = released(model, x, y, OWNERS, clip_norm=None, piece=piece, clipping=clipping)
    assert float((found - wanted).norm()) < 1e-5 * float(wanted.norm())


def test_no_piece_holds_a_part_of_one_user_beside_another():
    names = [0] * 3 + [1] + [2] * 7 + [3, 4, 4]
    for size in range(1, 9):
        cut = pieces(list(range(len(names))), names, 1, size)
        assert [row for piece in cut for row in piece.rows] == list(range(len(names)))
        assert all(len(piece.rows) <= size for piece in cut)
        for piece in cut:
            own = {names[row] for row in piece.rows}
            assert len(own) == piece.owners.units
            whole = all(names.count(user) == sum(names[row] == user for row in piece.rows) for user in own)
            assert whole != piece.owners.in_parts
            assert not piece.owners.in_parts or len(own) == 1


@pytest.mark.parametrize("passed_over", [{1}, {2, 3}, {2, 3, 4}])
def test_users_are_never_clipped_as_one_where_a_loop_passes_over_pieces(passed_over):
    """Two users of three records in pieces of one: what is left of each is clipped by itself."""
    model, x, y = made("vectors")
    x, y, users = 50 * x[:6], y[:6], [0, 0, 0, 1, 1, 1]
    kept = [row for row in range(6) if row not in passed_over]
    clip_norm = 1e-3
    wanted = by_hand(model, x[kept], y[kept], [users[row] for row in kept], Clipping(), clip_norm)
    if 2 in passed_over:  # the first user's last piece never came, and the user does not count
        kept = [row for row in kept if users[row] == 1]
        wanted = by_hand(model, x[kept], y[kept], [1] * len(kept), Clipping(), clip_norm)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        DataLoader(TensorDataset(x, y), batch_size=2),
        sampler=PerUser(batch_size=2, dataset_size=2, users=users, records_per_user=3),
        epochs=1,
        noise_multiplier=QUIET,
        max_grad_norm=clip_norm,
        noise=Heard(),
        loss_reduction="mean",
        speed=Speed(max_physical_batch_size=1),
    )
    for number, (inputs, target) in enumerate(loader):
        if number not in passed_over:
            each_loss(model, inputs, target).mean().backward()
            optimizer.step()
    found = optimizer.privacy._run._noise.total
    assert float((found - wanted).norm()) < 1e-5 * clip_norm


@pytest.mark.parametrize("name", MODELS)
def test_an_empty_batch_is_a_step_without_anybody(name):
    model, x, y = made(name)
    sampler = PerUser(batch_size=1, dataset_size=10**6, users=OWNERS, records_per_user=8)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(x, y), batch_size=2),
        sampler=sampler,
        epochs=2e-6,
        noise_multiplier=1.0,
        loss_reduction="mean",
        clipping=Clipping(adaptive=Quantile()),
    )
    for inputs, target in loader:
        assert len(inputs) == 1
        assert not inputs.any()
        each_loss(model, inputs, target).mean().backward()
        optimizer.step()
        if not optimizer.privacy.remaining_steps:
            break
    assert optimizer.privacy.steps == 2


# --- sensitivity, end to end -----------------------------------------------------------------------------------------

WORST = {  # a new user's records: all alike, so that gradients add up; or beyond all numbers
    "many": lambda x: 50.0 * x[:1].expand(6, *x.shape[1:]),
    "one": lambda x: 1e3 * x[:1],
    "not finite": lambda x: torch.full_like(x[:2], math.inf),
    "some not finite": lambda x: torch.cat([torch.full_like(x[:1], math.nan), x[:3]]),
}


@pytest.mark.parametrize("piece", [None, 4, 1])
@pytest.mark.parametrize("kind", WORST)
@pytest.mark.parametrize("name", ["vectors", "convolution"])
def test_a_worst_case_user_moves_the_released_sum_by_at_most_the_clip_norm(name, kind, piece):
    clip_norm = 1e-3  # that every user exceeds
    model, x, y = made(name)
    more = WORST[kind](x)
    names = [*OWNERS, *["new"] * len(more)]
    with_it = released(
        model,
        torch.cat([x, more]),
        torch.cat([y, y[:1].expand(len(more))]),
        names,
        clip_norm=clip_norm,
        piece=piece,
        size=5,
    )
    without = released(made(name)[0], x, y, OWNERS, clip_norm=clip_norm, piece=piece, size=5)
    moved = float((with_it - without).norm()) / clip_norm
    assert moved <= 1 + 2.0**-10
    assert (moved < 1e-6) if "finite" in kind else (moved > 0.999)


@pytest.mark.parametrize("piece", [None, 1])
def test_a_user_moves_the_count_that_an_adaptive_clip_norm_follows_by_a_half(piece, monkeypatch):
    counts, adapt = [], Run._adapt
    monkeypatch.setattr(Run, "_adapt", lambda run, *a: (counts.append(run.clipped.unclipped), adapt(run, *a)))
    model, x, y = made("vectors")
    clipping = Clipping(max_grad_norm=1e3, adaptive=Quantile(count_noise=1e9))
    for rows in (list(range(8)), [0, 2, 4, 6, 7]):  # without bob and eve
        users = [OWNERS[row] for row in rows]
        released(model, x[rows], y[rows], users, clip_norm=None, clipping=clipping, size=4, piece=piece)
    assert counts == [2.0, 1.0]  # a half a user, not a record


# --- the account -----------------------------------------------------------------------------------------------------


def plan(**options):
    sampler = PerUser(
        batch_size=10, dataset_size=100, users=list(range(50)) * 2, records_per_user=4, name="client", **options
    )
    log = Log()
    book = SpyBook(log)
    model = nn.Linear(2, 2)
    noise = LambdaCGD() if options.get("law") == "kept-bins" else None
    _, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(torch.randn(100, 2), torch.zeros(100).long()), batch_size=10),
        sampler=sampler,
        noise=noise,
        epochs=2,
        noise_multiplier=1.0,
        loss_reduction="mean",
        book=book,
    )
    return optimizer.privacy, loader, book


def test_a_plan_of_users_is_priced_by_the_share_of_users_and_charged_for_one_of_them():
    privacy, _, book = plan()
    step = events.PoissonSampled(rate=0.1, event=events.Gaussian(noise_multiplier=1.0))
    assert events.leaves(privacy.planned) == {step: 20}
    [(event, _, unit)] = book.charges
    assert event == privacy.planned
    assert (unit, type(unit)) == ("client", Enforced)


@pytest.mark.parametrize("law", ["balls-in-bins", "kept-bins"])
def test_users_are_dealt_as_records_are(law):
    privacy, loader, book = plan(law=law)
    sampler, run = privacy.plan.sampler, privacy._run
    keys, order = [], run.order(0, lambda rng: sampler.order((), rng))
    assert len(order) == 50
    seen = [sampler.draw(step, 100, keys, order, run.streams.sampling(step)) for step in range(10)]
    assert sorted(np.concatenate(seen).tolist()) == list(range(100))  # every user once, with all records
    for rows in seen:
        assert (np.bincount(sampler.owners(rows), minlength=50)[sampler.owners(rows)] == 2).all()
    assert (len(loader), sampler.passes, sampler.kept) == (10, True, law == "kept-bins")
    assert book.charges[0][2] == "client"


def test_correlated_noise_runs_over_users():
    privacy, loader, _ = plan(law="kept-bins")
    run = privacy._run
    for _ in range(2):
        for inputs, target in loader:
            F.cross_entropy(run.model(inputs), target).backward()
            run.optimizer.step()
    assert privacy.remaining_steps == 0
    assert len(events.leaves(privacy.planned)) == 1


def test_a_law_of_a_public_size_is_refused_before_the_charge():
    for law in ("fixed-size", "shuffled", "truncated-poisson", 3):
        with pytest.raises(ValueError, match="law is"):
            PerUser(batch_size=1, dataset_size=2, users=[1, 2], law=law)


def test_an_operation_of_users_trains():
    x, y = torch.randn(40, 3), torch.randint(0, 2, (40,))
    users = [i % 10 for i in range(40)]
    run = Training(
        lambda: nn.Linear(3, 2),
        dataset_size=10,
        batch_size=5,
        epochs=2,
        noise_multiplier=1.0,
        sampler=PerUser(batch_size=5, dataset_size=10, users=users, records_per_user=3, name="client"),
        speed=Speed(max_physical_batch_size=2),
    )
    answer = run.release((x, y))
    assert (answer.unit, answer.event) == ("client", run.event)


# --- verification judges users ---------------------------------------------------------------------------------------


def claims_of(monkeypatch):
    found = []
    after_sum = StepVerification.after_sum

    def note(self, *given):
        found.extend(self._batch.claims if self._batch else ())
        after_sum(self, *given)

    monkeypatch.setattr(StepVerification, "after_sum", note)
    return found


def test_a_claim_is_of_all_rows_of_users_with_the_norm_of_their_sum(monkeypatch):
    found = claims_of(monkeypatch)
    model, x, y = made("vectors")
    users = [str(i // 3) for i in range(8)]
    released(model, x, y, users, steps=12)
    assert len(found) >= 3
    for claim in found:
        own = {users[row] for row in (claim.row, *claim.others)}
        assert sum(users.count(user) for user in own) == 1 + len(claim.others)
    alone = [claim for claim in found if not claim.several]
    assert alone
    for claim in alone:
        own = math.sqrt(sum(float(g.double().square().sum()) for g in claim.gradient))
        assert claim.norms == pytest.approx([own], rel=1e-5)


@pytest.mark.parametrize("wrong", ["another user's row", "too short", "a row left out"])
def test_wrong_sums_of_users_are_found(wrong, monkeypatch):
    """The engine's own grouping is judged, too: by users who are run alone."""
    right = units.by_unit

    def changed(uses, owners):
        if wrong == "too short":
            for use in (found := right(uses, owners)):
                use.gradients = use.gradients / 2 if use.gradients is not None else None
                use.instances = use.instances / 2 if use.instances is not None else None
            return found
        of = owners.of.roll(1) if wrong == "another user's row" else owners.of.clone()
        if wrong == "a row left out":
            of[1::2] = -1
        return right(uses, dataclasses.replace(owners, of=of))

    monkeypatch.setattr("discreet.training.gradients.clipped_sum.by_unit", changed)
    model, x, y = made("vectors")
    with pytest.raises(MixedRecords, match="not that of the record alone"):
        released(model, x, y, ["a", "a", "a", "b", "b", "b", "c", "c"], steps=4)


def test_a_loss_that_mixes_users_is_refused():
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, CLASSES)

        def forward(self, x):
            return self.inner(x - x.mean(0))

    _, x, y = made("vectors")
    with pytest.raises(MixedRecords):
        released(Centred(), x, y, OWNERS)


class Bag(nn.Module):
    """The sum of a text's words, with or without what stands for none."""

    def __init__(self, counts_padding):
        super().__init__()
        self.table, self.counts_padding = nn.Embedding(WORDS, 3), counts_padding

    def forward(self, tokens):
        each = torch.sin(self.table(tokens)).sum(2)
        return (each if self.counts_padding else each * (tokens > 0)).sum(1)


class Texts(Dataset):
    """Two records a user, of different lengths."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.arange(2 + i // 2) % WORDS


def padded(records):
    return nn.utils.rnn.pad_sequence(records, batch_first=True)


@pytest.mark.parametrize("counts_padding", [False, True])
def test_padding_that_others_decide_is_judged_for_users_of_several_records(counts_padding):
    torch.manual_seed(0)
    model = Bag(counts_padding)
    sampler = PerUser(batch_size=6, dataset_size=6, users=[i // 2 for i in range(12)], records_per_user=2)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(Texts(), 4, collate_fn=padded),
        sampler=sampler,
        epochs=6,
        noise_multiplier=1.0,
        loss_reduction="sum",
        rng=2,
    )

    def go():
        for _ in range(6):
            for tokens in loader:
                optimizer.zero_grad()
                model(tokens).sum().backward()
                optimizer.step()

    if counts_padding:
        with pytest.raises(MixedRecords):
            go()
    else:
        go()
        assert optimizer.privacy.steps == 6


def test_accumulation_by_hand_is_refused_for_users_too():
    model, x, y = made("vectors")
    model, _, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(TensorDataset(x, y), batch_size=2),
        sampler=PerUser(batch_size=4, dataset_size=4, users=OWNERS, records_per_user=8),
        epochs=1,
        noise_multiplier=1.0,
        loss_reduction="mean",
        speed=Speed(max_physical_batch_size=2),
    )

    def accumulated():
        for inputs, target in loader:
            each_loss(model, inputs, target).mean().backward()

    with pytest.raises(PrivateTrainingError, match="step was not"):
        accumulated()


# --- the cap ---------------------------------------------------------------------------------------------------------


def test_a_cap_is_chosen_and_paid_for():
    users = [name for name in range(400) for _ in range(1 + name % 10)]
    cap = RecordsPerUser(q=0.8, largest=50, epsilon=1.0, name="client")
    book = dp.Ledger("sqlite://").open("clients", epsilon=3.0, delta=1e-6, unit="client")
    answer = book.release(cap, users, label="cap")
    assert isinstance(answer.value, int)
    assert 7 <= answer.value <= 9
    assert str(book.entries()[-1].unit) == "client, bounded by the library"
    assert 0.4 < dp.epsilon(answer.event, delta=0.0) <= 1.0
    sampler = PerUser(batch_size=4, dataset_size=400, users=users, records_per_user=answer.value, name="client")
    assert sampler.records_per_user == answer.value


def test_users_who_are_missing_are_one_user_for_the_cap_as_for_the_sampler():
    assert RecordsPerUser(q=0.5, largest=9, epsilon=100.0).release([None] * 6 + ["a"] * 6, rng=1).value == 6


def _columns_of_users():
    """Three users as containers hold them, two whose names are one double, and one who is missing."""
    names = [2**60, 2**60 + 1, None]
    yield names
    yield [np.int64(2**60), np.int64(2**60 + 1), float("nan")]
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    yield pandas.Series(names, dtype="Int64")
    yield polars.Series(names)
    yield arrow.array(names)


def test_a_missing_user_makes_no_two_others_one():
    for column in _columns_of_users():
        sampler = PerUser(batch_size=1, dataset_size=3, users=column)
        assert len(set(sampler.owners(np.arange(3)).tolist())) == 3, type(column)
    fractions = PerUser(batch_size=1, dataset_size=2, users=torch.tensor([0.123451, 0.123452]))
    assert len(set(fractions.owners(np.arange(2)).tolist())) == 2


@pytest.mark.parametrize("bad", [{"largest": 1}, {"epsilon": 0.0}, {"q": 2.0}, {"name": ""}])
def test_a_cap_that_makes_no_sense_is_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad)) if bad != {"name": ""} else "unit"):
        RecordsPerUser(**({"largest": 10, "epsilon": 1.0} | bad))


def test_what_is_no_column_of_users_is_refused_before_the_charge():
    log = Log()
    with pytest.raises(ValueError, match="sequence"):
        dp.release.charged(RecordsPerUser(largest=10, epsilon=1.0), "ada", book=SpyBook(log))
    with pytest.raises(ValueError, match="several dimensions"):
        dp.release.charged(RecordsPerUser(largest=10, epsilon=1.0), np.zeros((3, 2)), book=SpyBook(log))
    assert not log
