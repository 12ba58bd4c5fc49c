"""What runs inside the user's process needs nothing but the standard library and their torch."""

from __future__ import annotations

import sys
from pathlib import Path

from house.source import AT_IMPORT, FOR_TYPES, IN_FUNCTION, Import, imports, python_files

INSIDE = ("errors", "values", "stats", "runs", "fast", "sites", "probe", "inject")
USERS_OWN = {"torch"}
"""Imported inside functions only: the training process has it, or there is nothing to measure."""
BY_SITE = {"sitecustomize", "usercustomize"}
"""Modules that belong to the interpreter's start, not to a package."""


def inside_files(package_dir: Path) -> list[Path]:
    """Return the files of the inside packages, and those that they import, step by step."""
    waiting = [
        path
        for name in INSIDE
        for path in (*python_files(package_dir / name), package_dir / f"{name}.py")
        if path.is_file()
    ]
    found: list[Path] = []
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.append(path)
        # The public API is loaded when the user's own code asks for it, never by the inside.
        by_user = path == package_dir / "__init__.py"
        for imported in imports(path):
            if imported.when != FOR_TYPES and not (by_user and imported.when == IN_FUNCTION):
                waiting += our_files(imported, package_dir)
    return sorted(found)


def our_files(imported: Import, package_dir: Path) -> list[Path]:
    """Return the files of hotlap that an import loads, ``__init__`` of its packages included."""
    parts = imported.module.split(".")
    if parts[0] != "hotlap":
        return []
    steps = [*parts[1:], *([imported.name] if imported.name else [])]
    files, here = [package_dir / "__init__.py"], package_dir
    for step in steps:
        here = here / step
        files += [here.with_suffix(".py"), here / "__init__.py"]
    return [path for path in files if path.is_file()]


def foreign_imports(path: Path) -> list[str]:
    """Return the imports of a file that are neither standard library, nor ours, nor allowed."""
    found = []
    for imported in imports(path):
        top = imported.module.split(".")[0]
        if imported.when == FOR_TYPES or imported.level or top in {"hotlap", *BY_SITE}:
            continue
        if top in sys.stdlib_module_names:
            continue
        if imported.when == IN_FUNCTION and top in USERS_OWN:
            continue
        found.append(f"{path.name}:{imported.line}: {top} {imported.when}")
    return found


def torch_at_import(path: Path) -> list[int]:
    """Return the lines on which a file imports torch as soon as it is imported itself."""
    return [
        imported.line
        for imported in imports(path)
        if imported.when == AT_IMPORT and imported.module.split(".")[0] == "torch"
    ]
