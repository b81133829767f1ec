"""What a worker may not do once it has opened its data: reach the network, start programs, use more memory than it was
given, leave a core file. The kernel refuses it (seccomp, resource limits), whatever runs in the process.

Where the kernel cannot be asked, a worker refuses to start, unless the owner has written ``unconfined = true``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import socket
import struct
import sys
from pathlib import Path

__all__ = ["confine", "die_with_parent"]

# by machine: the architecture's number for the kernel's audit, the call that sets a filter, and the calls refused:
# socket, connect, execve, execveat, ptrace, process_vm_readv, process_vm_writev, io_uring_setup, pidfd_getfd (which
# takes an open socket from another process)
_MACHINES = {
    "x86_64": (0xC000003E, 317, (41, 42, 59, 322, 101, 310, 311, 425, 438)),
    "aarch64": (0xC00000B7, 277, (198, 203, 221, 281, 117, 270, 271, 425, 438)),
}
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT = 38, 1  # of prctl
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # of the kernel's filter language
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # with "operation not permitted"
_OTHER_CALLS = 0x40000000  # from here on a second set of numbers means the same calls on x86_64


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def die_with_parent() -> None:
    """A worker never outlives the server: what it was paid for could no longer be stored."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def confine(memory: int) -> None:
    """Refuse network, programs, core files, and more than ``memory`` bytes beyond what is used now; then check."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _refuse_calls()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        socket.socket().close()
    except PermissionError:
        return
    raise RuntimeError("The kernel took the filter, but a socket can still be opened.")


def _refuse_calls() -> None:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _MACHINES:
        raise RuntimeError(f"There is no filter for {sys.platform} on {machine}.")
    architecture, number, refused = _MACHINES[machine]
    steps = [(_EQUAL, call) for call in refused] + [(_AT_LEAST, _OTHER_CALLS)]
    program = [
        struct.pack("HBBI", _LOAD, 0, 0, 4),
        struct.pack("HBBI", _EQUAL, 0, len(steps) + 2, architecture),  # another one's numbers mean other calls
        struct.pack("HBBI", _LOAD, 0, 0, 0),
        *(struct.pack("HBBI", code, len(steps) - place, 0, call) for place, (code, call) in enumerate(steps)),
        struct.pack("HBBI", _RETURN, 0, 0, _ALLOW),
        struct.pack("HBBI", _RETURN, 0, 0, _REFUSE),
    ]
    library = ctypes.CDLL(None, use_errno=True)
    text = b"".join(program)
    holder = _Program(len(program), text)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if library.syscall(number, 1, 1, ctypes.byref(holder)):  # for all threads of the process
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
