"""The plan's file: TOML, one ``[[plan]]`` per fingerprint, without paths or secrets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hotlap.errors import WrongUse
from hotlap.tune.fingerprint import differences
from hotlap.values.comparison import Interval
from hotlap.values.finding import Bounds
from hotlap.values.knob import NUMERICS
from hotlap.values.plan import Choice, Plan

FORMAT: Final = 1
NAME: Final = "hotlap.plan.toml"
HEAD: Final = """\
# Written by `hotlap tune`. Apply it: hotlap run --plan {name} COMMAND
# Each [[plan]] holds for the machine and the software of its fingerprint.

"""


def read(path: Path) -> tuple[Plan, ...]:
    """Return the plans of a file; raises WrongUse, with what is wrong with it, where it is none."""
    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WrongUse(f"{path}: there is no such file; `hotlap tune COMMAND` makes one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise WrongUse(f"{path} is no plan: {error}") from error
    if raw.get("format") != FORMAT:
        raise WrongUse(
            f"{path} is of format {raw.get('format')!r}, this hotlap reads {FORMAT}: update hotlap "
            "(pip install -U hotlap) or tune anew"
        )
    try:
        return tuple(_plan(one) for one in raw.get("plan", ()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WrongUse(f"{path} is damaged: {type(error).__name__}: {error}") from error


def write(path: Path, plan: Plan) -> None:
    """Write a plan, whole or not at all, beside those of other fingerprints in the same file.

    Raises WrongUse where the file is no plan, OSError.
    """
    import tomli_w

    others = read(path) if path.exists() else ()
    kept = [one for one in others if differences(one.fingerprint, plan.fingerprint)]
    whole = {"format": FORMAT, "plan": [_raw(one) for one in (*kept, plan)]}
    fresh = path.with_name(path.name + ".new")
    text = HEAD.format(name=path.name) + tomli_w.dumps(whole)
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _raw(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "made": plan.made,
        "hotlap_version": plan.hotlap_version,
        "command": list(plan.command),
        "equivalence": plan.equivalence,
        "gain": _interval(plan.gain),
        "step_ns": list(plan.step_ns) if plan.step_ns is not None else None,
        "fingerprint": dict(plan.fingerprint),
        "knob": [_raw_choice(one) for one in plan.choices],
    }
    return {key: value for key, value in found.items() if value is not None}


def _raw_choice(one: Choice) -> dict[str, Any]:
    predicted = {"low": one.predicted.low, "high": one.predicted.high}
    found: dict[str, Any] = {
        "name": one.knob,
        "value": one.value,
        "numerics": one.numerics,
        "predicted": {key: round(value, 4) for key, value in predicted.items() if value} or None,
        "measured": _interval(one.measured),
        "proof": one.proof,
        "environment": dict(one.environment) or None,
        "code": one.snippet,
    }
    return {key: value for key, value in found.items() if value is not None}


def _interval(one: Interval | None) -> dict[str, float] | None:
    if one is None:
        return None
    return {"low": round(one.low, 4), "mid": round(one.mid, 4), "high": round(one.high, 4)}


def _plan(raw: Mapping[str, Any]) -> Plan:
    steps = raw.get("step_ns")
    return Plan(
        choices=tuple(_choice(one) for one in raw["knob"]),
        gain=_interval_of(raw.get("gain")),
        step_ns=(int(steps[0]), int(steps[1])) if steps is not None else None,
        fingerprint=dict(raw["fingerprint"]),
        equivalence=str(raw["equivalence"]),
        command=tuple(str(word) for word in raw.get("command", ())),
        made=str(raw.get("made", "")),
        hotlap_version=str(raw.get("hotlap_version", "")),
    )


def _choice(raw: Mapping[str, Any]) -> Choice:
    predicted = raw.get("predicted", {})
    if raw["numerics"] not in NUMERICS:
        raise ValueError(f"{raw['numerics']!r} is no class of numerics")
    return Choice(
        knob=str(raw["name"]),
        value=raw["value"],
        numerics=str(raw["numerics"]),
        predicted=Bounds(predicted.get("low"), predicted.get("high")),
        measured=_interval_of(raw.get("measured")),
        proof=str(raw.get("proof", "")),
        environment={str(key): str(value) for key, value in raw.get("environment", {}).items()},
        snippet=str(raw.get("code", "")),
    )


def _interval_of(raw: Mapping[str, Any] | None) -> Interval | None:
    if raw is None:
        return None
    return Interval(float(raw["low"]), float(raw["mid"]), float(raw["high"]))
