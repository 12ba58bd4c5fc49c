"""Why no trainer appeared: the right reason, and no more than was seen."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.launch.absence import explain, isolated_flags
from hotlap.values.record import Fault, Process, Record, Window


def record(command: str, **more: Any) -> Record:
    return Record(
        id="r",
        path="/r",
        command=tuple(command.split()),
        cwd="/",
        host="h",
        hotlap_version="0",
        started="2026-01-01T00:00:00+00:00",
        spawn_ns=0,
        exit_ns=1,
        exit_code=0,
        **more,
    )


def process(role: str = "passive", **more: Any) -> Process:
    values: dict[str, Any] = {
        "host": "h",
        "pid": 7,
        "rank": None,
        "local_rank": None,
        "world_size": None,
        "role": role,
        "argv": ("train.py",),
        "python": "3.11",
        "torch": "2.13.0",
        "device": None,
        "start_ns": 0,
        "first_step_ns": None,
        "end_ns": 1,
        "before_first_step": None,
        "after_last_tick": None,
    }
    return Process(**{**values, **more})


def window(ticks: int = 0, forwards: int = 0, backwards: int = 0) -> Window:
    return Window(1, ticks, ticks, 0, 1, "optimizer", {}, {}, (), 0, forwards, backwards, None)


def seen(torch: bool = False, flags: str = "") -> dict[str, Any]:
    return {"pid": 7, "argv": ["train.py"], "torch": torch, "flags": flags}


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("python train.py", ""),
        ("python -E train.py", "E"),
        ("python3.11 -Es train.py", "E"),
        ("/usr/bin/python -I -m pkg", "I"),
        ("python -u -S train.py", "S"),
        ("python -W ignore -E train.py", "E"),
        ("python -WE train.py", ""),
        ("python -X dev train.py -E", ""),
        ("python -uE -c pass", "E"),
        ("python -c E -I", ""),
        ("python -m pkg -S", ""),
        ("nice -n 5 python -I train.py", "I"),
        ("torchrun -E train.py", ""),
        ("python-argcomplete -E", ""),
    ],
)
def test_isolated_flags(command: str, flags: str) -> None:
    assert isolated_flags(command.split()) == flags


TRAINER = process("trainer", first_step_ns=1, windows=(window(ticks=3, forwards=3, backwards=3),))


@pytest.mark.parametrize(
    ("run", "exit_code", "says"),
    [
        (record("python -E train.py"), 0, "-E ignores all PYTHON"),
        (record("python -I -S train.py"), 0, "-I isolates Python from its environment, -S skips"),
        (record("sudo python train.py"), 0, "sudo drops"),
        (record("ssh host python train.py"), 0, "other machine"),
        (record("docker run image python train.py"), 0, "inside the container"),
        (record("srun --export=NONE python train.py"), 0, "--export=NONE"),
        (record("env -i python train.py"), 0, "env -i"),
        (record("python train.py"), -9, "killed by signal 9"),
        (record("make train"), 0, "under 'make'"),
        (record("make train"), 2, "exit code 2"),
        (record("train.py", seen=(seen(),)), 1, "none got as far as importing torch"),
        (record("train.py", seen=(seen(),)), 0, "One Python process started, and none imported"),
        (record("train.py", seen=(seen(), seen())), 0, "2 Python processes started"),
        (record("train.py", seen=(seen(flags="E"),)), 0, "One of them ran with -E"),
        (record("train.py", seen=(seen(torch=True),)), 1, "python -c 'import torch'"),
        (record("train.py", seen=(seen(torch=True),)), 0, "no process left a record"),
        (record("torchrun t.py", processes=(process("launcher"),)), 0, "Only a launcher"),
        (record("torchrun t.py", processes=(process("launcher"),)), 1, "exit code 1"),
        (record("train.py", processes=(process("worker"),)), 0, "Only loader workers"),
        (
            record("train.py", processes=(process(faults=(Fault("autograd", "ValueError", 1),)),)),
            0,
            "hook 'autograd' failed",
        ),
        (
            record("eval.py", processes=(process(windows=(window(forwards=1200),)),)),
            0,
            "1,200 forward passes were seen, no backward",
        ),
        (record("train.py", processes=(process(),)), 1, "before the first step was complete"),
        (record("train.py", processes=(process(),)), 0, "shorter than one step"),
        (record("train.py", processes=(process("trainer"),)), 0, "shorter than one step"),
        (record("t.py", processes=(process(facts={"backwards": 3}),)), 0, "3 backward passes"),
    ],
)
def test_reason(run: Record, exit_code: int, says: str) -> None:
    said = explain(run, exit_code)
    assert said is not None
    assert says in said


def test_a_trainer_needs_no_reason() -> None:
    assert explain(record("python -E t.py", processes=(TRAINER, process())), 1) is None


@pytest.mark.parametrize(
    ("run", "never"),
    [
        # The option is on the command line, but an interpreter did report: it was not the cause.
        (record("python -E train.py", seen=(seen(),)), "shuts hotlap out"),
        (record("sudo train", seen=(seen(),)), "sudo"),
        (record("train.py", processes=(process(),)), "inference"),
        (record("python train.py"), "-E"),
    ],
)
def test_no_more_than_was_seen(run: Record, never: str) -> None:
    assert never not in (explain(run, 0) or "")
