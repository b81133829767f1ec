"""Real processes in a gloo group, started from one server that has loaded torch already."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

TIMEOUT = 50  # seconds a rank waits for another; nothing here takes as long unless a rank is gone


def _rank(function, rank, count, place, args, answer: Connection):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{place}", rank=rank, world_size=count, timeout=timedelta(seconds=TIMEOUT)
    )
    try:
        found = True, function(rank, count, *pickle.loads(args))
    except Exception:
        found = False, traceback.format_exc()
    try:
        answer.send_bytes(pickle.dumps(found))  # not by shared memory, as torch would: this process ends
    finally:
        answer.close()
        if dist.is_initialized():
            dist.destroy_process_group()


def on_ranks(count, function, *args, dying=()):
    """What ``function(rank, count, *args)`` gives on each rank; none from those that are meant to die."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["discreet.training.private", "torch.distributed.fsdp", "torch.distributed.tensor"])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        started = []
        for rank in range(count):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_rank, args=(function, rank, count, place, pickle.dumps(args), there))
            process.start()
            there.close()
            started.append((process, here))
        answers = []
        for rank, (_, here) in enumerate(started):
            try:
                answers.append(pickle.loads(here.recv_bytes()))
            except EOFError:
                answers.append((rank in dying, None))
        for process, _ in started:
            process.join(TIMEOUT)
            assert not process.is_alive()
    for rank, (fine, answer) in enumerate(answers):
        assert fine, f"rank {rank}: {answer}"
    return [answer for _, answer in answers]
