"""A stand-in for ``torch.cuda`` at its boundary, with a simulated device behind it.

The host has a clock of its own, which a test moves on. A stream works through its kernels in
order, each as soon as the one before is done and the host has sent it. An event is reached when
the stream has done all that was sent before it. Whatever waits for the device, or asks it while
a graph is captured, or before it is initialised, fails the test at once.
"""

from __future__ import annotations

import contextlib
import importlib
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotlap.probe.device import DeviceClock
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import Ledger
from hotlap.probe.models import Models
from hotlap.probe.optimizers import Optimizers
from hotlap.probe.timeline import Timeline
from hotlap.runs import frames
from hotlap.runs.recording import Recording
from hotlap.sites.hub import Hub
from hotlap.sites.tensor_copy import Move

US = 1000
MOVED = Move("cpu", "cuda", True, True, 4096)


class Stream:
    """A queue of kernels on one device; ``free_at`` is when it will have done them all."""

    def __init__(self, device: int) -> None:
        self.device_index = device
        self.free_at = 0

    def synchronize(self) -> None:
        raise AssertionError("a stream was waited for")


class Event:
    """What ``torch.cuda.Event`` is: bound to a device when recorded first."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self._device: int | None = None
        self._at: int | None = None

    def record(self, stream: Stream) -> None:
        self._cuda.called("record")
        if self._device not in (None, stream.device_index):
            raise RuntimeError("Event device does not match recording stream's device.")
        self._device = stream.device_index
        self._at = max(self._cuda.now, stream.free_at)

    def query(self) -> bool:
        self._cuda.called("query")
        return self._at is None or (not self._cuda.stuck and self._at <= self._cuda.now)

    def elapsed_time(self, end: Event) -> float:
        self._cuda.called("elapsed_time")
        assert self._at is not None
        assert end._at is not None
        assert max(self._at, end._at) <= self._cuda.now, "an unfinished event was read"
        return (end._at - self._at) / 1e6

    def synchronize(self) -> None:
        raise AssertionError("an event was waited for")


class FakeCuda:
    """``torch.cuda``: what the probe calls of it, counted, and a few traps."""

    def __init__(self) -> None:
        self.now = 0
        self.initialized = True
        self.in_capture = False
        self.stuck = False
        self.broken: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.streams = {0: Stream(0), 1: Stream(1)}

    def called(self, name: str) -> None:
        assert self.initialized, f"{name} would initialise CUDA"
        assert not self.in_capture, f"{name} while a graph is captured"
        self.calls[name] += 1
        if name in self.broken:
            raise RuntimeError(f"CUDA error: {name} failed\nCompile with ...")

    def launch(self, ns: int, device: int = 0) -> None:
        stream = self.streams[device]
        stream.free_at = max(self.now, stream.free_at) + ns

    # what stands at the boundary
    def is_initialized(self) -> bool:
        return self.initialized

    def is_current_stream_capturing(self) -> bool:
        return self.in_capture

    def current_stream(self, device: int | None = None) -> Stream:
        self.called("current_stream")
        return self.streams[device or 0]

    def Event(self, enable_timing: bool = False) -> Event:
        self.called("Event")
        assert enable_timing
        return Event(self)

    def synchronize(self) -> None:
        raise AssertionError("the device was waited for")


def fake_torch(cuda: FakeCuda, build: str | None = "12.8", hip: str | None = None) -> Any:
    return types.SimpleNamespace(
        cuda=cuda,
        version=types.SimpleNamespace(cuda=build, hip=hip),
        compiler=types.SimpleNamespace(is_compiling=lambda: False),
        _C=types.SimpleNamespace(DisableTorchFunction=contextlib.nullcontext),
    )


def parameter(kind: str = "cuda", index: int | None = 0) -> Any:
    return types.SimpleNamespace(device=types.SimpleNamespace(type=kind, index=index))


class Model:
    """What a module shows to the probe."""

    training = True

    def __init__(self, *parameters: Any) -> None:
        self._parameters = parameters or (parameter(),)

    def parameters(self) -> Iterator[Any]:
        return iter(self._parameters)

    def modules(self) -> Iterator[Any]:
        return iter((self,))


class Optimizer:
    """What an optimizer shows to the probe."""

    def __init__(self) -> None:
        self.param_groups = [{"params": [parameter()]}]


class Loop:
    """A training loop whose phases are told to the real watchers through the real channels."""

    def __init__(self, tmp_path: Path, cuda: FakeCuda, torch: Any = None) -> None:
        importlib.import_module("torch")  # models' watcher asks the real one for its grad mode
        self.cuda = cuda
        self.file = tmp_path / "process"
        self.faults: list[str] = []
        self.hub = Hub(lambda site, _: self.faults.append(site))
        self.ledger = Ledger()
        self.journal = Journal(Recording(self.file, "process"))
        self.timeline = Timeline(self.ledger, self.journal)
        Models(self.ledger, self.timeline).attach(self.hub)
        Optimizers(self.ledger, self.timeline).attach(self.hub)
        self.torch = torch or fake_torch(cuda)
        self.clock = DeviceClock(self.ledger, self.timeline, self.journal, self.torch)
        self.clock.attach(self.hub)
        self.model = Model()
        self.optimizer = Optimizer()

    @contextlib.contextmanager
    def phase(self, channel: str, subject: Any = None, ended: Any = None) -> Iterator[None]:
        begin, end = self.hub.channel(channel).ends()
        token = begin(subject)
        yield
        if token:
            end(token, subject if ended is None else ended)

    def work(self, host_ns: int, device_ns: int, device: int = 0) -> None:
        """Send kernels, then let the host be busy with other things."""
        self.cuda.launch(device_ns, device)
        self.cuda.now += host_ns

    def forward(self, host_ns: int = US, device_ns: int = 300 * US, model: Any = None) -> None:
        with self.phase("module_call", model or self.model):
            self.work(host_ns, device_ns)

    def backward(self, host_ns: int = US, device_ns: int = 600 * US) -> None:
        with self.phase("backward"):
            self.work(host_ns, device_ns)

    def update(self, host_ns: int = US, device_ns: int = 100 * US, optimizer: Any = None) -> None:
        with self.phase("optimizer_step", optimizer or self.optimizer):
            self.work(host_ns, device_ns)

    def copy(self, host_ns: int = US, device_ns: int = 50 * US, moved: bool = True) -> None:
        begin, end = self.hub.channel("tensor_copy").ends()
        token = begin(None)
        self.work(host_ns, device_ns)
        if token:
            end(token, MOVED if moved else None)

    def step(self) -> None:
        self.forward()
        self.backward()
        self.update()

    def catch_up(self) -> None:
        """Let the host be idle until the device has done everything."""
        self.cuda.now = max(self.cuda.now, *(one.free_at for one in self.cuda.streams.values()))

    def written(self, tag: str) -> list[Any]:
        """Close the record and return its frames of one tag."""
        self.journal.close(self.ledger.settle(), [])
        found = frames.decode(self.file.read_bytes())
        return [one.json() for one in found if not isinstance(one, str) and one.tag == tag]

    def per_step(self) -> dict[str, float]:
        """Return the device time per step of each phase, in microseconds, as it was written."""
        rows = self.written("devc")[-1]
        return {row["phase"]: row["ns"] / row["steps"] / US for row in rows}
