"""A run directory becomes a ``Record``. Reads runs that still grow or whose writers were killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from hotlap.errors import UnreadableRun
from hotlap.runs import frames, layout
from hotlap.runs.fitting import (
    UNFIT,
    accounts_of,
    fitted,
    hello_of,
    listed,
    loader_of,
    need,
    table,
    text,
    touch_of,
    whole,
    window_of,
    words,
)
from hotlap.runs.profiles import Tables, operators_of
from hotlap.runs.store import read_manifest
from hotlap.runs.window_results import Measured, measured_of, with_splits
from hotlap.values.phase import ACCOUNTS, RULES
from hotlap.values.record import (
    DevicePhase,
    Fault,
    Fetches,
    Loader,
    Process,
    Record,
    Tick,
    Touch,
    Window,
)
from hotlap.values.trace import TrainingTrace
from hotlap.values.trial import OperatorEntry

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
    samples = _samples(path / layout.MACHINE_FILE, damage)
    spawn_ns = whole(manifest, "spawn_ns")
    if spawn_ns is None:
        # The start of its first process is the next best that is known.
        spawn_ns = min((one.start_ns for one in processes), default=0)
        damage.append(f"{layout.MANIFEST}: does not say when the run began")
    return Record(
        id=text(manifest, "id") or path.name,
        path=str(path),
        command=tuple(map(str, listed(manifest, "command"))),
        cwd=text(manifest, "cwd"),
        host=text(manifest, "host"),
        hotlap_version=text(manifest, "hotlap_version"),
        started=text(manifest, "started"),
        spawn_ns=spawn_ns,
        exit_ns=whole(manifest, "exit_ns"),
        exit_code=whole(manifest, "exit_code"),
        processes=tuple(processes),
        samples=tuple(samples),
        seen=tuple(_seen(path / layout.SEEN)),
        environment=table(manifest, "environment"),
        facts=table(manifest, "machine"),
        plan=table(manifest, "plan"),
        damage=tuple(damage),
    )


def _samples(path: Path, damage: list[str]) -> list[dict[str, Any]]:
    samples = []
    for frame in _frames(path, damage):
        try:
            samples.append(need(frame.json(), dict[str, Any], "sample"))
        except UNFIT as error:
            damage.append(f"{path.name}: frame {frame.tag!r}: {words(error)}")
    return samples


def _frames(path: Path, damage: list[str]) -> list[frames.Frame]:
    """Return the frames of a file after its header; a missing file has none."""
    name = f"{path.parent.name}/{path.name}"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        damage.append(f"{name}: {error.strerror or error}")
        return []
    found: list[frames.Frame] = []
    for frame in frames.decode(data):
        if isinstance(frame, str):
            damage.append(f"{name}: {frame}")
        elif frame.tag == "head":
            try:
                major = need(frame.json()["major"], int, "major")
            except UNFIT as error:
                damage.append(f"{name}: frame 'head': {words(error)}")
                continue
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
        self.results: list[Measured] = []
        self.settings: dict[str, Any] = {}
        self.tables = Tables()
        self.operators: tuple[OperatorEntry, ...] = ()
        self.trace: TrainingTrace | None = None
        self.draws: dict[str, set[str]] = {}

    def take(self, frame: frames.Frame) -> None:
        """Take in one frame; an unknown tag is skipped."""
        if frame.tag == "tick":
            for tick in _ticks(frame):
                self.ticks[tick.number] = tick
            return
        value: Any = frame.json() if frame.tag in _KNOWN else None
        match frame.tag:
            case "helo":
                self.hello = hello_of(value)
            case "fact":
                self.facts.update(value)
            case "frst":
                at = need(value["at_ns"], int, "at_ns")
                self.first = {"at_ns": at, "accounts": accounts_of(value["accounts"])}
            case "bye.":
                end = need(value["end_ns"], int, "end_ns")
                after = accounts_of(value["after_last_tick"])
                self.bye = {"end_ns": end, "after_last_tick": after}
            case "stat":
                self.counts = need(value, dict[str, Any], "stat")
            case "wind":
                window = window_of(value)
                self.windows[window.first_tick] = window
            case "load":
                loader = loader_of(value)
                self.loaders[loader.ordinal] = loader
            case "ftch":
                self.fetches.append(fitted(Fetches, value))
            case "tuch":
                self.touches = [touch_of(one) for one in value]
            case "devc":
                self.device = [fitted(DevicePhase, one) for one in value]
            case "prof" | "gcol" | "smpl":
                self.tables.take(frame.tag, value)
            case "oper":
                self.operators = operators_of(value)
            case "winr":
                self.results.append(measured_of(value))
            case "trac":
                self.trace = TrainingTrace.from_dict(need(value, dict[str, Any], "trac"))
            case "draw":
                for dataset, names in need(value, dict[str, Any], "draw").items():
                    drawn = self.draws.setdefault(dataset, set())
                    drawn.update(map(str, need(names, list, "draw")))
            case "sett":
                _take_proofs(self.settings, need(value, dict[str, dict[str, Any]], "sett"))
            case "falt":
                self.faults.append(fitted(Fault, value))


def _take_proofs(settings: dict[str, Any], proofs: dict[str, dict[str, Any]]) -> None:
    """Take in what one process says of the changes; one that acted in a worker has acted."""
    for name, proof in proofs.items():
        if proof.get("acted") or not settings.get(name, {}).get("acted"):
            settings[name] = proof


_KNOWN: Final = frozenset(
    (
        "helo",
        "fact",
        "frst",
        "bye.",
        "stat",
        "wind",
        "load",
        "ftch",
        "tuch",
        "devc",
        "falt",
        "prof",
        "gcol",
        "smpl",
        "oper",
        "winr",
        "sett",
        "trac",
        "draw",
    )
)


def _process(folder: Path, damage: list[str]) -> Process | None:
    draft = _Draft()
    own = [folder / layout.PROCESS_FILE, folder / layout.PROFILE_FILE]
    files = [*own, *sorted(folder.glob(f"{layout.WORKER_PREFIX}*"))]
    for path in files:
        for frame in _frames(path, damage):
            try:
                draft.take(frame)
            except UNFIT as error:
                damage.append(f"{folder.name}/{path.name}: frame {frame.tag!r}: {words(error)}")
    if draft.hello is None:
        return None
    try:
        return _assembled(draft, draft.hello)
    except UNFIT as error:
        damage.append(f"{folder.name}: left out: {words(error)}")
        return None


def _assembled(draft: _Draft, hello: dict[str, Any]) -> Process:
    facts = draft.facts
    bye, first = draft.bye or {}, draft.first or {}
    return Process(
        host=hello["host"],
        pid=hello["pid"],
        rank=whole(facts, "rank") if "rank" in facts else hello["rank"],
        local_rank=hello["local_rank"],
        world_size=whole(facts, "world_size") if "world_size" in facts else hello["world_size"],
        role=_role(draft, hello),
        argv=tuple(map(str, hello["argv"])),
        python=hello["python"],
        torch=text(facts, "torch") or None,
        device=text(facts, "device") or None,
        start_ns=hello["start_ns"],
        first_step_ns=first.get("at_ns"),
        end_ns=bye.get("end_ns"),
        before_first_step=first.get("accounts"),
        after_last_tick=bye.get("after_last_tick"),
        ticks=tuple(draft.ticks[number] for number in sorted(draft.ticks)),
        windows=tuple(draft.windows[number] for number in sorted(draft.windows)),
        loaders=tuple(draft.loaders[ordinal] for ordinal in sorted(draft.loaders)),
        fetches=tuple(draft.fetches),
        unpack_ns=whole(draft.counts, "unpack_ns"),
        touches=tuple(draft.touches),
        device_phases=tuple(draft.device),
        faults=tuple(draft.faults),
        facts={**facts, **draft.counts, **_switches(draft)},
        windows_measured=with_splits(draft.results, draft.fetches),
        settings_proof=draft.settings,
        profile=draft.tables.profile(first.get("at_ns"), bye.get("end_ns")),
        operators=draft.operators,
        profile_facts=draft.tables.profile_facts(),
        collector=draft.tables.collector(),
        sample_clock=draft.tables.sample_clock(),
        trace=draft.trace,
    )


def _switches(draft: _Draft) -> dict[str, Any]:
    """Return the facts with what the training's data sets draw from generators, where seen."""
    trains = {one.dataset for one in draft.loaders.values() if one.role == "training"}
    seen = trains & draft.draws.keys()
    if not seen:
        return {}
    drawn = sorted(set().union(*(draft.draws[dataset] for dataset in seen)))
    return {"switches": {**table(draft.facts, "switches"), "dataset_draws": drawn}}


def _role(draft: _Draft, hello: dict[str, Any]) -> str:
    if draft.ticks or draft.windows:
        return "trainer"
    command = " ".join(map(str, hello["argv"][:6]))
    if hello["rank"] is None and any(name in command for name in _LAUNCHERS):
        return "launcher"
    return "passive"


def _rule(number: int) -> str:
    if not 0 < number < len(RULES):
        raise ValueError(f"rule {number} is unknown")
    return RULES[number]


def _ticks(frame: frames.Frame) -> list[Tick]:
    columns, rows = frame.rows()
    place = {name: index for index, name in enumerate(columns)}
    # Accounts are found by name, so that a file with more or fewer of them stays readable.
    accounts = [place.get(name) for name in ACCOUNTS]
    return [
        Tick(
            number=row[place["number"]],
            end_ns=row[place["end_ns"]],
            rule=_rule(row[place["rule"]]),
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
            pid = need(entry["pid"], int, "pid")
            entries.setdefault(pid, {"torch": False}).update(entry)
        except UNFIT:
            continue  # several processes write here: a line may be torn
    return list(entries.values())
