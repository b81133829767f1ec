"""One batch of made-up records runs before the book is charged: what is wrong with every record costs nothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import discreet as dp
from discreet.training import MixedRecords, Speed, fit, make_private
from tests.training.loops import data, network, run, weights


@pytest.fixture
def book():
    return dp.Ledger("sqlite://").open("people", epsilon=100.0, delta=1e-2)


PLAN = {"epochs": 2, "noise_multiplier": 1.0, "loss_reduction": "mean"}


def rehearsed(loss, book, records=None, model=None, **options):
    model = network() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = options.pop("loader", None) or DataLoader(data() if records is None else records, 10)
    return make_private(model, optimizer, loader, book=book, rehearse=loss, **(PLAN | options))


WEIGHTS = nn.CrossEntropyLoss(weight=torch.ones(3))
NUMBERS = TensorDataset(torch.rand(60, 4), torch.rand(60))
WRONG = {
    "class weights": (lambda m, b: WEIGHTS(m(b[0]), b[1]), None, "weight tensor", ValueError),
    "an attribute": (lambda m, b: m.heads(b[0]).sum(), None, "heads", ValueError),
    "columns": (lambda m, b: F.cross_entropy(m(b[0][:, :3]), b[1]), None, "mat1 and mat2", ValueError),
    "a loss that mixes": (lambda m, b: (m(b[0])[:, 0] - b[1].mean()).square().mean(), NUMBERS, "record", MixedRecords),
    "a label too flat": (lambda m, b: F.mse_loss(m(b[0])[:, :1], b[1]), NUMBERS, r"y\.unsqueeze\(-1\)", ValueError),
    "a label too deep": (
        lambda m, b: F.l1_loss(m(b[0])[:, 0], b[1][:, None]),
        NUMBERS,
        r"shape \[2\], but the labels have \[2, 1\].*y\.squeeze\(-1\)",
        ValueError,
    ),
    "a label too flat for a strict loss": (
        lambda m, b: F.binary_cross_entropy_with_logits(m(b[0])[:, :1], b[1]),
        NUMBERS,
        r"y\.unsqueeze\(-1\)",
        ValueError,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_a_loop_is_met_before_the_charge(name, book):
    loss, records, said, kind = WRONG[name]
    with pytest.raises(kind, match=said):
        rehearsed(loss, book, records)
    assert book.spent().epsilon == 0


@pytest.mark.parametrize("options", [{}, {"sampler": "truncated-poisson"}, {"speed": Speed(max_physical_batch_size=3)}])
def test_a_rehearsal_leaves_no_trace(options, book):
    def loss(model, batch):
        return F.cross_entropy(model(batch[0]), batch[1])

    def trained(rehearse):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        made = rehearsed(rehearse, book, model=model, rng=1, **options)
        return weights(run(*made, epochs=1)), torch.rand(1)

    for with_it, without in zip(trained(loss), trained(None), strict=True):
        assert torch.equal(with_it, without)


class Texts(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return torch.zeros(1 + i % 5, dtype=torch.long), i % 2


def padded(records):
    return nn.utils.rnn.pad_sequence([x for x, _ in records], True), torch.tensor([y for _, y in records])


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, ids):
        return self.out(self.words(ids).sum(1))


def test_where_a_collate_function_makes_batches_a_made_up_record_is_asked_for(book):
    given = {"model": Bag(), "loader": DataLoader(Texts(), 8, collate_fn=padded)}
    with pytest.raises(ValueError, match="give placeholder=, a made-up record"):
        rehearsed(lambda m, b: F.cross_entropy(m(b[0]), b[1]), book, **given)
    record = torch.zeros(3, dtype=torch.long), 0
    with pytest.raises(ValueError, match="weight tensor"):
        rehearsed(lambda m, b: WEIGHTS(m(b[0]), b[1]), book, placeholder=record, **given)
    assert book.spent().epsilon == 0


def test_fit_says_how_labels_get_the_shape_of_what_the_model_gives(book):
    with pytest.raises(ValueError, match=r"shape \[2, 1\], but the labels have \[2\].*y\.unsqueeze\(-1\).*charged"):
        fit(nn.Linear(4, 1), NUMBERS, loss_fn=F.mse_loss, batch_size=10, epochs=1, noise_multiplier=1.0, book=book)
    assert book.spent().epsilon == 0
