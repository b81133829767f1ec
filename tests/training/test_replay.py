"""Record and replay over whole runs: the sum that meets noise moves by at most what the sampler's price covers."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, Dataset

from discreet.auditing import GradientCanaries, ReplayError
from discreet.auditing import replay as replayed
from discreet.auditing.strategies import awkward_floats, neighbours
from discreet.errors import BudgetExceeded
from discreet.release import Release
from discreet.training import Clipping, PerUser, Quantile, Speed, TruncatedPoisson, make_private
from discreet.training.planning import SAMPLERS

few, many = (settings(max_examples=n, deadline=None, suppress_health_check=list(HealthCheck)) for n in (1, 12))


class Records(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        a, b, label = self.rows[i]
        return torch.tensor([a, b], dtype=torch.float64).to(torch.float32), label


class Small(nn.Module):
    """A linear layer, a table, a norm, a bare parameter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.norm, self.b = nn.Linear(2, 4), nn.LayerNorm(4), nn.Linear(4, 3)
        self.shift, self.table = nn.Parameter(torch.zeros(3)), nn.Embedding(3, 3)

    def forward(self, x, y):
        return self.b(self.norm(F.relu(self.a(x), inplace=True))) * (1 + self.shift) + self.table(y)


def training(rows, *, size, loss_reduction="mean", epochs=2, leave=False, **options):
    """A whole run; with ``leave`` the loop is left once, after a backward pass and before its step."""
    model = Small()
    loader = DataLoader(Records(rows), batch_size=2)
    sampler = options.pop("sampler", "poisson")
    if sampler == "per-user":
        sampler = PerUser(batch_size=2, dataset_size=3, users=[row[2] for row in rows], records_per_user=2)
    elif sampler in ("padded", "truncated"):
        sampler = TruncatedPoisson(batch_size=2, dataset_size=size, max_batch_size=size + 1, padded=sampler == "padded")
    model, optimizer, loader = make_private(
        model,
        torch.optim.Adam(model.parameters(), lr=0.1),
        loader,
        epochs=epochs,
        noise_multiplier=1.0,
        sampler=sampler,
        dataset_size=size,
        placeholder=(torch.zeros(2), 0),
        loss_reduction=loss_reduction,
        rng=7,
        **options,
    )
    privacy, left = optimizer.privacy, False
    for _ in range(epochs + leave):
        for x, y in loader:
            if not privacy.remaining_steps:
                break
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x, y), y, reduction=loss_reduction)
            loss.sum().backward()
            if leave and privacy.steps == 1:
                leave, left = False, True
                break
            # a bin that was left is lost, and a step of the plan
            with suppress(BudgetExceeded) if left else nullcontext():
                optimizer.step()
    return [p.detach().numpy().copy() for p in model.parameters()], optimizer.privacy.executed


def replay(operation, data, neighbour):
    """Replay of a run with its cost; the seed gives the steps their streams, sampling among them."""
    replayed(lambda rows: Release(*operation(rows)), data, neighbour, seeded=True)


records = st.tuples(awkward_floats(), awkward_floats(), st.integers(0, 2))
ADAPTIVE = Clipping(adaptive=Quantile(count_noise=1.0))
CANARIES = GradientCanaries(20, halt=False, report=None, rng=1)
MODES = {
    "flat": {},
    "sum": {"loss_reduction": "sum"},
    "none": {"loss_reduction": "none"},
    "per-layer": {"clipping": "per-layer"},
    "groups": {"clipping": Clipping(scope={"": 1.0, "a": 2.0})},
    "automatic": {"clipping": "automatic"},
    "adaptive": {"clipping": ADAPTIVE},
    "pieces": {"speed": Speed(max_physical_batch_size=1)},
    "padded": {"sampler": "padded"},
    "truncated": {"sampler": "truncated"},
    "balls in bins": {"sampler": "balls-in-bins"},
    "left early": {"leave": True},
    "left early, in pieces": {"leave": True, "speed": Speed(max_physical_batch_size=1), "clipping": ADAPTIVE},
    "padded, adaptive, in pieces": {
        "sampler": "padded",
        "speed": Speed(max_physical_batch_size=2),
        "clipping": ADAPTIVE,
    },
    "balls in bins, adaptive, in pieces, left early": {
        "sampler": "balls-in-bins",
        "speed": Speed(max_physical_batch_size=2),
        "clipping": ADAPTIVE,
        "leave": True,
    },
    "schedules": {"noise_schedule": lambda s: 1 + s, "clip_schedule": lambda s: 2.0 / (1 + s)},
    "audited": {"audit": CANARIES},
    "audited, balls in bins, in pieces": {
        "sampler": "balls-in-bins",
        "speed": Speed(max_physical_batch_size=2),
        "audit": CANARIES,
    },
}


ROWS = [(0.3, -0.2, 0), (0.1, 0.9, 1), (1.0, -1.0, 2), (-0.4, 0.2, 1)]
WILD = (1e4, -1e4, 0)


def more_or_less(mode, pair):
    size = max(map(len, pair))
    replay(lambda rows: training(rows, size=size, **MODES[mode]), *pair)


@pytest.mark.parametrize("mode", MODES)
@few
@example(pair=([WILD, *ROWS], ROWS))
@given(pair=neighbours(records, max_size=5))
def test_a_record_more_or_less_moves_a_sum_by_one_clip_norm(mode, pair):
    more_or_less(mode, pair)


@pytest.mark.slow(sibling="test_a_record_more_or_less_moves_a_sum_by_one_clip_norm")
@pytest.mark.parametrize("mode", MODES)
@many
@given(pair=neighbours(records, max_size=5))
def test_any_record_more_or_less_moves_a_sum_by_one_clip_norm(mode, pair):
    more_or_less(mode, pair)


REPLACE = {
    "": {},
    "left early": {"leave": True},
    "adaptive, in pieces": {"clipping": ADAPTIVE, "speed": Speed(max_physical_batch_size=1)},
    "groups, none": {"clipping": Clipping(scope={"": 1.0, "a": 2.0}), "loss_reduction": "none"},
}


def replaced(sampler, mode, pair):
    replay(lambda rows: training(rows, size=len(rows), sampler=sampler, **REPLACE[mode]), *pair)


@pytest.mark.parametrize("mode", REPLACE)
@pytest.mark.parametrize("sampler", ["fixed-size", "shuffled"])
@few
@example(pair=([WILD, *ROWS[1:]], ROWS))
@given(pair=neighbours(records, max_size=5, replace=True))
def test_a_record_replaced_moves_a_sum_by_two(sampler, mode, pair):
    replaced(sampler, mode, pair)


@pytest.mark.slow(sibling="test_a_record_replaced_moves_a_sum_by_two")
@pytest.mark.parametrize("mode", REPLACE)
@pytest.mark.parametrize("sampler", ["fixed-size", "shuffled"])
@many
@given(pair=neighbours(records, max_size=5, replace=True))
def test_any_record_replaced_moves_a_sum_by_two(sampler, mode, pair):
    replaced(sampler, mode, pair)


def test_two_clip_norms_are_needed_and_priced():
    """Power: a record replaced by one of another class moves a sum by more than the clip norm, and by two at most; the
    inner event is that of half the noise multiplier."""
    from discreet.training.gradients.clipped_sum import ClippedSum
    from tests.training.oracle import ours, trained

    def first_sum(label):
        model, labels = Small(), torch.tensor([label, *(row[2] for row in ROWS[1:])])
        x = torch.tensor([[50.0, -50.0], *([a, b] for a, b, _ in ROWS[1:])])
        return ours(
            model, (x, labels), lambda m, a, b: 100 * F.cross_entropy(m(a, b), b, reduction="sum"), Clipping(), 1.0
        )

    bound = ClippedSum(trained(Small()), Clipping(), "sum").sensitivity(1.0)
    assert bound < float((first_sum(0) - first_sum(2)).norm()) <= 2 * bound
    for sampler in ("fixed-size", "shuffled"):
        assert '"noise_multiplier":0.5' in training(ROWS, size=4, sampler=sampler)[1].to_json()


USERS = {
    "": {},
    "adaptive, in pieces": {"clipping": ADAPTIVE, "speed": Speed(max_physical_batch_size=1)},
    "left early": {"leave": True, "loss_reduction": "sum"},
}


@pytest.mark.parametrize("mode", USERS)
def test_a_user_more_or_less_moves_a_sum_by_one_clip_norm(mode):
    """Neighbours lack every record of a user. The records that a user brings are chosen in order here: few enough."""
    rows = [WILD, *ROWS]
    replay(lambda data: training(data, size=3, sampler="per-user", **USERS[mode]), rows, rows[2:])


@pytest.mark.slow(sibling="test_a_user_more_or_less_moves_a_sum_by_one_clip_norm")
@pytest.mark.parametrize("mode", USERS)
@many
@given(rows=st.lists(records, min_size=1, max_size=8))
def test_any_user_more_or_less_moves_a_sum_by_one_clip_norm(mode, rows):
    rows = [row for user in range(3) for row in [r for r in rows if r[2] == user][:2]]
    without = [row for row in rows if row[2] != rows[0][2]]
    for pair in ((rows, without), (without, rows)):
        replay(lambda data: training(data, size=3, sampler="per-user", **USERS[mode]), *pair)


def test_replay_would_find_a_wrong_factor():
    """Power: a mean loss declared as a sum has gradients that depend on the batch size, and replay cannot pass a clip
    norm that is not kept."""
    from discreet.training.gradients.clipping import Clipping as Plain

    class Loose(Plain):
        def factors(self, norms, clip_norm, scale=1.0):
            return torch.full_like(norms, scale)

    wild = [(1e4, -1e4, 0), *ROWS]
    with pytest.raises(ReplayError, match="differs by"):
        replay(lambda rows: training(rows, size=5, clipping=Loose(), epochs=8), wild, ROWS)


def test_replay_finds_a_divisor_read_off_the_data():
    def leaky(rows):
        model = Small()
        _, optimizer, _ = make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            DataLoader(Records(rows), 2),
            epochs=1,
            noise_multiplier=1.0,
            loss_reduction="mean",
            rng=1,
        )
        return [], optimizer.privacy.planned

    with pytest.raises(ReplayError, match="results differ"):
        replay(leaky, ROWS, ROWS[1:])


SLOWER = [pytest.param(bad, marks=pytest.mark.slow) for bad in (-np.inf, 1e38, 1e-38)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, *SLOWER])
@pytest.mark.parametrize("name", [*SAMPLERS])
def test_a_record_of_nonsense_contributes_nothing_or_its_bound(name, bad):
    """The other records train on; the weights stay finite."""
    weights, _ = training([(bad, 1.0, 0), *ROWS], size=5, sampler=name)
    assert all(np.isfinite(w).all() for w in weights)
