"""Why a run has no trainer, in plain words with what to do, and no more than was seen.

Each reason is one function that looks at the record and answers with a sentence, or with None when
it is not the reason. They are asked in the order of ``REASONS``; the first answer is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from hotlap.values.record import Process, Record

_ISOLATING: Final = {
    "E": "ignores all PYTHON… variables",
    "I": "isolates Python from its environment",
    "S": "skips the `site` module",
}
_VALUE_OPTIONS: Final = frozenset("WXQ")
"""Options of Python that take a value, in the same word or in the next."""

_DROPPERS: Final = {
    "sudo": "sudo drops most variables (`sudo --preserve-env=PYTHONPATH,HOTLAP_HANDOFF …` keeps "
    "ours), or run hotlap inside: `sudo hotlap run …`",
    "su": "su may replace the environment; run hotlap inside of it",
    "doas": "doas replaces the environment; run hotlap inside of it",
    "ssh": "ssh passes no variables on; run hotlap on the other machine",
    "docker": "a container has an environment of its own; run hotlap inside the container",
    "podman": "a container has an environment of its own; run hotlap inside the container",
    "apptainer": "a container may hide our folder; run hotlap inside the container",
    "singularity": "a container may hide our folder; run hotlap inside the container",
    "kubectl": "the command runs in a pod; run hotlap inside the pod",
    "sbatch": "sbatch only queues a job and returns; put `hotlap run` into the batch script",
    "qsub": "qsub only queues a job and returns; put `hotlap run` into the job's script",
}


def explain(record: Record, exit_code: int | None) -> str | None:
    """Say why no process of a run became a trainer; None when one did.

    record: the run as it lies on disk. exit_code: the command's own, negative when a signal killed
        it, None when it is not known.
    """
    if any(process.role == "trainer" and _has_steps(process) for process in record.processes):
        return None
    for reason in REASONS:
        if said := reason(record, exit_code):
            return said
    return None


def isolated_flags(command: Sequence[str]) -> str:
    """Return Python's own isolating options on a command line (of ``EIS``), as written.

    Only words between an interpreter and its script are looked at: ``train.py -E`` is the
    script's option. A command without an interpreter in it has none.
    """
    words = iter(command)
    for word in words:
        if _is_python(word):
            return _flags_before_script(words)
    return ""


def _flags_before_script(words: Iterator[str]) -> str:
    found = ""
    for word in words:
        if not word.startswith("-") or word in ("-", "--") or word.startswith("--"):
            break
        for position, letter in enumerate(word[1:], start=1):
            if letter in _ISOLATING:
                found += letter
            if letter in "cm":
                return found
            if letter in _VALUE_OPTIONS:
                if position == len(word) - 1:
                    next(words, None)
                break
    return found


def _is_python(word: str) -> bool:
    return re.fullmatch(r"(python|pypy)[0-9.]*t?", PurePath(word).name) is not None


def _isolated(record: Record, _: int | None) -> str | None:
    """An isolating option stands on the command line, and nobody reported."""
    flags = isolated_flags(record.command)
    if record.seen or record.processes or not flags:
        return None
    why = ", ".join(f"-{flag} {_ISOLATING[flag]}" for flag in dict.fromkeys(flags))
    return (
        f"The command starts Python with an option that shuts hotlap out: {why}. Nothing inside "
        "was measured. Leave the option out, or use `with hotlap.measure():` in the script."
    )


def _environment_dropped(record: Record, _: int | None) -> str | None:
    """A program that is known to replace the environment is on the command line."""
    if record.seen or record.processes:
        return None
    for word in record.command[:1]:
        if advice := _DROPPERS.get(PurePath(word).name):
            return f"No Python process reported itself under {word!r}: {advice}."
    names = [PurePath(word).name for word in record.command]
    exports = [word for word in record.command if word.startswith("--export=")]
    if "srun" in names[:1] and exports and "ALL" not in exports[0]:
        return (
            f"No Python process reported itself: srun was given {exports[0]}, which drops our "
            "variables. Use --export=ALL, or put `hotlap run` after srun's options."
        )
    if names[:1] == ["env"] and {"-i", "-", "--ignore-environment"} & set(record.command):
        return (
            "No Python process reported itself: `env -i` empties the environment. Put "
            "`hotlap run` after it."
        )
    return None


def _nobody_reported(record: Record, exit_code: int | None) -> str | None:
    """No interpreter reported, and the command line does not tell why."""
    if record.seen or record.processes:
        return None
    ended = _ended(exit_code)
    if record.command and _is_python(record.command[0]):
        return (
            f"Python did not report itself{ended}. It may have ended before it was up, hotlap's "
            "folder may not be readable for it, or a wrapper of that name replaces PYTHONPATH. "
            "`python -c 'import sitecustomize'` under `hotlap run` tells more."
        )
    name = record.command[0] if record.command else "the command"
    return (
        f"No Python process reported itself under {name!r}{ended}. It may be no Python program, "
        "have started none, be frozen into one file, or have replaced the environment that it "
        "gave to Python. Put `hotlap run` directly before the `python` that trains."
    )


def _crashed_before_torch(record: Record, exit_code: int | None) -> str | None:
    """Interpreters reported, none imported torch, and the command failed."""
    if record.processes or _any_torch(record) or not exit_code:
        return None
    return (
        f"{_interpreters(record)} started, none got as far as importing torch, and the command "
        f"{_failed(exit_code)}. Its own messages above say why."
    )


def _without_torch(record: Record, exit_code: int | None) -> str | None:
    """Interpreters reported, none imported torch, and no failure is known."""
    if record.processes or _any_torch(record):
        return None
    hidden = [flag for one in record.seen for flag in str(one.get("flags") or "")]
    children = (
        " One of them ran with -E, -I or -S, so what it started may have escaped us."
        if any(flag in _ISOLATING for flag in hidden)
        else ""
    )
    return (
        f"{_interpreters(record)} started{_ended(exit_code)}, and none imported torch: nothing "
        f"of PyTorch was there to measure.{children} If the training runs in a process that was "
        "started with another environment (a server, a scheduler), start that one under hotlap."
    )


def _torch_import_failed(record: Record, exit_code: int | None) -> str | None:
    """torch was reached for, no process recorded itself, and the command failed."""
    if record.processes or not exit_code:
        return None
    return (
        "torch was imported, or its import begun, but no process left a record, and the command "
        f"{_failed(exit_code)}. Try `python -c 'import torch'` in the same environment."
    )


def _door_failed(record: Record, _: int | None) -> str | None:
    """torch was imported, and what we load after it failed."""
    faults = [str(one["fault"]) for one in record.seen if one.get("fault")]
    if record.processes or not faults:
        return None
    return (
        f"torch was imported, but hotlap could not start beside it: {faults[0]}. Nothing inside "
        "was measured, and the training was not disturbed."
    )


def _torch_without_record(record: Record, _: int | None) -> str | None:
    """torch was imported, and still no process recorded itself."""
    if record.processes:
        return None
    return (
        "torch was imported, but no process left a record. The run's folder may not have been "
        "writable for it; `hotlap doctor` looks at that."
    )


def _only_launcher(record: Record, exit_code: int | None) -> str | None:
    """A launcher imported torch, its ranks never came."""
    if any(process.role != "launcher" for process in record.processes):
        return None
    then = f" The command {_failed(exit_code)}." if exit_code else ""
    return (
        "Only a launcher (torchrun, accelerate) was seen; none of the training processes that it "
        f"starts appeared.{then} They may have failed before `import torch`, or the launcher may "
        "have given them another environment."
    )


def _hooks_failed(record: Record, _: int | None) -> str | None:
    """Hooks of ours failed inside: what we did not see may have happened all the same."""
    faults = [fault for process in record.processes for fault in process.faults]
    if not faults:
        return None
    return (
        f"No step was seen, and hotlap's own hook {faults[0].site!r} failed ({faults[0].error}), "
        "so steps may have gone unseen. The training was not disturbed. Please report this."
    )


def _only_workers(record: Record, _: int | None) -> str | None:
    """Loader workers recorded themselves, the process that they work for did not."""
    if any(process.role not in ("worker", "launcher") for process in record.processes):
        return None
    return (
        "Only loader workers were seen, not the process that they work for; it may have been "
        "killed before it could write, or have started with another environment."
    )


def _failed_before_step(record: Record, exit_code: int | None) -> str | None:
    """torch was there, no optimizer stepped, and the command failed."""
    if not exit_code or _counts(record)[2]:
        return None
    return (
        f"torch was imported, but the command {_failed(exit_code)} before the first step was "
        "complete. Its own messages above say why."
    )


def _forward_only(record: Record, _: int | None) -> str | None:
    """Forward passes without a backward pass."""
    forwards, backwards, _steps = _counts(record)
    if not forwards or backwards:
        return None
    return (
        f"{forwards:,} forward passes were seen, no backward pass and no optimizer step: this "
        "looks like inference or evaluation. hotlap measures training; mark a step yourself with "
        "`hotlap.step()` to measure this."
    )


def _backward_only(record: Record, _: int | None) -> str | None:
    """Backward passes without an optimizer step."""
    _forwards, backwards, steps = _counts(record)
    if not backwards or steps:
        return None
    return (
        f"{backwards:,} backward passes were seen, but no step of a torch.optim.Optimizer. If the "
        "weights are updated by hand, mark the end of a step with `hotlap.step()`."
    )


def _no_training_seen(record: Record, _: int | None) -> str | None:
    """torch was imported, and nothing that a step is made of was seen."""
    if _counts(record)[2]:
        return None
    return (
        f"torch was imported ({_torch_versions(record)}), but no complete step was seen: either "
        "nothing was trained, or the run was shorter than one step. If it trains by other means "
        "than torch's optimizers and loaders, mark the end of a step with `hotlap.step()`."
    )


REASONS: Final[tuple[Callable[[Record, int | None], str | None], ...]] = (
    _isolated,
    _environment_dropped,
    _nobody_reported,
    _crashed_before_torch,
    _without_torch,
    _door_failed,
    _torch_import_failed,
    _torch_without_record,
    _only_launcher,
    _hooks_failed,
    _only_workers,
    _forward_only,
    _backward_only,
    _failed_before_step,
    _no_training_seen,
)
"""From the outside in: nobody there, none with torch, none with a record, none who trained."""


def _has_steps(process: Process) -> bool:
    return bool(process.ticks or process.windows or process.first_step_ns is not None)


def _counts(record: Record) -> tuple[int, int, int]:
    """Return forward passes, backward passes and ticks of all processes."""
    parts = [part for process in record.processes for part in (process.ticks or process.windows)]
    ticks = sum(len(process.ticks) or len(process.windows) for process in record.processes)
    facts = [process.facts for process in record.processes]
    forwards = sum(p.forwards for p in parts) + sum(_int(f.get("forwards")) for f in facts)
    backwards = sum(p.backwards for p in parts) + sum(_int(f.get("backwards")) for f in facts)
    return forwards, backwards, ticks


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _any_torch(record: Record) -> bool:
    return any(one.get("torch") for one in record.seen)


def _interpreters(record: Record) -> str:
    count = len(record.seen)
    return "One Python process" if count == 1 else f"{count} Python processes"


def _torch_versions(record: Record) -> str:
    versions = sorted({process.torch for process in record.processes if process.torch})
    return ", ".join(versions) or "version not known"


def _failed(exit_code: int) -> str:
    if exit_code < 0:
        return f"was killed by signal {-exit_code}"
    return f"ended with exit code {exit_code}"


def _ended(exit_code: int | None) -> str:
    return f" (it {_failed(exit_code)})" if exit_code else ""
