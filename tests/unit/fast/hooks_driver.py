"""Plays trainings at random, and prints what the watchers made of them; without torch.

Arguments: the folder of hotlap's source, how to watch (``compiled``; ``wrapped``: wrappers in
Python on the compiled state; ``pure``: nothing compiled; each with ``-device`` behind it: a build
with a device, whose clock samples steps), a scratch folder, the seeds.
The same seed is the same story, on a clock that only the story moves.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [sys.argv[1], str(Path(__file__).parents[2])]
# Imports below obey what stands above them.
from hotlap.fast import switch  # noqa: E402
from unit.fast import stand_in  # noqa: E402

HOW, _, DEVICE = sys.argv[2].partition("-")
switch.off = HOW == "pure"
from hotlap.fast import choice, reference  # noqa: E402
from hotlap.probe import (  # noqa: E402
    compiled,
    fetches,
    journal,
    models,
    optimizers,
    recorder,
    timeline,
    touches,
)
from hotlap.sites import (  # noqa: E402
    autograd,
    data_fetcher,
    data_loader,
    module_call,
    module_mode,
    optimizer_step,
    tensor_read,
)
from hotlap.sites.hub import Hub  # noqa: E402
from hotlap.sites.patches import Patches  # noqa: E402
from unit.probe.device_fakes import FakeCuda, parameter  # noqa: E402

SITES = (autograd, data_fetcher, data_loader, module_call, module_mode, optimizer_step, tensor_read)
torch: Any = stand_in.torch


class Story:
    """One training. Each deed moves the clock, and may hold other deeds or raise."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = stand_in.Module(stand_in.Module(), stand_in.Module())
        self.teacher = stand_in.Module()
        self.optimizers = [stand_in.Optimizer(), stand_in.Optimizer()]
        self.loaders = [stand_in.DataLoader(), stand_in.DataLoader()]
        self.iterators: list[Any] = []
        self.tensor = stand_in.Tensor()
        self.deeds: list[Callable[[int], Any]] = [
            *[self.step] * 6,
            *[self.forward] * 2,
            self.teach,
            *[self.back] * 2,
            self.zero,
            self.optimize,
            *[self.batch] * 3,
            self.begin_epoch,
            self.read,
            self.mode,
            self.without_gradients,
            self.elsewhere,
        ]

    def play(self, length: int) -> None:
        """Do so many deeds."""
        for _ in range(length):
            self.do(self.chance.choice(self.deeds), 0)

    def do(self, deed: Callable[[int], Any], depth: int) -> None:
        """Do one; what it raises ends it, as in a script that goes on."""
        with contextlib.suppress(stand_in.Refused, StopIteration):
            deed(depth)

    def work(self, depth: int) -> Callable[[], int]:
        """Return what happens inside of a deed."""
        raises = self.chance.random() < 0.05
        inner = self.chance.choice(self.deeds) if self.chance.random() < 0.25 else None
        before, after = self.chance.randrange(1000), self.chance.randrange(1000)

        def happen() -> int:
            clock.now += before
            if inner is not None and depth < 4:
                self.do(inner, depth + 1)
            clock.now += after
            if raises:
                raise stand_in.Refused
            return 1

        return happen

    def step(self, depth: int) -> None:
        """Do what a training does in a plain step."""
        if depth:
            return
        for deed in (self.batch, self.zero, self.forward, self.back, self.optimize, self.read):
            clock.now += self.chance.randrange(100)
            self.do(deed, 3)

    def forward(self, depth: int) -> None:
        """Call the model, whose parts are called inside."""
        work, part = self.work(depth), self.chance.choice(self.model.parts)
        self.model(lambda: part(work))

    def teach(self, depth: int) -> None:
        """Call another model."""
        self.teacher(self.work(depth))

    def back(self, depth: int) -> None:
        """Run a backward pass."""
        self.chance.choice((torch.autograd.backward, torch.autograd.grad))(self.work(depth))

    def zero(self, depth: int) -> None:
        """Clear gradients."""
        self.optimizers[0].zero_grad(work=self.work(depth))

    def optimize(self, depth: int) -> None:
        """Step an optimizer, mostly the first."""
        which = self.optimizers[self.chance.random() < 0.1]
        which.step(self.work(depth))

    def begin_epoch(self, depth: int) -> None:
        """Begin to iterate over a loader, with few batches or many."""
        loader = self.loaders[self.chance.random() < 0.2]
        loader.work = [self.work(depth) for _ in range(self.chance.choice((2, 9, 200)))]
        self.iterators.append(iter(loader))  # kept, so that no id comes twice

    def batch(self, depth: int) -> None:
        """Take a batch, from the latest iterator mostly."""
        if not self.iterators:
            self.begin_epoch(depth)
        next(self.chance.choice(self.iterators[-2:]) if depth else self.iterators[-1])

    def read(self, depth: int) -> None:
        """Read a tensor, in one of several places."""
        self.tensor.work = self.work(depth)
        match self.chance.randrange(5):
            case 0 | 1:
                self.tensor.item()
            case 2:
                assert self.tensor.tolist() == 1
            case 3:
                assert bool(self.tensor)
            case 4:
                assert float(self.tensor) == 1.0

    def mode(self, depth: int) -> None:
        """Switch the model to training or evaluation."""
        if depth == 0:
            self.model.train(self.chance.random() < 0.8)

    def without_gradients(self, depth: int) -> None:
        """Call a model without gradients."""
        stand_in.gradients[0] = False
        try:
            self.chance.choice((self.model, self.teacher))(self.work(depth))
        finally:
            stand_in.gradients[0] = True

    def elsewhere(self, depth: int) -> None:
        """Do something in another thread, and wait for it."""
        deed = self.chance.choice(self.deeds)
        thread = threading.Thread(target=self.do, args=(deed, depth + 3))
        thread.start()
        thread.join()


class Clock:
    """Stands for all clocks."""

    now = 1_000_000_000

    def read(self) -> int:
        """Return the time."""
        return self.now


clock = Clock()


class Device(FakeCuda):
    """A device that works 300 ns for each phase, on the story's clock."""

    def __init__(self) -> None:
        super().__init__()
        del self.now

    def __getattr__(self, name: str) -> int:
        return clock.now if name == "now" else 0

    def get_device_name(self) -> str:
        """Return its name."""
        return "simulated"

    def current_device(self) -> int:
        """Return its number."""
        return 0


def with_device() -> None:
    """Let torch be built for a device that each story begins anew with."""
    torch.version.cuda = "12.8"
    torch.cuda = Device()
    stand_in.Module.parameters = lambda _: iter((parameter(),))
    stand_in.Optimizer.param_groups = [{"params": [parameter()]}]


def told(seed: int, scratch: Path) -> dict[str, Any]:
    """Play a story under all watchers; return what they know in the end."""
    clock.now = 1_000_000_000
    if DEVICE:
        with_device()
    ticks: list[Any] = []
    calls = itertools.count()
    record = recorder.Recorder(scratch / str(seed), str(Path(__file__).parent), 1)
    record.journal._digest = ticks.append  # type: ignore[assignment,method-assign]
    record.fetches._chance = random.Random(seed).random
    faults: list[str] = []
    hub, patches = Hub(lambda name, error: faults.append(f"{name}: {error!r}")), Patches()
    record.attach(hub)
    for name in ("backward", "zero_grad", "optimizer_step", "module_call", "batch", "fetch"):
        channel = hub.channel(name)
        begin, end = channel._subscribers[0]
        channel._subscribers[0] = (_counted(begin, calls), end)
    for site in SITES:
        site.install(hub, patches)
    Story(seed).play(400)
    patches.undo()
    record.journal._digest_kept()
    ledger, line, fetched = record.ledger, record.timeline, record.fetches
    ledger.settle()
    return {
        "faults": faults,
        "ticks": ticks,
        "accounts": list(ledger.accounts),
        "main": list(line.main),
        "open": [ledger.current, *ledger.stack],
        "counts": [list(line.counts), list(line.totals), list(line.base), line.rank, line.ticks],
        "flags": [line.at_edge, line.epoch_first, line.stepped_inside, line.stretch is None],
        "reads": sorted(
            [list(map(str, key[1:2] + key[3:])), list(entry)]
            for key, entry in record.touches._table.items()
        ),
        "fetches": [fetched.to_skip, fetched.skipped, fetched.skipping, fetched.open is None],
        "loaders": [[k.trains, k.evaluates, k.fresh] for _, k in record.loaders._known.values()],
        "device": [record.device.taken, record.device.resolved, record.device.dropped],
        "turns": [tick for tick, _ in record.device._turns._begun],
        "device_ns": sorted(record.device._times.items()),
        "calls": next(calls),
    }


def _counted(begin: Any, calls: Any) -> Any:
    def counting(subject: Any) -> Any:
        next(calls)
        return begin(subject)

    return counting


def main() -> None:
    """Print one line for each seed."""
    for module in (reference, fetches, journal, optimizers, timeline, touches, models):
        for reader in ("perf_counter_ns", "thread_time_ns"):
            if hasattr(module, reader):
                setattr(module, reader, clock.read)
    if choice.hooks is not None:
        choice.hooks.set_clock(clock.read)
    if HOW != "pure" and choice.hooks is None:
        raise SystemExit(f"no compiled hooks: {choice.because}")
    if HOW == "wrapped":
        compiled.offer = lambda *_: None
    for seed in map(int, sys.argv[4:]):
        print(json.dumps(told(seed, Path(sys.argv[3]))), flush=True)


main()
