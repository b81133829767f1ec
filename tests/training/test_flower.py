"""Flower's own simulation engine runs private rounds: in an environment of its own, by make test-flower."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower needs other versions than ours: make test-flower runs this elsewhere")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from flwr.supercore.task_identity import TaskIdentity

import discreet as dp
from discreet.errors import BudgetExceeded
from discreet.training.federated import Federation
from discreet.training.integrations.flower import CLIP_NORM, PrivateStrategy, clip_update
from discreet.training.noise import LambdaCGD

CLIENTS, NORM, PULL = 6, 0.5, 0.05
ONE_CORE = {
    "init_args": {"num_cpus": 1, "include_dashboard": False},
    "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
}


def model():
    return ArrayRecord({"a": Array(np.zeros((2, 3), np.float32)), "b": Array(np.zeros(4, np.float32))})


def values(record):
    return np.concatenate([part.ravel() for part in record.to_numpy_ndarrays()])


def client_app(mods):
    """Clients that move every entry by a little, but the first: it sends a huge update, and the second fails."""
    app = ClientApp(mods=mods)

    @app.train()
    def train(msg: Message, context: Context) -> Message:
        place = int(context.node_config["partition-id"])
        if place == 1:
            raise RuntimeError("private words")
        pull = 1e6 if place == 0 else PULL
        arrays = ArrayRecord(
            {name: Array(part.numpy() + np.float32(pull)) for name, part in msg.content["arrays"].items()}
        )
        told = MetricRecord({"num-examples": 10 ** (place + 3), "loss": 0.25})
        return Message(RecordDict({"arrays": arrays, "metrics": told}), reply_to=msg)

    return app


def simulated(federation, mods, num_rounds=None):
    """A whole run: its result, and what the server got from clients."""
    kept, replied = {}, []
    app = ServerApp()

    class Listening(PrivateStrategy):
        def aggregate_train(self, server_round, replies):
            replies = list(replies)
            replied.extend(replies)
            return super().aggregate_train(server_round, replies)

    @app.main()
    def main(grid, context):
        kept["result"] = Listening(federation).start(grid, model(), num_rounds=num_rounds)

    run_simulation(app, client_app(mods), num_supernodes=CLIENTS, backend_config=ONE_CORE)
    return kept["result"], replied


def test_a_simulated_run_clips_notices_failures_and_charges_the_ledger(caplog):
    """All clients in each of two rounds; one sends a huge update, one fails; noise is too small to see."""
    book = dp.Ledger("sqlite://").open("phones", epsilon=1e30, delta=1e-5, unit="client", adjacency="replace")
    federation = Federation(
        clients=CLIENTS, clients_per_round=CLIENTS, rounds=2, noise_multiplier=1e-9, max_norm=NORM, book=book
    )
    result, replied = simulated(federation, [clip_update])
    pulled = PULL * np.sqrt(10)  # below the norm
    expected = 2 * (NORM / np.sqrt(10) + 4 * PULL) / CLIENTS  # over six, though one failed
    assert pulled < NORM
    assert values(result.arrays) == pytest.approx(np.full(10, expected), rel=1e-4)
    assert federation.steps == 2
    assert [str(entry.unit) for entry in book.entries() if entry.unit] == ["client, bounded by the library"]
    answers = [reply for reply in replied if not reply.has_error()]
    assert len(answers) == 10
    assert [reply.error.reason for reply in replied if reply.has_error()] == ["RuntimeError"] * 2
    assert "private words" not in caplog.text
    for reply in answers:
        assert not reply.content.metric_records  # the mod sends arrays alone
    assert not result.train_metrics_clientapp
    assert not result.evaluate_metrics_clientapp


def test_the_server_clips_where_clients_do_not_and_correlated_noise_runs_through():
    """DP-FTRL over two passes of three rounds, without the mod; no metric that clients send is released."""
    federation = Federation(
        clients=CLIENTS, clients_per_round=2, rounds=6, noise_multiplier=1e-9, max_norm=NORM, noise=LambdaCGD()
    )
    result, replied = simulated(federation, [])
    expected = 2 * (NORM / np.sqrt(10) + 4 * PULL) / 2
    assert values(result.arrays) == pytest.approx(np.full(10, expected), rel=1e-4)
    assert any(reply.content.metric_records for reply in replied if not reply.has_error())
    assert not result.train_metrics_clientapp


@pytest.fixture
def a_run(monkeypatch):
    """Messages carry whose they are."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


class Nodes:
    """As much of a grid as asking needs."""

    def __init__(self, count):
        self.count = count

    def get_node_ids(self):
        return range(1, self.count + 1)


def test_more_rounds_than_planned_are_refused_before_the_first():
    federation = Federation(clients=3, clients_per_round=3, rounds=2, noise_multiplier=1.0)
    with pytest.raises(BudgetExceeded):
        PrivateStrategy(federation).start(Nodes(3), model(), num_rounds=3)
    assert federation.steps == 0


def asked(strategy, count=3):
    return list(strategy.configure_train(1, model(), ConfigRecord({"lr": 0.1}), Nodes(count)))


def reply_to(message, arrays):
    return Message(RecordDict({"arrays": arrays}), reply_to=message)


def test_clients_are_told_the_norm_and_keep_their_settings(a_run):
    federation = Federation(clients=3, clients_per_round=2, rounds=2, noise_multiplier=1.0, max_norm=0.25)
    messages = asked(PrivateStrategy(federation))
    assert len({message.metadata.dst_node_id for message in messages}) == 2
    for message in messages:
        assert dict(message.content["config"]) == {"lr": 0.1, "server-round": 1, CLIP_NORM: 0.25}
        assert message.metadata.message_type == MessageType.TRAIN


def test_nobody_is_asked_to_evaluate():
    strategy = PrivateStrategy(Federation(clients=3, clients_per_round=2, rounds=2, noise_multiplier=1.0))
    assert list(strategy.configure_evaluate(1, model(), ConfigRecord(), Nodes(3))) == []
    assert strategy.aggregate_evaluate(1, []) is None


def test_odd_replies_add_nothing(a_run):
    strategy = PrivateStrategy(Federation(clients=3, clients_per_round=3, rounds=1, noise_multiplier=1e-9))
    first, second, third = asked(strategy)
    broken = ArrayRecord(
        {"a": Array("float32", (2, 3), "numpy.ndarray", b"no array"), "b": Array(np.zeros(4, np.float32))}
    )
    replies = [
        reply_to(first, ArrayRecord({"b": Array(np.ones(4)), "a": Array(np.ones((2, 3)))})),  # another order
        reply_to(second, broken),
        Message(RecordDict({}), reply_to=third),
    ]
    after, metrics = strategy.aggregate_train(1, replies)
    assert metrics is None
    assert np.abs(values(after)).max() < 1e-6
