"""Checks of the system and its cores."""

from __future__ import annotations

from typing import Final

from hotlap.machine.checks.check import Check, cores
from hotlap.machine.checks.surroundings import Surroundings

_TAKEN: Final = 0.1
"""Part of the cores that we may use that others must take before it is worth a word."""


def system(seen: Surroundings) -> Check:
    """The operating system: Linux is whole, macOS has parts, Windows needs WSL."""
    where = f"{seen.system} {seen.release}, {seen.architecture}"
    if seen.container:
        where += f", marked as a {seen.container} container"
    if seen.system == "Linux":
        return Check("system", "good", where, "hotlap can measure all that it knows of")
    if seen.system == "Darwin":
        return Check(
            "system",
            "limited",
            where,
            "loader workers are timed without the split of CPU, waiting and storage",
        )
    fix = "on Windows, run the training and hotlap inside WSL"
    return Check("system", "absent", where, "hotlap does not measure on this system", fix)


def cores_usable(seen: Surroundings) -> Check:
    """Cores visible against those that affinity and a quota leave (the container trap)."""
    found = seen.cores
    name = "cores"
    if found.visible is None or found.allowed is None:
        because = "the number of cores cannot be read here"
        return Check(name, "unknown", because, "worker and thread counts cannot be judged")
    if seen.system != "Linux":
        words = f"{cores(found.visible)}; affinity and quotas are not read on {seen.system}"
        return Check(name, "unknown", words, "taken as all usable")
    if found.affinity is None:
        words = f"{cores(found.visible)} visible; /proc does not tell which of them are allowed"
        return Check(name, "unknown", words, "taken as all usable")
    words = f"{cores(found.visible)} visible, {found.affinity} allowed by affinity, "
    words += f"a quota of {cores(found.quota)}" if found.quota is not None else "no quota seen"
    if found.allowed >= found.visible:
        return Check(name, "good", words, "counts taken from os.cpu_count() fit this machine")
    whole = max(1, int(found.allowed))
    by_quota = found.quota is not None and found.allowed == found.quota
    ways = "docker --cpus, limits.cpu" if by_quota else "taskset, cpuset, Slurm -c"
    return Check(
        name,
        "limited",
        words,
        f"whatever counts by os.cpu_count() starts {found.visible} threads or workers for "
        f"{cores(found.allowed)}, and they get in each other's way",
        f"OMP_NUM_THREADS={whole}, and num_workers to match; or ask for more cores ({ways})",
    )


def throttling(seen: Surroundings) -> Check:
    """Whether a CPU quota has stopped this control group already."""
    name, quota, found = "cpu throttling", seen.cores.quota, seen.throttling
    if seen.system != "Linux":
        words = f"control groups are not a thing of {seen.system}"
        return Check(name, "good", words, "nothing stops a process that has a core")
    if quota is None:
        words = "no CPU quota seen"
        return Check(name, "good", words, "nothing stops a process that has a core")
    if found is None:
        words = f"a quota of {cores(quota)}, no counters"
        return Check(name, "unknown", words, "pauses by the quota cannot be told from waiting")
    words = (
        f"stopped in {found.throttled_periods} of {found.periods} periods since the group began, "
        f"{found.throttled_ns / 1e9:.1f} s in all"
    )
    if found.throttled_periods == 0:
        return Check(name, "good", words, f"the quota of {cores(quota)} was never used up")
    return Check(
        name,
        "limited",
        words,
        "threads that have used up the quota all pause until the next period: uneven steps",
        "fewer threads and workers, or a larger quota",
    )


def load(seen: Surroundings) -> Check:
    """Whether others keep the cores busy now, which makes every measurement noisier."""
    name, visible, allowed = "other load", seen.cores.visible, seen.cores.allowed
    if seen.load is None or visible is None or allowed is None:
        return Check(name, "unknown", "no load average here", "neighbours cannot be seen")
    words = f"load average {seen.load:.2f} on {cores(visible)} in the last minute"
    spare = visible - seen.load
    if seen.load < 1 or spare >= (1 - _TAKEN) * allowed:
        return Check(name, "good", words, "the machine is free enough to measure on")
    return Check(
        name,
        "limited",
        words,
        "something else uses cores that a training would take: times will vary",
        "measure when it has ended (top shows what it is)",
    )


def vectors(seen: Surroundings) -> Check:
    """Vector instructions that torch's CPU kernels can take."""
    name, found = "vector instructions", seen.processor
    if found is None:
        because = "the processor's flags cannot be read here"
        return Check(name, "unknown", because, "torch chooses its CPU kernels itself")
    model = found.model or "a processor without a model name"
    if found.arm:
        return Check(name, "good", f"{model}: Arm", "torch takes its Arm kernels")
    if found.avx512:
        return Check(name, "good", f"{model}: AVX-512", "torch's widest CPU kernels can run")
    if found.avx2:
        return Check(name, "good", f"{model}: AVX2", "torch's usual CPU kernels can run")
    return Check(
        name,
        "limited",
        f"{model}: no AVX2",
        "torch falls back to its slowest CPU kernels",
        "another machine, or a virtual one that shows its host's processor (host-passthrough)",
    )


def bf16(seen: Surroundings) -> Check:
    """bfloat16 arithmetic in the processor; without it, low precision on the CPU loses."""
    name, found = "bf16 on the CPU", seen.processor
    if found is None:
        because = "the processor's flags cannot be read here"
        return Check(name, "unknown", because, "measure before you use bf16 on the CPU")
    if found.bf16:
        words = ", ".join(found.bf16)
        return Check(name, "good", words, "autocast to bfloat16 can pay on the CPU")
    return Check(
        name,
        "absent",
        "no bf16 instruction among the processor's flags",
        "bfloat16 on the CPU is converted back and forth: slower than float32, often many times",
        "stay with float32 when training on this CPU",
    )
