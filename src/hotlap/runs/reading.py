"""A run directory becomes a ``Record``. Reads runs that still grow or whose writers were killed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from hotlap.errors import UnreadableRun
from hotlap.runs import frames, layout
from hotlap.runs.store import read_manifest
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import (
    DevicePhase,
    Fault,
    Fetches,
    Loader,
    Place,
    Process,
    Record,
    Tick,
    Touch,
    Window,
)

RULES: Final = ("", "backward", "loader", "optimizer", "explicit")
"""Rules that end a step, by the number that stands in a row."""
_LAUNCHERS: Final = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate")


def read_run(path: Path) -> Record:
    """Read a run. Raises UnreadableRun when there is none, or it is of a newer format."""
    manifest = read_manifest(path)
    damage: list[str] = []
    processes = [
        process
        for folder in sorted((path / layout.PROCESSES).glob("*"))
        if folder.is_dir() and (process := _process(folder, damage)) is not None
    ]
    samples = [frame.json() for frame in _frames(path / layout.MACHINE_FILE, damage)]
    return Record(
        id=manifest.get("id", path.name),
        path=str(path),
        command=tuple(manifest.get("command", ())),
        cwd=manifest.get("cwd", ""),
        host=manifest.get("host", ""),
        hotlap_version=manifest.get("hotlap_version", ""),
        started=manifest.get("started", ""),
        spawn_ns=manifest.get("spawn_ns") or 0,
        exit_ns=manifest.get("exit_ns"),
        exit_code=manifest.get("exit_code"),
        processes=tuple(processes),
        samples=tuple(samples),
        seen=tuple(_seen(path / layout.SEEN)),
        environment=dict(manifest.get("environment", {})),
        facts=dict(manifest.get("machine", {})),
        damage=tuple(damage),
    )


def _frames(path: Path, damage: list[str]) -> list[frames.Frame]:
    """Return the frames of a file after its header; a missing file has none."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    found: list[frames.Frame] = []
    for frame in frames.decode(data):
        if isinstance(frame, str):
            damage.append(f"{path.parent.name}/{path.name}: {frame}")
        elif frame.tag == "head":
            major = frame.json().get("major", 0)
            if major > frames.MAJOR:
                raise UnreadableRun(
                    f"{path} was written in format {major}, this hotlap reads {frames.MAJOR}: "
                    "update hotlap (pip install -U hotlap)"
                )
        else:
            found.append(frame)
    return found


class _Draft:
    """What the frames of one process add up to."""

    def __init__(self) -> None:
        self.hello: dict[str, Any] | None = None
        self.facts: dict[str, Any] = {}
        self.first: dict[str, Any] | None = None
        self.bye: dict[str, Any] | None = None
        self.counts: dict[str, Any] = {}
        self.ticks: dict[int, Tick] = {}
        self.windows: dict[int, Window] = {}
        self.loaders: dict[int, Loader] = {}
        self.fetches: list[Fetches] = []
        self.touches: list[Touch] = []
        self.device: list[DevicePhase] = []
        self.faults: list[Fault] = []

    def take(self, frame: frames.Frame) -> None:
        """Take in one frame; an unknown tag is skipped."""
        if frame.tag == "tick":
            for tick in _ticks(frame):
                self.ticks[tick.number] = tick
            return
        value: Any = frame.json() if frame.tag in _KNOWN else None
        match frame.tag:
            case "helo":
                self.hello = value
            case "fact":
                self.facts.update(value)
            case "frst":
                self.first = value
            case "bye.":
                self.bye = value
            case "stat":
                self.counts = value
            case "wind":
                window = _window(value)
                self.windows[window.first_tick] = window
            case "load":
                loader = _loader(value)
                self.loaders[loader.ordinal] = loader
            case "ftch":
                self.fetches.append(Fetches(**value))
            case "tuch":
                self.touches = [_touch(one) for one in value]
            case "devc":
                self.device = [DevicePhase(**one) for one in value]
            case "falt":
                self.faults.append(Fault(**value))


_KNOWN: Final = frozenset(
    ("helo", "fact", "frst", "bye.", "stat", "wind", "load", "ftch", "tuch", "devc", "falt")
)


def _process(folder: Path, damage: list[str]) -> Process | None:
    draft = _Draft()
    files = [folder / layout.PROCESS_FILE, *sorted(folder.glob(f"{layout.WORKER_PREFIX}*"))]
    for path in files:
        for frame in _frames(path, damage):
            try:
                draft.take(frame)
            except (ValueError, TypeError, KeyError, IndexError) as error:
                damage.append(f"{folder.name}/{path.name}: frame {frame.tag!r}: {error}")
    hello = draft.hello
    if hello is None:
        return None
    facts = draft.facts
    bye, first = draft.bye or {}, draft.first or {}
    return Process(
        host=hello["host"],
        pid=hello["pid"],
        rank=facts.get("rank", hello["rank"]),
        local_rank=hello["local_rank"],
        world_size=facts.get("world_size", hello["world_size"]),
        role=_role(draft, hello),
        argv=tuple(hello["argv"]),
        python=hello["python"],
        torch=facts.get("torch"),
        device=facts.get("device"),
        start_ns=hello["start_ns"],
        first_step_ns=first.get("at_ns"),
        end_ns=bye.get("end_ns"),
        before_first_step=_tuple(first.get("accounts")),
        after_last_tick=_tuple(bye.get("after_last_tick")),
        ticks=tuple(draft.ticks[number] for number in sorted(draft.ticks)),
        windows=tuple(draft.windows[number] for number in sorted(draft.windows)),
        loaders=tuple(draft.loaders[ordinal] for ordinal in sorted(draft.loaders)),
        fetches=tuple(draft.fetches),
        unpack_ns=draft.counts.get("unpack_ns"),
        touches=tuple(draft.touches),
        device_phases=tuple(draft.device),
        faults=tuple(draft.faults),
        facts={**facts, **draft.counts},
    )


def _role(draft: _Draft, hello: dict[str, Any]) -> str:
    if draft.ticks or draft.windows:
        return "trainer"
    words = " ".join(hello["argv"][:6])
    if hello["rank"] is None and any(name in words for name in _LAUNCHERS):
        return "launcher"
    return "passive"


def _tuple(value: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)


def _ticks(frame: frames.Frame) -> list[Tick]:
    columns, rows = frame.rows()
    place = {name: index for index, name in enumerate(columns)}
    # Accounts are found by name, so that a file with more or fewer of them stays readable.
    accounts = [place.get(name) for name in ACCOUNTS]
    return [
        Tick(
            number=row[place["number"]],
            end_ns=row[place["end_ns"]],
            rule=RULES[row[place["rule"]]],
            optimizer=row[place["ordinal"]],
            accounts=tuple(0 if at is None else row[at] for at in accounts),
            batches=row[place["batches"]],
            forwards=row[place["forwards"]],
            backwards=row[place["backwards"]],
            cpu_ns=row[place["cpu_ns"]],
            epoch_first=bool(row[place["epoch_first"]]),
        )
        for row in rows
    ]


def _window(value: dict[str, Any]) -> Window:
    value = dict(value)
    value["by_optimizer"] = {int(k): v for k, v in value["by_optimizer"].items()}
    value["histogram"] = {int(k): v for k, v in value["histogram"].items()}
    value["accounts"] = tuple(value["accounts"])
    return Window(**value)


def _place(value: dict[str, Any] | None) -> Place | None:
    return None if value is None else Place(**value)


def _loader(value: dict[str, Any]) -> Loader:
    value = dict(value)
    value["place"] = _place(value["place"])
    value["base_seeds"] = tuple(value.get("base_seeds", ()))
    return Loader(**value)


def _touch(value: dict[str, Any]) -> Touch:
    value = dict(value)
    value["place"] = _place(value["place"])
    return Touch(**value)


def _seen(path: Path) -> list[dict[str, Any]]:
    """Return the interpreters that started under the run, one entry per process."""
    entries: dict[int, dict[str, Any]] = {}
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            entry = json.loads(line)
            entries.setdefault(entry["pid"], {"torch": False}).update(entry)
        except (ValueError, KeyError, TypeError):
            continue
    return list(entries.values())
