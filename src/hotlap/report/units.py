"""Numbers with units as people read them: three digits that count, no more."""

from __future__ import annotations

import math
from typing import Final

UNKNOWN: Final = "not measured"

_SECONDS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_SIZES: Final = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_LONG: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def digits(value: float, figures: int = 3) -> str:
    """Return a number rounded to so many significant digits, with thousands set apart."""
    if value == 0:
        return "0"
    places = figures - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    # Rounding may have carried into a new digit: 9.996 is 10.0 and not 10.00.
    places = figures - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, places)}f}"


def duration(ns: float | None) -> str:
    """Return a time: ``812 ns``, ``12.3 µs``, ``1.23 s``, ``2 min 5 s``, ``3 h 12 min``."""
    if ns is None:
        return UNKNOWN
    if ns < 0:
        return f"-{duration(-ns)}"
    if round(ns / 1e9) >= 100:
        return _long(round(ns / 1e9))
    for size, unit in _SECONDS:
        # 999.6 µs is shown as 1.00 ms.
        if ns >= size * 0.9995:
            return f"{digits(ns / size)} {unit}"
    return f"{digits(ns)} ns" if ns else "0 s"


def _long(seconds: int) -> str:
    for at, (size, unit) in enumerate(_LONG[:-1]):
        if seconds >= size:
            small, small_unit = _LONG[at + 1]
            rest = seconds % size // small
            return f"{seconds // size} {unit} {rest} {small_unit}"
    return f"{seconds} s"


def size(size_bytes: float | None) -> str:
    """Return a number of bytes in decimal units: ``812 B``, ``1.23 GB``."""
    if size_bytes is None:
        return UNKNOWN
    for unit_bytes, unit in _SIZES:
        if size_bytes >= unit_bytes * 0.9995:
            return f"{digits(size_bytes / unit_bytes)} {unit}"
    return f"{size_bytes:.0f} B"


def speed(bytes_per_s: float | None) -> str:
    """Return bytes per second: ``120 MB/s``."""
    return UNKNOWN if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def share(part: float | None) -> str:
    """Return a share in percent: ``61 %``, ``4.2 %``; what is there but small is ``<1 %``."""
    if part is None:
        return UNKNOWN
    percent = part * 100
    if percent == 0:
        return "0 %"
    if 0 < percent < 0.95:
        return "<1 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def many(count: int, one: str, more: str | None = None) -> str:
    """Return a count with its noun: ``1 step``, ``1,200 steps``."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
