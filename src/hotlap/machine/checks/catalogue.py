"""All checks, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hotlap.machine.checks import devices, environment, facilities, processor, room
from hotlap.machine.checks.check import Check
from hotlap.machine.checks.surroundings import Surroundings

CATALOGUE: Final[tuple[Callable[[Surroundings], Check | tuple[Check, ...]], ...]] = (
    processor.system,
    processor.cores_usable,
    processor.throttling,
    processor.load,
    processor.vectors,
    processor.bf16,
    room.memory,
    room.swap,
    room.shared_memory,
    room.storage,
    devices.gpus,
    environment.python,
    environment.torch,
    environment.threads,
    environment.hooks,
    environment.compiler,
    environment.allocators,
    environment.decoders,
    facilities.run_queue,
    facilities.thread_io,
    facilities.pressure,
    facilities.namespaces,
)


def judge(seen: Surroundings) -> tuple[Check, ...]:
    """Return what each check says; pure."""
    checks: list[Check] = []
    for check in CATALOGUE:
        said = check(seen)
        checks.extend((said,) if isinstance(said, Check) else said)
    return tuple(checks)
