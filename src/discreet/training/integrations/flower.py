"""Flower: a strategy whose rounds are private and paid for, and a client mod that clips.

The strategy asks, adds up and noises by ``federated.Federation``; the mod clips a client's update before it leaves, and
sends no metrics. The server clips again, so that the guarantee does not rest on the clients' code.

>>> from discreet.training.federated import Federation
>>> rounds = Federation(clients=100, clients_per_round=10, rounds=5, noise_multiplier=2.0)
>>> PrivateStrategy(rounds).federation.plan.steps
5
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from logging import INFO
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.random import system
from discreet.random.process import draw_from
from discreet.training.federated import Federation, clipped_update

with extra("flower"):
    from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MessageType, RecordDict
    from flwr.common.constant import ErrorCode
    from flwr.common.logger import log
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Result, Strategy
    from flwr.serverapp.strategy.strategy_utils import sample_nodes

__all__ = ["CLIP_NORM", "PrivateStrategy", "clip_update"]

CLIP_NORM = "clip-norm"
"""The entry of a round's configuration that tells clients the clip norm."""


class PrivateStrategy(Strategy):
    """Rounds of a ``Federation`` in a Flower ``ServerApp``: DP-FedAvg, or DP-FTRL where its noise is correlated.

    What clients say beside their arrays (metrics, numbers of examples) is not read: it would be released without noise.
    Federated evaluation is left out for the same reason; ``evaluate_fn`` is the caller's, for public data.
    """

    def __init__(self, federation: Federation, *, arrays_key: str = "arrays", config_key: str = "config") -> None:
        self.federation, self._keys = federation, (arrays_key, config_key)
        self._sent = ArrayRecord()

    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int | None = None, **options: Any) -> Result:
        """All rounds that are left of the plan, or fewer; more are refused before the first."""
        left = self.federation.plan.steps - self.federation.steps
        wanted = left if num_rounds is None else num_rounds
        if wanted > left:
            self.federation.plan.check(self.federation.plan.steps)
        return super().start(grid, initial_arrays, num_rounds=wanted, **options)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask the clients of a round. The first one waits until as many as were declared are connected."""
        _, connected = sample_nodes(grid, 0 if self.federation.steps else self.federation.plan.sampler.dataset_size, 0)
        asked = self.federation.ask(connected, arrays.to_numpy_ndarrays())
        self._sent = arrays
        settings = ConfigRecord({**config, "server-round": server_round, CLIP_NORM: self.federation.max_norm})
        content = RecordDict(dict(zip(self._keys, (arrays, settings), strict=True)))
        return [Message(content=content, message_type=MessageType.TRAIN, dst_node_id=node) for node in asked]

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[ArrayRecord, None]:
        """The model after the round; nothing else is released."""
        names, before = list(self._sent), self._sent.to_numpy_ndarrays()
        after = self.federation.next_arrays(before, self._updates(replies, names))
        return _record(names, after), None

    def _updates(self, replies: Iterable[Message], names: list[str]) -> Iterator[tuple[int, list[Any]]]:
        for reply in replies:
            records = [] if reply.has_error() else list(reply.content.array_records.values())
            if len(records) == 1 and list(records[0]) == names:
                try:
                    arrays = records[0].to_numpy_ndarrays()
                except Exception:  # bytes that are no array: as good as no answer, whoever sent them
                    continue
                yield reply.metadata.src_node_id, arrays

    def configure_evaluate(self, *_: Any, **__: Any) -> Iterable[Message]:
        """Nobody is asked: what clients would answer is not private."""
        return []

    def aggregate_evaluate(self, *_: Any, **__: Any) -> None:
        """Nothing."""
        return

    def summary(self) -> None:
        """What is public of the plan."""
        plan = self.federation.plan
        log(
            INFO, "\t└──> %d private rounds, %r, noise multiplier %.4g", plan.steps, plan.sampler, plan.noise_multiplier
        )


def clip_update(msg: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """A client mod: the update that leaves is at most as long as the server says, and nothing else leaves, not even the
    words of an error.

    Use it as the last one: ``ClientApp(mods=[..., clip_update])``.
    """
    if msg.metadata.message_type != MessageType.TRAIN:
        return call_next(msg, context)
    [sent], [config] = msg.content.array_records.values(), msg.content.config_records.values()
    norm, before, names = float(config[CLIP_NORM]), sent.to_numpy_ndarrays(), list(sent)
    try:
        with draw_from(system()):  # clients that share a process, as in a simulation, must not share its chance
            reply = call_next(msg, context)
    except Exception as error:  # what it says may tell of records, and engines write it into the server's log
        return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, type(error).__name__), reply_to=msg)
    if reply.has_error():
        return reply
    [(key, made)] = reply.content.array_records.items()
    after = [made[name].numpy() for name in names]
    update = clipped_update([np.asarray(new, np.float64) - old for new, old in zip(after, before, strict=True)], norm)
    moved = [(old + part).astype(old.dtype) for old, part in zip(before, update, strict=True)]
    reply.content = RecordDict({key: _record(names, moved)})
    return reply


def _record(names: list[str], arrays: list[Any]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(part)) for name, part in zip(names, arrays, strict=True)})
