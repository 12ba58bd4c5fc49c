"""``hotlap tune`` against a full grid of its own knobs, on programs of the corpus.

    python -m benchmarks grid                       # the three programs of ``CASES``
    python -m benchmarks grid --rows 02 --rows 15   # others

Every combination of values in ``AXES`` is run once, in random order, for a short stretch of steps,
with the command as it stands after every eighth. The best three, what ``hotlap tune`` chose for the
same program, and the command as it stands are then measured anew, in turn and in both orders, since
the best of many short runs looks faster than it is. Takes a quarter of an hour per program, beside
which nothing else may run.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.surroundings import keep, table
from hotlap.cli.tune import Files, tune_command
from hotlap.experiment.arms import Bench, Span, span_of
from hotlap.experiment.measure import Ask, measure
from hotlap.experiment.trials import Lab, manifest_of
from hotlap.knobs import catalogue
from hotlap.launch.command import complete
from hotlap.launch.trial import way_here
from hotlap.runs.store import open_store, write_manifest
from hotlap.stats.paired import paired
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.facts import Facts

CORPUS: Final = Path(__file__).resolve().parent.parent / "tests" / "corpus"
CASES: Final = ("02_census_mlp", "15_bird_calls", "28_ad_clicks")
AXES: Final[Mapping[str, tuple[Any, ...]]] = {
    "loader_workers": (None, 1, 2),
    "persistent_workers": (None, True),
    "intra_op_threads": (None, 1),
    "batched_fetch": (None, True),
    "fused_optimizer": (None, True),
    "allocator": (None, "glibc-thresholds"),
}
"""What is combined: None leaves the command as it stands. 96 arms."""
_SHORT_S: Final = 1.5
_BETWEEN: Final = 8
_SEED: Final = 20240229
_FINALS: Final = 3
_ROUNDS: Final = 2


def run(rows: Sequence[str] | None) -> None:
    """Measure, print and keep. rows: parts of names of corpus programs; None for ``CASES``."""
    chosen = [one.parent for one in sorted(CORPUS.glob("*/label.toml"))]
    wanted = rows or CASES
    results = []
    for folder in chosen:
        if any(folder.name.startswith(one) for one in wanted):
            results.append(_case(folder))
            keep("grid", {"cases": results})
    table(
        "hotlap tune against a full grid",
        ("program", "arms", "of them tried", "best of grid", "tune", "tune of best"),
        [
            (
                one["case"],
                str(one["arms"]),
                f"{one['tried']} ({one['tried'] / one['arms']:.0%})",
                _words(one["finals"][0]["gain"]),
                _words(one["tune"]["gain"]),
                _words(one["of_best"]),
            )
            for one in results
        ],
    )


def _words(interval: Sequence[float] | None) -> str:
    if interval is None:
        return "-"
    low, mid, high = interval
    return f"{mid:.2f} ({low:.2f} to {high:.2f})"


def _case(folder: Path) -> dict[str, Any]:
    command = tuple(shlex.split(_label(folder)["command"]))
    with tempfile.TemporaryDirectory(prefix="hotlap-grid-") as place:
        shutil.copy(folder / "slow.py", place)
        before = Path.cwd()
        os.chdir(place)
        try:
            subprocess.run(
                [sys.executable, *command[1:]], check=True, stdout=subprocess.DEVNULL
            )  # makes its data
            return _measured(folder.name, command)
        finally:
            os.chdir(before)


def _label(folder: Path) -> dict[str, Any]:
    from importlib import import_module

    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = tomllib.loads((folder / "label.toml").read_text())
    return found


@dataclass
class _Grid:
    """All arms of one program, and what their one short run says of them."""

    ranked: list[tuple[float, Arm]]
    failed: int


def _measured(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    tuning = _tuned(command)
    environ = dict(os.environ)
    argv = complete(command, environ)
    facts, lab = _facts(argv, environ)
    try:
        grid = _grid(lab, facts)
        plan = {one["knob"]: one["value"] for one in tuning["plan"]}
        finals = [arm for _, arm in grid.ranked[:_FINALS]]
        arms = [Arm(), _arm(plan, environ), *finals]
        runs = _in_turn(lab, facts, arms)
    finally:
        lab.close()
    gains = [_gain(runs[0], one) for one in runs]
    order = sorted(range(2, len(arms)), key=lambda at: -(gains[at] or (0, 0, 0))[1])
    best = order[0]
    return {
        "case": name,
        "arms": len(grid.ranked) + grid.failed,
        "failed": grid.failed,
        "tried": len({json.dumps(one, sort_keys=True) for one in _tried(tuning)}),
        "tune": {"plan": plan, "gain": gains[1]},
        "finals": [{"settings": dict(arms[at].settings), "gain": gains[at]} for at in order],
        "of_best": _gain(runs[best], runs[1]),
    }


def _tuned(command: tuple[str, ...]) -> dict[str, Any]:
    from hotlap.tune.session import Order

    tune_command(command, Order(), Files(Path("hotlap.plan.toml"), json="tuning.json"))
    found: dict[str, Any] = json.loads(Path("tuning.json").read_text())
    return found


def _tried(tuning: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of every run that was not of the command as it stands."""
    for one in tuning["runs"]:
        if one["arm"]:
            yield one["arm"]


def _facts(argv: list[str], environ: dict[str, str]) -> tuple[Facts, Lab]:
    run = open_store(Path.cwd()).new()
    write_manifest(run, manifest_of(run, argv, Path.cwd(), environ))
    lab = Lab(argv, environ, Path.cwd(), run, way_here(Path.cwd(), environ))
    return measure(lab, Ask(40.0, None, None), lambda _: ()), lab


def _span(facts: Facts, seconds: float | None = None) -> Span:
    span = span_of(facts) if seconds is None else span_of(facts, seconds)
    if isinstance(span, str):
        raise SystemExit(f"its runs cannot be compared: {span}")
    return span


def _arms(environ: Mapping[str, str]) -> list[Arm]:
    """Return every combination but the command as it stands, in random order."""
    found = [
        _arm({knob: v for knob, v in zip(AXES, values, strict=True) if v is not None}, environ)
        for values in itertools.product(*AXES.values())
    ]
    arms = [one for one in found if one.settings]
    random.Random(_SEED).shuffle(arms)
    return arms


def _arm(settings: Mapping[str, Any], environ: Mapping[str, str]) -> Arm:
    arm = Arm()
    for knob, value in settings.items():
        arm = arm.with_knob(knob, value, catalogue.load(knob).environment(value, environ))
    return arm


def _grid(lab: Lab, facts: Facts) -> _Grid:
    bench = Bench(lab, _span(facts, _SHORT_S), 5.0)
    last = _time(bench.run(Arm(), "as it stands"))
    ranked, waiting, failed = [], [], 0
    arms = _arms(lab.environ)
    for at, arm in enumerate(arms, 1):
        spent = _time(bench.run(arm, f"arm {at} of {len(arms)}"))
        if spent is None:
            failed += 1
        else:
            waiting.append((spent, arm))
        if at % _BETWEEN == 0 or at == len(arms):
            now = _time(bench.run(Arm(), f"as it stands, after {at}"))
            known = [one for one in (last, now) if one is not None]
            middle = sum(known) / len(known) if known else 1.0
            ranked += [(middle / one, arm) for one, arm in waiting]
            waiting, last = [], now
    return _Grid(sorted(ranked, key=lambda one: -one[0]), failed)


def _time(run: ArmRun) -> float | None:
    return None if run.failed is not None else float(sum(run.spans_ns))


def _in_turn(lab: Lab, facts: Facts, arms: Sequence[Arm]) -> list[list[ArmRun]]:
    """Run arms for a long stretch each, forwards and backwards; return the runs of each."""
    bench = Bench(lab, _span(facts), 5.0)
    runs: list[list[ArmRun]] = [[] for _ in arms]
    for nth in range(2 * _ROUNDS):
        order = range(len(arms)) if nth % 2 == 0 else reversed(range(len(arms)))
        for at in order:
            found = bench.run(arms[at], f"final {at}, {nth}")
            if found.failed is None:
                runs[at].append(found)
    return runs


def _gain(before: Sequence[ArmRun], after: Sequence[ArmRun]) -> tuple[float, float, float] | None:
    """Return time before over time after, with its interval."""
    found = paired([one.spans_ns for one in before], [one.spans_ns for one in after])
    return None if found is None else (found.low, found.mid, found.high)
