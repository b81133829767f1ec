"""The workers of a desk: processes that are asked one question at a time, ended at the deadline, and started anew.

Decisions 571 and 572.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from discreet.desk.worker import serve
from discreet.errors import DiscreetError

__all__ = ["Job", "Workers"]

_LONGEST = 1 << 28  # bytes of an answer: a million groups have less
_LAST_WORDS = {"answer", "stopped", "failed"}
_CHANGED = "A source or a schema has changed: stop the desk, and start it anew, so that its owner is asked."
_PATIENCE = 300.0  # seconds for a worker to open the data and to compile what is compiled at its first use


@dataclass(slots=True)
class Job:
    """One question: how it is charged, and what comes of it.

    ``charge`` is given what the worker wants to be charged, and says whether it was: unless it was, nothing is read.
    ``outcome`` is the worker's last word; none, if it had none before the deadline, and was ended.
    """

    question: Mapping[str, Any]
    charge: Callable[[Mapping[str, Any]], bool]
    deadline: float
    outcome: Future[dict[str, Any] | None] = field(default_factory=Future)
    started: float = 0.0  # when a worker took it up, by the monotonic clock
    done: threading.Event = field(default_factory=threading.Event)  # the worker is free for the next


class Workers:
    """So many processes, each with a thread of the server that speaks to it and to nobody else."""

    def __init__(
        self, number: int, datasets: Mapping[str, tuple[str | None, ...]], memory: float, *, unconfined: bool = False
    ) -> None:
        self._arguments = (dict(datasets), memory, unconfined)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._starts: SimpleQueue[Mapping[str, Any] | Exception] = SimpleQueue()
        self._workers: list[_Worker] = []
        self.restarts = 0
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(number)]
        for thread in self._threads:
            thread.start()
        starts = [self._starts.get() for _ in self._threads]
        failures = [start for start in starts if isinstance(start, Exception)]
        if failures or any(start != starts[0] for start in starts):
            self.close()
            raise failures[0] if failures else DiscreetError(_CHANGED)
        assert isinstance(starts[0], Mapping)
        self._start = starts[0]
        self.facts: Mapping[str, Any] = self._start["ready"]
        self.places: Mapping[str, str | None] = self._start["places"]  # what databases call their tables
        self.schemas: Mapping[str, Any] = self._start["schemas"]

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that are alive."""
        return [number for worker in self._workers if (number := worker.number) is not None]

    def put(self, job: Job) -> None:
        """Queue a job: the first worker that is free takes it up."""
        self._jobs.put(job)

    def close(self) -> None:
        """End the workers; what they are at is charged and has no answer."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        worker = _Worker(self._arguments)
        self._workers.append(worker)
        try:
            self._starts.put(worker.start())
        except Exception as error:
            self._starts.put(error)
            return
        while (job := self._jobs.get()) is not None:
            if not job.outcome.set_running_or_notify_cancel():  # nobody waits for it any more, and nothing was charged
                continue
            try:
                if not worker.is_alive():
                    self.restarts += 1
                    if worker.start() != self._start:
                        raise DiscreetError(_CHANGED)
                job.started = time.monotonic()
                outcome = worker.ask(job)
            except Exception:  # the data was moved or changed, or memory is short: the next job tries again
                job.started = job.started or time.monotonic()
                worker.kill()
                outcome = None
            job.outcome.set_result(outcome)
            job.done.wait()  # until the answer has left: when this worker is free is nobody's news
        worker.kill()


class _Worker:
    """One process and our end of its pipe."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments
        self._process: Any = None
        self._pipe: Connection | None = None

    @property
    def number(self) -> int | None:
        """The process's, where there is one."""
        return self._process.pid if self.is_alive() else None

    def is_alive(self) -> bool:
        return self._process is not None and bool(self._process.is_alive())

    def start(self) -> Mapping[str, Any]:
        """A new process, when it has opened the data: what is public of them, and what they call themselves."""
        self.kill()
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, *self._arguments), daemon=True)
        self._process.start()
        other.close()
        message = self._receive(time.monotonic() + _PATIENCE)
        if message is None or "ready" not in message:
            self.kill()
            reason = "it did not start" if message is None else message.get("failed")
            raise DiscreetError(f"A worker cannot open the data: {reason}")
        return message

    def ask(self, job: Job) -> dict[str, Any] | None:
        """The worker's last word about a question; none if it had none before the deadline, and was ended."""
        until = job.started + job.deadline
        self._send({"ask": job.question})
        message = self._receive(until)
        if message is not None and "charge" in message:
            self._send({"go": job.charge(message["charge"])})
            message = self._receive(until)
        if message is None or not _LAST_WORDS & set(message):  # out of step: a new process takes its place
            self.kill()
            return None
        return message

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._pipe is not None
        self._pipe.send_bytes(json.dumps(message).encode())

    def _receive(self, until: float) -> dict[str, Any] | None:
        """What the worker says before a time; none if it says nothing, or is gone."""
        assert self._pipe is not None
        try:
            if not self._pipe.poll(max(0.0, until - time.monotonic())):
                return None
            message = json.loads(self._pipe.recv_bytes(_LONGEST))
        except (EOFError, OSError, ValueError):
            return None
        return message if isinstance(message, dict) else None

    def kill(self) -> None:
        """End the process, whatever it is at."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
