"""Record and replay over whole runs: the sum that meets noise moves by at most what the sampler's price covers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, Dataset

from discreet.auditing import ReplayError, replay
from discreet.auditing.strategies import awkward_floats, neighbours
from discreet.training import Clipping, PerUser, Quantile, TruncatedPoisson, make_private
from discreet.training.private import SAMPLERS

brief = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


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


def training(rows, *, size, loss_reduction="mean", epochs=2, **options):
    model = Small()
    loader = DataLoader(Records(rows), batch_size=2)
    sampler = options.pop("sampler", "poisson")
    if sampler == "per-user":
        sampler = PerUser(batch_size=2, dataset_size=3, users=[row[2] for row in rows], records_per_user=2)
    elif sampler == "padded":
        sampler = TruncatedPoisson(batch_size=2, dataset_size=size, max_batch_size=size + 1)
    model, optimizer, loader = make_private(
        model, torch.optim.Adam(model.parameters(), lr=0.1), loader, epochs=epochs, noise_multiplier=1.0, sampler=sampler,
        dataset_size=size, placeholder=(torch.zeros(2), 0), loss_reduction=loss_reduction, rng=7, **options)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x, y), y, reduction=loss_reduction)
            loss.sum().backward()
            optimizer.step()
    return [p.detach().numpy().copy() for p in model.parameters()], optimizer.privacy.executed.to_json()


records = st.tuples(awkward_floats(), awkward_floats(), st.integers(0, 2))
MODES = {
    "flat": {},
    "sum": {"loss_reduction": "sum"},
    "none": {"loss_reduction": "none"},
    "per-layer": {"clipping": "per-layer"},
    "groups": {"clipping": Clipping(scope={"": 1.0, "a": 2.0})},
    "automatic": {"clipping": "automatic"},
    "adaptive": {"clipping": Clipping(adaptive=Quantile(count_noise=1.0))},
    "pieces": {"max_physical_batch_size": 1},
    "padded": {"sampler": "padded"},
    "balls in bins": {"sampler": "balls-in-bins"},
    "schedules": {"noise_schedule": lambda s: 1 + s, "clip_schedule": lambda s: 2.0 / (1 + s)},
}


@pytest.mark.parametrize("mode", MODES)
@brief
@given(pair=neighbours(records, max_size=5))
def test_a_record_more_or_less_moves_a_sum_by_one_clip_norm(mode, pair):
    size = max(map(len, pair))
    replay(lambda rows: training(rows, size=size, **MODES[mode]), *pair)


@pytest.mark.parametrize("sampler", ["fixed-size", "shuffled"])
@brief
@given(pair=neighbours(records, max_size=5, replace=True))
def test_a_record_replaced_moves_a_sum_by_two(sampler, pair):
    replay(lambda rows: training(rows, size=len(rows), sampler=sampler), *pair)


@brief
@given(rows=st.lists(records, min_size=1, max_size=8))
def test_a_user_more_or_less_moves_a_sum_by_one_clip_norm(rows):
    """Neighbours lack every record of a user. The records that a user brings are chosen in order here: few enough."""
    rows = [row for user in range(3) for row in [r for r in rows if r[2] == user][:2]]
    without = [row for row in rows if row[2] != rows[0][2]]
    for pair in ((rows, without), (without, rows)):
        replay(lambda data: training(data, size=8, sampler="per-user"), *pair)


ROWS = [(0.3, -0.2, 0), (0.1, 0.9, 1), (1.0, -1.0, 2), (-0.4, 0.2, 1)]


def test_replay_would_find_a_wrong_factor():
    """Power: a mean loss declared as a sum has gradients that depend on the batch size, and replay cannot pass a clip norm
    that is not kept."""
    from discreet.training.clipping import Clipping as Plain

    class Loose(Plain):
        def factors(self, norms, clip_norm, scale=1.0):
            return torch.full_like(norms, scale)

    wild = [(1e4, -1e4, 0), *ROWS]
    with pytest.raises(ReplayError, match="differs by"):
        replay(lambda rows: training(rows, size=5, clipping=Loose(), epochs=8), wild, ROWS)


def test_replay_finds_a_divisor_read_off_the_data():
    def leaky(rows):
        model = Small()
        _, optimizer, _ = make_private(model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(Records(rows), 2),
                                       epochs=1, noise_multiplier=1.0, loss_reduction="mean", rng=1)
        return optimizer.privacy.planned.to_json()

    with pytest.raises(ReplayError, match="results differ"):
        replay(leaky, ROWS, ROWS[1:])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38, 1e-38])
@pytest.mark.parametrize("name", [*SAMPLERS])
def test_a_record_of_nonsense_contributes_nothing_or_its_bound(name, bad):
    """The other records train on; the weights stay finite."""
    weights, _ = training([(bad, 1.0, 0), *ROWS], size=5, sampler=name)
    assert all(np.isfinite(w).all() for w in weights)
