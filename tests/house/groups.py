"""Names of tests as pytest-xdist gives them: with their group behind."""

from __future__ import annotations


def without_group(name: str) -> str:
    """Return the name that a test has without ``--dist loadgroup``."""
    begin = max(name.rfind("]"), name.rfind("::"))
    at = name.find("@", begin) if begin >= 0 else -1
    return name if at < 0 else name[:at]
