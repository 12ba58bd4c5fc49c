"""Which package may import which: the table of docs/architecture.md against the source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from house.source import Import, imports, python_files

ANYTHING = "anything"
ROW = re.compile(r"^\|\s*(\d+)\s*\|\s*`(\w+)`\s*\|([^|]*)\|\s*$")
DOORS = {"__init__": {"errors", "values", "api"}, "__main__": {"cli"}}
"""The two files that lie in no package, and what they may open."""
FREE_NAMES = {"__version__"}
"""Names of ``hotlap`` itself that anybody may take."""


@dataclass(frozen=True)
class Row:
    """One row of the table. may_import: None means anything."""

    level: int
    package: str
    may_import: frozenset[str] | None


def table(text: str) -> dict[str, Row]:
    """Return the rows of the import table by package; raises ValueError when there are none."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        match = ROW.match(line)
        if match is None:
            continue
        level, package, allowed = int(match[1]), match[2], match[3]
        if package in rows:
            raise ValueError(f"two rows for {package}")
        free = allowed.strip() == ANYTHING
        names = None if free else frozenset(re.findall(r"`(\w+)`", allowed))
        rows[package] = Row(level, package, names)
    if not rows:
        raise ValueError("no import table found")
    return rows


def table_complaints(rows: dict[str, Row]) -> list[str]:
    """Return what is wrong with the table itself: unknown names, imports that go upwards.

    A package may import only from rows above its own, so that no ring can be written down.
    """
    complaints = []
    above: set[str] = set()
    for row in rows.values():
        for name in sorted(row.may_import or ()):
            if name not in rows:
                complaints.append(f"{row.package} may import {name}, which has no row")
            elif name not in above or rows[name].level > row.level:
                complaints.append(f"{row.package} may import {name}, whose row is not above it")
        above.add(row.package)
    return complaints


def complaints(package_dir: Path, rows: dict[str, Row]) -> list[str]:
    """Return every import inside the package that the table does not allow, with its place."""
    found = []
    for path in python_files(package_dir):
        inside = path.relative_to(package_dir)
        own = inside.parts[0].removesuffix(".py")
        if len(inside.parts) == 1 and own in DOORS:
            allowed: frozenset[str] | None = frozenset(DOORS[own])
        elif own not in rows:
            found.append(f"{inside}: package {own} has no row in the table")
            continue
        else:
            allowed = rows[own].may_import
        for imported in imports(path):
            place = f"{inside}:{imported.line}"
            if imported.level:
                found.append(f"{place}: relative import; write from hotlap.{own} import ...")
                continue
            target = target_package(imported, package_dir)
            if target is None or target == own or allowed is None or target in allowed:
                continue
            found.append(f"{place}: {own} may not import {target}")
    return found


def target_package(imported: Import, package_dir: Path) -> str | None:
    """Return the package of hotlap that is imported; None when it is none of ours."""
    parts = imported.module.split(".")
    if parts[0] != "hotlap":
        return None
    if len(parts) > 1:
        return parts[1]
    name = imported.name
    if name is None or name in FREE_NAMES:
        return None
    is_module = (package_dir / name).is_dir() or (package_dir / f"{name}.py").is_file()
    return name if is_module else "__init__"
