"""What a process says of itself when hotlap has come in."""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
from typing import Any

from hotlap.values.secrets import redacted


def process_start_ns() -> int:
    """Return the monotonic instant at which this process began; now where Linux tells not."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as handle:
            fields = handle.read().rpartition(")")[2].split()
        boot_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        # Field 22 counts from boot, with suspend; the monotonic clock stops in suspend.
        skew = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        return boot_ns - skew
    except (OSError, IndexError, ValueError, AttributeError):
        return time.monotonic_ns()


def rank_of(environ: Any, name: str) -> int | None:
    """Return a rank variable as a number, None when it is absent or no number."""
    value = environ.get(name, "")
    return int(value) if value.isdigit() else None


def hello(start_ns: int) -> dict[str, Any]:
    """Return the first record of a process; costs well under a millisecond."""
    environ = os.environ
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "rank": rank_of(environ, "RANK"),
        "local_rank": rank_of(environ, "LOCAL_RANK"),
        "world_size": rank_of(environ, "WORLD_SIZE"),
        "argv": list(redacted(list(getattr(sys, "orig_argv", sys.argv))))[:64],
        "python": platform.python_version(),
        "start_ns": start_ns,
        "wall_time": time.time(),
    }


def torch_facts(torch: Any) -> dict[str, Any]:
    """Return what can be asked of torch without initialising a device."""
    build = torch.version
    return {
        "torch": str(torch.__version__),
        "cuda_build": build.cuda,
        "hip_build": build.hip,
    }


def training_facts(torch: Any) -> dict[str, Any]:
    """Return what is known once training runs: device in use, threads, ranks."""
    facts: dict[str, Any] = {"threads": torch.get_num_threads()}
    facts["interop_threads"] = torch.get_num_interop_threads()
    cuda = torch.cuda
    if cuda.is_initialized():
        facts["device"] = "cuda"
        facts["device_name"] = cuda.get_device_name()
        facts["device_index"] = cuda.current_device()
    else:
        facts["device"] = "cpu"
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        facts["rank"] = distributed.get_rank()
        facts["world_size"] = distributed.get_world_size()
        facts["backend"] = str(distributed.get_backend())
    return facts
