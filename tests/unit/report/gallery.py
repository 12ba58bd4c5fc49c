"""Runs of every kind that a report has to read well for, by name."""

from __future__ import annotations

from typing import Any

from hotlap.account import summarise
from hotlap.values.record import DevicePhase, Fault, Fetches, Place, Process, Record, Touch
from hotlap.values.summary import RunSummary
from unit.account.records import (
    MS,
    SECOND,
    Trainer,
    accounts,
    fetches,
    going,
    loader,
    plain_step,
    record,
    sample,
)

FACTS: dict[str, Any] = {
    "cores_allowed": 2.0,
    "cores_visible": 8,
    "cpus": [0, 1],
    "gpus_absent": "no NVIDIA driver: NVML library not found",
}


def _samples(begin_ns: int, end_ns: int, busy: float = 0.6, **last: Any) -> tuple[Any, ...]:
    span = end_ns - begin_ns
    first: dict[str, Any] = dict.fromkeys(last, 0)
    begin = sample(begin_ns, [0, 0], facts=FACTS, tree_rss_bytes=10**9, **first)
    ends = [int(span * busy), int(span * min(1.0, busy * 1.3))]
    return begin, sample(end_ns, ends, tree_rss_bytes=1_380_000_000, **last)


def plain() -> Record:
    """A healthy training with an evaluation and a checkpoint per epoch."""
    trainer = Trainer().begin(other=400 * MS)
    for at in range(300):
        edge = at % 100 == 99
        carved = {"evaluation": 90 * MS, "checkpoint": 40 * MS, "epoch_edge": 20 * MS}
        scale = (5.0 if at < 12 else 1.0) * (0.96 + 0.02 * (at * 7 % 5))
        trainer.tick(plain_step(scale, **(carved if edge else {})), epoch_first=at % 100 == 0)
    trainer.farewell(other=60 * MS)
    touches = (
        Touch("sync", "item", Place("train.py", 61, "main"), 300, 9 * MS),
        Touch("checkpoint", "torch.save", Place("train.py", 80, "main"), 3, 110 * MS, 40_000_000),
        Touch("logging", "print", Place("train.py", 63, "main"), 30, MS),
    )
    given = fetches(worker=None, ipc_ns=None)
    process = trainer.build(loaders=(loader(workers=0),), fetches=(given,), touches=touches)
    return record(process, samples=_samples(2500 * MS, 5 * SECOND))


def gan() -> Record:
    """Five critic steps, then one generator step."""
    trainer = Trainer().begin(other=400 * MS)
    for at in range(200):
        for optimizer in (0, 0, 0, 0, 0, 1):
            scale = (0.3 + optimizer * 0.4) * (0.96 + 0.02 * (at * 7 % 5))
            trainer.tick(plain_step(scale), optimizer)
    return record(trainer.farewell(other=60 * MS).build(loaders=(loader(),), fetches=_two()))


def _two(**fields: Any) -> tuple[Fetches, ...]:
    return tuple(fetches(worker=worker, **fields) for worker in (0, 1))


def workers() -> Record:
    """The loop waits for two workers that are busy."""
    trainer = Trainer().begin(other=400 * MS).steps(400, data_wait=6 * MS, forward=4 * MS)
    loaders = (loader(), loader(ordinal=1, dataset="Held", role="evaluation", workers=0))
    process = trainer.farewell(other=60 * MS).build(
        loaders=loaders, fetches=_two(), unpack_ns=5 * MS
    )
    last = {"disk_read_bytes": 120_000_000, "net_bytes": 1000}
    return record(process, samples=_samples(2500 * MS, 6 * SECOND, 0.98, **last))


def killed() -> Record:
    """Killed by the system in the middle."""
    trainer = Trainer().begin(other=400 * MS).steps(90)
    fault = Fault("tensor_read", "AttributeError: no attribute 'item'", 3 * SECOND)
    process = trainer.build(loaders=(loader(),), fetches=_two(), faults=(fault,))
    return record(process, exit_ns=10 * SECOND, exit_code=-9, damage=("a torn tail of 17 bytes",))


def inference() -> Record:
    """No optimizer at all: steps are batches of the loader."""
    trainer = Trainer().begin(other=400 * MS)
    for at in range(120):
        spent = accounts(data_wait=MS, forward=(8 + at % 3) * MS, other=MS // 4)
        trainer.tick(spent, rule="loader")
    return record(trainer.farewell(other=60 * MS).build(loaders=(loader(),), fetches=_two()))


def ranks(count: int = 2) -> Record:
    """Data parallel processes, of which the last one waits for data."""

    def rank(number: int) -> Process:
        trainer = Trainer(rank=number, local_rank=number, world_size=count, pid=100 + number)
        wait = 5 * MS if number == count - 1 else MS // 2
        trainer.begin(other=400 * MS).steps(
            200, data_wait=wait, forward=2 * MS, backward=8 * MS - wait
        )
        return trainer.farewell(other=60 * MS).build(loaders=(loader(),), fetches=_two())

    return record(*map(rank, range(count)), command=("torchrun", "--nproc-per-node=2", "ddp.py"))


def cuda() -> Record:
    """A made-up training on a GPU, with device times."""
    trainer = Trainer(device="cuda:0").begin(other=3 * SECOND, compile=11 * SECOND)
    trainer.steps(
        500, data_wait=MS, transfer=2 * MS, forward=3 * MS, backward=4 * MS, optimizer=MS, other=MS
    )
    touches = (
        Touch("transfer", "to", Place("train.py", 55, "main"), 1000, 900 * MS, 10**9),
        Touch("sync", "item", Place("train.py", 61, "main"), 500, 450 * MS),
    )
    device = (DevicePhase("forward", 50, 120 * MS), DevicePhase("backward", 50, 190 * MS))
    process = trainer.farewell(other=60 * MS).build(
        loaders=(loader(),), fetches=_two(), touches=touches, device_phases=device
    )
    reading = {
        "index": 0,
        "busy_share": 0.62,
        "memory_used_bytes": 31_000_000_000,
        "memory_total_bytes": 150_000_000_000,
        "power_mw": 412_000,
        "sm_clock_hz": 1_755_000_000,
        "throttled_by": ["software power cap"],
    }
    facts = {**FACTS, "gpus": [{"index": 0, "name": "NVIDIA H200"}]}
    begin = sample(17 * SECOND, [0, 0], facts=facts) | {"gpus": [reading]}
    end = sample(20 * SECOND, [SECOND, 2 * SECOND]) | {"gpus": [reading]}
    return record(process, samples=(begin, end))


def young() -> Record:
    """A run that still goes on."""
    return going(workers())


def absent() -> Record:
    """A command without any training in it."""
    return record(exit_ns=3 * SECOND, exit_code=1, seen=({"pid": 7, "torch": None},))


RECORDS = {
    "plain": plain,
    "gan": gan,
    "workers": workers,
    "killed": killed,
    "inference": inference,
    "ranks": ranks,
    "cuda": cuda,
    "young": young,
    "absent": absent,
}


def summary(name: str) -> RunSummary:
    """Return the summary of the record of that name."""
    return summarise(RECORDS[name]())
