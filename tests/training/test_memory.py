"""Memory between steps: what the heap keeps, what it gives back, and buffers that are outside it."""

import subprocess
import sys

import pytest
import torch

from discreet.training import memory

STEPS = """
import resource, torch
from discreet.training import memory

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20

def step():
    del [torch.ones(1 << 19) for _ in range(12)][:]  # 24 MB, as a small network's step takes and frees them

memory.keep_freed_memory()
before = resident()
for _ in range(3):
    step()
kept = resident() - before
memory.return_freed_memory()
print(kept, resident() - before)
"""


def test_room_is_asked_for_once_and_freed(monkeypatch):
    """The small sibling of what follows: a block below the size that is mapped by itself, and nothing holds it."""
    asked = []
    monkeypatch.setattr(torch, "empty", lambda size, dtype: asked.append(size * dtype.itemsize))
    memory.keep_freed_memory()
    assert asked == [memory.LARGEST // 2]


@pytest.mark.slow(sibling="test_room_is_asked_for_once_and_freed")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts resident pages as Linux does")
def test_a_settled_heap_keeps_what_a_step_frees_until_it_is_given_back():
    """In a process of its own; without settling it keeps 2 MB or all of it, as things happen to lie."""
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    kept, left = map(float, done.stdout.split())
    assert kept > 20
    assert left < 4


@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 22) - 1, (1 << 22) + 1, (1 << 23) + 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_buffer_has_its_size_whatever_it_was_cut_from(size, dtype):
    (found,) = memory.Room([(torch.Size([size]), dtype, torch.device("cpu"))]).fresh()
    assert found.shape == (size,)
    assert found.dtype == dtype
    assert found.is_contiguous()
    assert found.storage_offset() == 0


def test_what_a_machine_lacks_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "_returning", list)
    memory.return_freed_memory()
