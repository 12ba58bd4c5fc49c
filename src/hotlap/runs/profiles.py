"""Profiles, collectors and sample clocks as processes wrote them become values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hotlap.runs.fitting import need
from hotlap.values.record import Place
from hotlap.values.trial import OperatorEntry, ProfileEntry, ThreadEntry

PARTS: Final = 16
"""Equal parts of the time from the first step to the end, in ``ProfileEntry.over_time``."""
_COUNTED: Final = ("looks", "late", "late_ns", "cost_ns")
"""What a sampler says of itself: looks, those that came late, by how much, and its CPU time."""


class Tables:
    """The last table of each process, by what kind it is."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, int], dict[str, Any]] = {}

    def take(self, tag: str, value: Any) -> None:
        """Keep a table; it replaces the one that the same process wrote before."""
        table = need(value, dict[str, Any], tag)
        begin = "began_ns" if tag == "prof" else "begin_ns"
        key = tag, need(table["pid"], int, "pid"), need(table[begin], int, begin)
        if tag == "prof":
            _checked(table)
        elif tag == "smpl":
            _clocked([table])
        else:
            _collected([table])
        self._kept[key] = table

    def of(self, tag: str) -> list[dict[str, Any]]:
        """Return the tables of one kind."""
        return [table for (kind, _, _), table in self._kept.items() if kind == tag]

    def profile(self, first_ns: int | None, end_ns: int | None) -> tuple[ProfileEntry, ...]:
        """Return the entries of trainer and workers, the same places of several workers as one.

        first_ns, end_ns: the time that ``over_time`` divides; the last table's end if not known.
        """
        tables = self.of("prof")
        end = end_ns or max((table["ended_ns"] for table in tables), default=0)
        span = (first_ns, end) if first_ns is not None and end > first_ns else None
        sums: dict[tuple[Any, ...], _Sum] = {}
        for table in tables:
            for key, one in _rows(table, span):
                if key in sums:
                    sums[key].add(one)
                else:
                    sums[key] = one
        return tuple(one.entry(key) for key, one in sums.items())

    def profile_facts(self) -> dict[str, Any]:
        """Return what the samplers say of themselves, trainer and workers added up by role.

        ``files``: the user's source files that the trainer had loaded, the entry script first.
        ``threads``: the Python threads that worked beside the one that trains.
        """
        facts: dict[str, Any] = {}
        beside = [one for table in self.of("prof") for one in _threads(table)]
        if beside:
            facts["threads"] = tuple(beside)
        files = [file for table in self.of("prof") for file in table.get("files", ())]
        if files:
            facts["files"] = tuple(dict.fromkeys(files))
        for table in self.of("prof"):
            role = facts.setdefault(
                table["role"],
                dict.fromkeys(("processes", "hz", "lasted_ns", *_COUNTED), 0),
            )
            role["processes"] += 1
            role["hz"] = table["hz"]
            role["lasted_ns"] += table["ended_ns"] - table["began_ns"]
            for name in _COUNTED:
                role[name] += table[name]
        return facts

    def collector(self) -> dict[str, Any]:
        """Return the garbage collector's time: the trainer's, and that of its workers."""
        trainers = [one for one in self.of("gcol") if not one.get("worker")]
        workers = [one for one in self.of("gcol") if one.get("worker")]
        found = _collected(trainers)
        if workers:
            found["workers"] = _collected(workers)
        return found

    def sample_clock(self) -> dict[str, Any]:
        """Return the times of single samples, of all processes that made some."""
        tables = self.of("smpl")
        return _clocked(tables) if tables else {}


def operators_of(value: Any) -> tuple[OperatorEntry, ...]:
    """Return the operators that a window under torch's profiler saw."""
    return tuple(
        OperatorEntry(
            place=_place_of(row["place"]),
            phase=need(row["phase"], str, "phase"),
            name=need(row["name"], str, "name"),
            calls=need(row["calls"], float | int, "calls"),
            ns=need(row["ns"], float | int, "ns"),
            shapes=need(row["shapes"], int | None, "shapes"),
            dtypes=need(tuple(row["dtypes"]), tuple[str, ...], "dtypes"),
            until=need(row["until"], int | None, "until"),
            forward=_place_of(row["forward"]),
        )
        for row in need(value, dict[str, Any], "oper")["rows"]
    )


def _place_of(value: Any) -> Place | None:
    if value is None:
        return None
    file, line, function = value
    return Place(need(file, str, "file"), need(line, int, "line"), need(function, str, "function"))


class _Sum:
    """One place's sums while they are added up."""

    def __init__(self, row: Mapping[str, Any], parts: Sequence[float]) -> None:
        self.samples: int = row["samples"]
        self.ns: int = row["ns"]
        self.split: list[int] | None = row["split"]
        self.parts = list(parts)

    def add(self, other: _Sum) -> None:
        """Add the same place in another process."""
        self.samples += other.samples
        self.ns += other.ns
        if self.split is None or other.split is None:
            self.split = self.split or other.split
        else:
            self.split = [a + b for a, b in zip(self.split, other.split, strict=True)]
        self.parts = [a + b for a, b in zip(self.parts, other.parts, strict=True)]

    def entry(self, key: tuple[Any, ...]) -> ProfileEntry:
        """Return the value. What was split stands for what could not be."""
        role, phase, place, callers, span, leaf = key
        working = queue = blocked = None
        if self.split is not None and self.split[0] > 0:
            known, cpu, waited = self.split
            working, queue = cpu * self.ns // known, waited * self.ns // known
            blocked = self.ns - working - queue
        return ProfileEntry(
            role=role,
            phase=phase,
            place=place,
            expression=None,
            callers=callers,
            leaf=leaf,
            samples=self.samples,
            ns=self.ns,
            working_ns=working,
            blocked_ns=blocked,
            runqueue_ns=queue,
            over_time=_whole(self.parts),
            span=span,
        )


def _checked(table: dict[str, Any]) -> None:
    for name in (*_COUNTED, "ended_ns", "slice_ns"):
        need(table[name], int, name)
    need(table["role"], str, "role")
    need(table["begin_ns"], int | None, "begin_ns")
    need(tuple(table.get("files", ())), tuple[str, ...], "files")
    _threads(table)
    for _ in _rows(table, (0, 1)):
        pass


def _threads(table: dict[str, Any]) -> list[ThreadEntry]:
    return [
        ThreadEntry(
            name=need(row["name"], str, "name"),
            leaf=need(row["leaf"], str, "leaf"),
            place=_place_of(row["place"]),
            cpu_ns=need(row["cpu_ns"], int, "cpu_ns"),
            wall_ns=need(row["wall_ns"], int, "wall_ns"),
        )
        for row in table.get("threads", ())
    ]


def _rows(
    table: Mapping[str, Any], span: tuple[int, int] | None
) -> Iterable[tuple[tuple[Any, ...], _Sum]]:
    names = [
        _place_of(one) if isinstance(one, list) else need(one, str, "leaf")
        for one in table["names"]
    ]
    for row in table["rows"]:
        frames = [need(names[one], Place, "frame") for one in row["frames"]]
        at = None if row["span"] is None else tuple(need(one, int, "span") for one in row["span"])
        if at is not None and len(at) != 4:
            raise ValueError(f"span of {len(at)} numbers")
        if row["split"] is not None:
            known, cpu, queue = (need(one, int, "split") for one in row["split"])
            if known < cpu + queue:
                raise ValueError("a split adds up to more than its whole")
        leaf = need(names[row["leaf"]], str, "leaf")
        place = frames[0] if frames else None
        phase = need(row["phase"], str, "phase")
        for name in ("samples", "ns"):
            need(row[name], int, name)
        key = (table["role"], phase, place, tuple(frames[1:]), at, leaf)
        yield key, _Sum(row, _parts(table, row["slices"], span))


def _parts(
    table: Mapping[str, Any], slices: Sequence[Sequence[int]], span: tuple[int, int] | None
) -> list[float]:
    """Lay a table's slices of time onto equal parts of ``span``; one that lies in two is shared."""
    parts = [0.0] * PARTS
    begin, width = table["begin_ns"], table["slice_ns"]
    if span is None or begin is None or width <= 0:
        return parts
    first, end = span
    unit = (end - first) / PARTS
    for number, count in slices:
        need(number, int, "slice")
        need(count, int, "slice")
        low = begin + number * width
        high = min(low + width, max(end, low + 1))
        for part in range(PARTS):
            left, right = first + part * unit, first + (part + 1) * unit
            parts[part] += count * max(0.0, min(high, right) - max(low, left)) / (high - low)
    return parts


def _whole(parts: Sequence[float]) -> tuple[int, ...]:
    """Round parts so that their sum is the rounded sum: what one loses, a later one gets."""
    found = []
    exact, given = 0.0, 0
    for one in parts:
        exact += one
        found.append(round(exact) - given)
        given += found[-1]
    return tuple(found) if any(found) else ()


def _clocked(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: sum(need(one[name], int, name) for one in tables)
        for name in ("count", "total_ns", "together")
    }
    found["slowest_ns"] = max(need(one["slowest_ns"], int, "slowest_ns") for one in tables)
    found["histogram"] = _added(_counts(one["histogram"], "histogram") for one in tables)
    return found


def _counts(table: Any, name: str) -> dict[int, int]:
    """Return a table of counts; JSON has its keys as text."""
    return {int(key): need(count, int, name) for key, count in table.items()}


def _collected(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: sum(need(one[name], int, name) for one in tables) for name in ("ns", "collections")
    }
    if not tables:
        return {}
    found["longest_ns"] = max(need(one["longest_ns"], int, "longest_ns") for one in tables)
    found["by_generation"] = _added(_counts(one["by_generation"], "collections") for one in tables)
    by_phase: dict[str, dict[str, int]] = {}
    for one in tables:
        for phase, sums in one["by_phase"].items():
            need(sums, dict[str, int], "by_phase")
            by_phase[phase] = _added([by_phase.get(phase, {}), sums])
    found["by_phase"] = by_phase
    return found


def _added(tables: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    added: dict[Any, int] = {}
    for table in tables:
        for key, count in table.items():
            added[key] = added.get(key, 0) + count
    return added
