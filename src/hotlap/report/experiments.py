"""The trials of a diagnosis in words: what was run, under which conditions, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from hotlap.report.units import duration, share, size

TRIALS: Final = {
    "watch": "as the user would run it, watched by a sampling profiler: where the time goes, and "
    "at which lines",
    "ceilings": "each part alone: the steps with recorded batches, the loader without the steps, "
    "and the loader with other numbers of workers",
    "epoch end": "an epoch that was ended before its time: what the script does between two epochs",
    "operators": "a few steps under torch.profiler: which operators a line calls",
    "native stacks": "as it stands, its stacks of C and C++ looked at from outside: which "
    "libraries a line spends its time in",
    "reference": "unchanged once more: what changes are compared with, and how much equal runs "
    "differ",
}
"""Per name of a trial: what it tells."""

WINDOWS: Final = {
    "warm_up": ("warm-up", "not measured: the first steps are not like the others"),
    "baseline": ("as it stands", "the step that all else is compared with"),
    "replay": (
        "replay",
        "recorded batches instead of the loader's: how fast the steps alone would be",
    ),
    "drain": ("drain", "the loader alone, without the steps: how fast it could deliver"),
    "workers": (
        "workers",
        "the loader alone with other numbers of workers: where more stop helping",
    ),
    "storage": (
        "storage",
        "some samples with their files read from storage, then from memory: what waits for it",
    ),
    "native": ("native stacks", "as it stands, looked at by py-spy from outside"),
    "epoch_end": ("epoch's end", "no batch more in this epoch: what comes before the next"),
    "operators": ("operators", "a few steps under torch.profiler: which operators a line calls"),
}
"""Per kind of window: what it is called, and what it tells."""

ENDINGS: Final = {
    "itself": "",
    "limit": "stopped at the time that it was given",
    "interrupt": "stopped by Ctrl-C",
    "lost": "killed from outside",
    "steps": "after its steps",
    "seconds": "after its time",
    "exhausted": "with the end of the data",
}

_SHOWN: Final = frozenset(
    ("name", "wall_ns", "ended_by", "windows", "exit_code", "folder", "contained")
)
"""Keys of a trial that have a place of their own, or none on a page."""


class WindowView(NamedTuple):
    """One window: what it is called, what it tells, and how long it was."""

    name: str
    tells: str
    size: str


class TrialView(NamedTuple):
    """One trial. more: rows of name and value for all else that is known of it."""

    name: str
    tells: str
    wall: str
    ended: str
    windows: list[WindowView]
    more: list[tuple[str, str]]


def trial_views(trials: Sequence[Mapping[str, Any]]) -> list[TrialView]:
    """Return the trials in the order in which they were made; keys that are unknown are kept."""
    return [_trial(trial, at) for at, trial in enumerate(trials, start=1)]


def _trial(trial: Mapping[str, Any], number: int) -> TrialView:
    windows = trial.get("windows") or ()
    code = trial.get("exit_code")
    ended = ENDINGS.get(str(trial.get("ended_by") or ""), str(trial.get("ended_by") or ""))
    if code:
        ended = f"{ended}, exit code {code}".lstrip(", ")
    if trial.get("contained") is False:
        ended = f"{ended}; its writes were not kept from the user's files".lstrip("; ")
    name = str(trial.get("name") or f"trial {number}")
    change = name.removeprefix("change ")
    return TrialView(
        name=name.replace("_", " "),
        tells=TRIALS.get(name, "with this one change" if change != name else ""),
        wall=duration(trial["wall_ns"]) if trial.get("wall_ns") is not None else "",
        ended=ended,
        windows=[_window(window) for window in windows if isinstance(window, Mapping)],
        more=[
            (key.rsplit("_", 1)[0] if key.endswith(_UNITS) else key, _value(key, value))
            for key, value in trial.items()
            if key not in _SHOWN and value not in (None, "", (), [], {})
        ],
    )


_UNITS: Final = ("_ns", "_bytes", "_share")


def _window(window: Mapping[str, Any]) -> WindowView:
    kind = str(window.get("kind") or "")
    name, tells = WINDOWS.get(kind, (kind.replace("_", " "), ""))
    if window.get("workers") is not None and kind == "workers":
        name = f"{window['workers']} workers"
    sizes = [f"{window[key]:,} {key}" for key in ("steps", "batches", "samples") if window.get(key)]
    begin, end = window.get("begin_ns"), window.get("end_ns")
    if isinstance(begin, int) and isinstance(end, int):
        sizes.append(duration(end - begin))
    ended = str(window.get("ended_by") or "")
    if ended.startswith("failed"):
        sizes.append(ended)
    return WindowView(name, tells, ", ".join(sizes))


def _value(key: str, value: Any) -> str:
    """Return a value with the unit that its key names."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        for ending, said in (("_ns", duration), ("_bytes", size), ("_share", share)):
            if key.endswith(ending):
                return said(value)
        return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(str(name), one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value("", one) for one in value)
    return str(value)
