"""A round at Flower's server and client, private over plain: processor time of adding up ten updates, and of the mod.

Runs where Flower is: ``.venv-flower/bin/python -m benchmarks flower``, after ``make test-flower``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

CLIENTS, PARAMETERS, TIMES = 10, 1_000_000, 3


def least(work: Callable[[], Any]) -> float:
    found = []
    for _ in range(TIMES):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    if find_spec("flwr") is None:
        print("\nFlower has an environment of its own: .venv-flower/bin/python -m benchmarks flower")
        return
    measured()


def measured() -> None:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp.strategy import FedAvg
    from flwr.supercore.task_identity import TaskIdentity

    from discreet.training.federated import Federation
    from discreet.training.integrations.flower import PrivateStrategy, clip_update

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # messages carry it

    class Nodes:
        def get_node_ids(self) -> range:
            return range(1, CLIENTS + 1)

    model = ArrayRecord({"w": Array(np.zeros(PARAMETERS, np.float32))})
    trained = ArrayRecord({"w": Array(np.full(PARAMETERS, 0.01, np.float32))})
    rounds = Federation(clients=CLIENTS, clients_per_round=CLIENTS, rounds=100, noise_multiplier=1.0)
    private, plain = PrivateStrategy(rounds), FedAvg()

    def asked() -> list[Message]:
        return list(private.configure_train(1, model, ConfigRecord(), Nodes()))  # type: ignore[arg-type]

    def answer(message: Message) -> Message:
        told = MetricRecord({"num-examples": 10})
        return Message(RecordDict({"arrays": trained, "metrics": told}), reply_to=message)

    replies = [answer(message) for message in asked()]
    ordinary = least(lambda: plain.aggregate_train(1, replies))
    ours = least(lambda: (asked(), private.aggregate_train(1, replies)))
    [message, *_] = asked()
    mod = least(lambda: clip_update(message, None, lambda msg, _: answer(msg))) - least(lambda: answer(message))
    print(f"\nFlower, {CLIENTS} clients, {PARAMETERS:,} parameters, processor time on one thread\n")
    print("| server: adding up, plain | private | client: the mod |\n|---|---|---|")
    print(f"| {ordinary:.3f} s | {ours:.3f} s | {mod:.3f} s |")


if __name__ == "__main__":
    main()
