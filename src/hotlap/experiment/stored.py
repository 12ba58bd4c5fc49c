"""Facts as JSON, and back: exactly the same facts.

Values of ours are objects with their class's name under ``~``; tuples are arrays, as nearly all
sequences are; lists, and tables whose keys are no text, are marked. An older file may lack fields
that have a default, a newer one may have more: both can be read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

from hotlap.errors import UnreadableRun
from hotlap.values import arm as arm_module
from hotlap.values import comparison as comparison_module
from hotlap.values import facts as facts_module
from hotlap.values import finding as finding_module
from hotlap.values import plan as plan_module
from hotlap.values import record as record_module
from hotlap.values import summary as summary_module
from hotlap.values import trial as trial_module
from hotlap.values import tuning as tuning_module
from hotlap.values.facts import Facts

FORMAT: Final = 1
_CLASS: Final = "~"
_LIST: Final = "~list"
_TABLE: Final = "~table"
_NUMBER: Final = "~number"
_SET: Final = "~set"

_RENAMED: Final = {
    "detect_anomaly": "anomaly_mode",
    "foreach": "foreach_optimizer",
    "fused": "fused_optimizer",
    "gc": "gc_control",
    "no_grad_evaluation": "evaluation_without_grad",
    "prefetch_factor": "prefetch_depth",
    "torch_threads": "intra_op_threads",
    "workers": "loader_workers",
    "zero_grad_set_to_none": "zero_grad_to_none",
}
"""Changes by the names that they had before they were knobs."""

_CLASSES: Final[dict[str, type]] = {
    name: value
    for module in (
        arm_module,
        comparison_module,
        facts_module,
        finding_module,
        plan_module,
        record_module,
        summary_module,
        trial_module,
        tuning_module,
    )
    for name, value in vars(module).items()
    if isinstance(value, type) and is_dataclass(value)
}


def to_json(facts: Facts) -> str:
    """Return facts as a JSON text."""
    whole = {"format": FORMAT, "facts": packed(facts)}
    return json.dumps(whole, allow_nan=False, separators=(",", ":")) + "\n"


def from_json(text: str) -> Facts:
    """Return the facts of a text that ``to_json`` wrote; raises UnreadableRun if it is none."""
    try:
        whole = json.loads(text)
        if whole["format"] > FORMAT:
            raise UnreadableRun(
                f"these facts are of format {whole['format']}, this hotlap reads {FORMAT}: "
                "update hotlap (pip install -U hotlap)"
            )
        facts = unpacked(whole["facts"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRun(f"the facts of this diagnosis are damaged: {error}") from error
    if not isinstance(facts, Facts):
        raise UnreadableRun("this file holds no facts of a diagnosis")
    tried = (replace(one, change=_RENAMED.get(one.change, one.change)) for one in facts.what_ifs)
    return replace(facts, what_ifs=tuple(tried))


def save(facts: Facts, path: Path) -> None:
    """Write facts to a file, as a whole or not at all; raises OSError."""
    fresh = path.with_suffix(".new")
    fresh.write_text(to_json(facts), encoding="utf-8")
    fresh.replace(path)


def load(path: Path) -> Facts:
    """Read facts from a file; raises UnreadableRun when there are none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableRun(f"{path} cannot be read: {error}") from error
    return from_json(text)


def packed(value: Any) -> Any:
    """Return the JSON form of a value of ours, or of what such values hold.

    Raises TypeError, naming the type, for anything else.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_NUMBER: repr(value)}
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: packed(getattr(value, one.name)) for one in fields(value)}
        return {_CLASS: type(value).__name__, **own}
    if isinstance(value, tuple):
        return [packed(one) for one in value]
    if isinstance(value, list):
        return {_LIST: [packed(one) for one in value]}
    if isinstance(value, (set, frozenset)):
        return {_SET: sorted((packed(one) for one in value), key=repr)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith(_CLASS) for key in value):
            return {key: packed(one) for key, one in value.items()}
        return {_TABLE: [[packed(key), packed(one)] for key, one in value.items()]}
    raise TypeError(f"a {type(value).__name__} has no place in facts")


def unpacked(raw: Any) -> Any:
    """Return what ``packed`` gave; raises KeyError for a class that is not known."""
    if isinstance(raw, list):
        return tuple(unpacked(one) for one in raw)
    if not isinstance(raw, dict):
        return raw
    if _CLASS in raw:
        made = _CLASSES[raw[_CLASS]]
        names = {one.name for one in fields(made)}
        return made(**{key: unpacked(one) for key, one in raw.items() if key in names})
    if _LIST in raw:
        return [unpacked(one) for one in raw[_LIST]]
    if _SET in raw:
        return frozenset(unpacked(one) for one in raw[_SET])
    if _NUMBER in raw:
        return float(raw[_NUMBER])
    if _TABLE in raw:
        return {unpacked(key): unpacked(one) for key, one in raw[_TABLE]}
    return {key: unpacked(one) for key, one in raw.items()}
