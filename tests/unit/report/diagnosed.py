"""Facts and diagnoses of every kind that a report has to read well for, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from hotlap.values.facts import (
    EpochEnd,
    Facts,
    Measured,
    Missing,
    SourceLine,
    Storage,
    WhatIf,
    WorkerPoint,
)
from hotlap.values.finding import (
    Bounds,
    Diagnosis,
    Evidence,
    Finding,
    Location,
    Remedy,
)
from hotlap.values.record import Place
from hotlap.values.trial import OperatorEntry, ProfileEntry
from unit.account.records import MS
from unit.report.gallery import summary

UNKNOWN = Bounds(None, None)


class Case(NamedTuple):
    """What a report is made from."""

    facts: Facts
    diagnosis: Diagnosis


def finding(**fields: Any) -> Finding:
    """Return a finding about decoding in the data set; fields replace its own."""
    plain = Finding(
        code="HL101",
        name="input-bound-decode",
        phase="data_wait",
        scope="step",
        status="proven",
        recoverable_share=Bounds(0.35, 0.42),
        locations=(Location("train.py", 14, "__getitem__", 0.81),),
        evidence=(
            Evidence("CPU of a batch", 0.61, "share"),
            Evidence("decoding", 6_010_000, "ns per step"),
            Evidence("loader alone", 3210.0, "samples/s"),
            Evidence("cold reads", None, "bytes"),
        ),
        remedy=Remedy("knob", ("loader_workers",), "the order of random draws in workers"),
        say="Every sample is decoded anew on a full CPU. Decode once and keep the arrays.",
        predicted_speedup=Bounds(1.52, 1.71),
        covers=frozenset({"train.py:14"}),
    )
    return replace(plain, **fields)


def logging_finding(**fields: Any) -> Finding:
    """Return a finding about a file that is opened in each step; fields replace its own."""
    plain = finding(
        code="HL402",
        name="log-written-every-step",
        phase="logging",
        recoverable_share=Bounds(0.03, 0.05),
        locations=(
            Location("train.py", 61, "main", 0.7),
            Location("train.py", 62, "main", 0.3),
        ),
        evidence=(Evidence("opened", 1.0, "times per step"),),
        remedy=Remedy("code", (), ""),
        say="A file is opened and closed in every step. Open it once.",
        predicted_speedup=Bounds(1.03, 1.05),
    )
    return replace(plain, **fields)


def source(*lines: tuple[str, int, str]) -> dict[str, SourceLine]:
    """Return lines of source as facts hold them."""
    return {
        f"{file}:{line}": SourceLine(Place(file, line, "main"), text) for file, line, text in lines
    }


def profile(*lines: tuple[str, str, str, int, int]) -> Measured[tuple[ProfileEntry, ...]]:
    """Return a profile of role, phase, file, line and milliseconds."""
    entries = tuple(
        ProfileEntry(
            role=role,
            phase=phase,
            place=Place(file, line, "main"),
            expression=None,
            callers=(),
            leaf="PIL.Image.open",
            samples=ms,
            ns=ms * MS,
            working_ns=ms * MS * 3 // 4,
            blocked_ns=ms * MS // 4,
            runqueue_ns=0,
            over_time=(),
        )
        for role, phase, file, line, ms in lines
    )
    return Measured(entries, "the watched trial")


CURVE = (
    WorkerPoint(0, 410.0, 400.0, 420.0),
    WorkerPoint(1, 800.0, 780.0, 820.0),
    WorkerPoint(2, 3210.0, 3150.0, 3300.0),
    WorkerPoint(4, 3240.0, 3170.0, 3320.0),
)


def operators(*rows: tuple[str, str, int, float, float]) -> Measured[tuple[OperatorEntry, ...]]:
    """Operators of a step: file, name, line, calls and milliseconds; backward of line 30."""
    return Measured(
        tuple(
            OperatorEntry(
                place=None if line == 30 else Place(file, line, "forward"),
                phase="backward" if line == 30 else "forward",
                name=name,
                calls=calls,
                ns=milliseconds * MS,
                dtypes=("float32",),
                forward=Place(file, 12, "forward") if line == 30 else None,
            )
            for file, name, line, calls, milliseconds in rows
        ),
        "3 steps in trial 3",
    )


def _measured(**fields: Any) -> Facts:
    """Return facts with every figure there."""
    plain = Facts(
        run=summary("workers"),
        whole_run=True,
        profile=profile(
            ("trainer", "start_up", "train.py", 3, 900),
            ("trainer", "data_wait", "train.py", 40, 2400),
            ("trainer", "forward", "train.py", 44, 1500),
            ("trainer", "forward", "model.py", 9, 90),
            ("worker", "fetch", "train.py", 14, 3100),
            ("worker", "fetch", "train.py", 15, 700),
            ("worker", "collate", "train.py", 20, 120),
        ),
        source=source(
            ("train.py", 11, "def __getitem__(self, index):"),
            ("train.py", 13, 'with open(self.paths[index], "rb") as file:'),
            ("train.py", 14, 'image = Image.open(file).convert("RGB")'),
            ("train.py", 15, "return self.transform(image), self.labels[index]"),
            ("train.py", 40, "for images, labels in loader:"),
            ("train.py", 61, 'with open("log.txt", "a") as log:'),
            ("train.py", 62, "log.write(str(loss))"),
        ),
        step_series=tuple((10 + at % 5 + at // 200) * MS for at in range(400)),
        noise=Measured(0.012, "two equal windows of 100 steps"),
        compute_per_s=Measured(8020.0, "replay of 8 batches in trial 1", 7900.0, 8150.0),
        loader_per_s=Measured(3210.0, "drain in trial 1", 3150.0, 3300.0),
        prep_per_s=Measured(3420.0, "drain in trial 1"),
        fetch_per_s=Missing("every page was in memory, so that nothing had to be fetched"),
        samples_per_step=32.0,
        curve=CURVE,
        sample_ns={"p50": 500_000, "p90": 700_000, "p99": 900_000, "max": 2 * MS, "mean": 510_000},
        what_ifs=(WhatIf("torch threads", 1, 1.02, 0.99, 1.05, True),),
        trials=(
            {
                "name": "watch",
                "folder": "trials/01-watch",
                "wall_ns": 5720 * MS,
                "ended_by": "itself",
                "exit_code": 0,
                "contained": True,
            },
            {
                "name": "ceilings",
                "wall_ns": 9000 * MS,
                "ended_by": "itself",
                "exit_code": 0,
                "contained": True,
                "windows": [
                    {"kind": "baseline", "steps": 100, "ended_by": "steps"},
                    {"kind": "replay", "steps": 100, "ended_by": "steps"},
                ],
            },
        ),
        not_measured=(("operators", "torch.profiler failed in this trial"),),
    )
    return replace(plain, **fields)


def input_bound() -> Case:
    """One cause in the loader."""
    headline = "Input-bound: the loader's workers decode, and every core is full"
    ceiling = "compute, at 8,020 samples/s"
    one = finding()
    found = Diagnosis("input", headline, (one,), (), ceiling, one.predicted_speedup, 0.012)
    return Case(_measured(), found)


def stopped() -> Case:
    """A run that was not watched to its end, its storage cold and warm, its epoch ended early."""
    first = input_bound()
    cold = Storage(64, 64, 64 << 20, 640 * MS, 160 * MS, 520 * MS, 8 * MS, 64 << 20)
    end = EpochEnd(4000.0, {"evaluation": 12_000 * MS, "checkpoint": 400 * MS}, (), whole=False)
    run = replace(first.facts.run, horizon_steps=None, horizon_source="unknown")
    seen = replace(
        first.facts,
        run=run,
        whole_run=False,
        storage=Measured(cold, "storage window"),
        epoch_end=Measured(end, "a trial"),
    )
    return Case(seen, first.diagnosis)


def two() -> Case:
    """A cause in the loader and one in the loop."""
    first = input_bound()
    found = replace(
        first.diagnosis,
        findings=(finding(), logging_finding()),
        together=Bounds(1.58, 1.80),
        unknown=(("HL501", "one process trained alone"),),
    )
    return Case(first.facts, found)


def healthy() -> Case:
    """Nothing worth fixing."""
    headline = "Nothing worth fixing; you are bound by compute"
    ceiling = "the loader, at 9,000 samples/s"
    facts = _measured(
        run=summary("plain"),
        compute_per_s=Measured(3300.0, "replay"),
        loader_per_s=Measured(9000.0, "drain"),
        operators=operators(
            ("train.py", "aten::mm", 12, 4.0, 6.0),
            ("train.py", "aten::mm", 30, 8.0, 12.0),
            ("train.py", "aten::relu", 13, 2.0, 2.0),
        ),
    )
    return Case(facts, Diagnosis("compute", headline, (), (), ceiling, UNKNOWN, 0.021))


def nothing() -> Case:
    """A command in which no training was found."""
    headline = "No step was seen, so that nothing can be said"
    facts = Facts(run=summary("absent"))
    because = "there is no step to look at"
    unknown = (("HL101", because), ("HL201", because), ("HL901", because))
    return Case(facts, Diagnosis("unknown", headline, (), unknown, None, UNKNOWN, None))


def undecided() -> Case:
    """Steps were seen, and no experiment could be made."""
    headline = "Too little was measured to name a cause"
    facts = Facts(run=summary("young"), not_measured=(("replay", "batches change in place"),))
    unknown = (("HL101", "the loader was not drained"),)
    return Case(facts, Diagnosis("unknown", headline, (), unknown, None, UNKNOWN, None))


def foreign() -> Case:
    """Names and source in other scripts, with tags, escapes and bytes that are no text."""
    file = "データ/überlang\udcff/train.py"
    nasty = 'x = "</script><script>alert(1)</script>"  # \x1b[31m<b>{{ 7 * 7 }}</b> 日本語 & \u202e'
    place_of_it = (Location(file, 7, "lade_größe<b>", 1.0),)
    one = finding(
        locations=place_of_it, say="Größe & <i>Form</i> ändern sich. Tu {{ nichts }} </script>."
    )
    run = replace(summary("workers"), command=("python", file, "--name", "<b>日本</b>\x1b[0m"))
    facts = _measured(
        run=run,
        source=source((file, 7, nasty)),
        profile=profile(("trainer", "forward", file, 7, 100)),
        trials=({"name": "<b>bold</b>", "note": nasty},),
        operators=operators((file, "mine::<b>größe</b>", 7, 1.0, 1.0)),
    )
    found = Diagnosis("input", "<b>Größe</b>", (one,), (), None, one.predicted_speedup, 0.5)
    return Case(facts, found)


def long() -> Case:
    """Very long lines, names and reasons, and many findings."""
    file = "/".join(["a_folder_with_a_long_name"] * 12) + "/train.py"
    line = "result = " + " + ".join(f"value_{at}" for at in range(400))
    words = "and so on and on " * 30
    many = tuple(
        finding(
            code=f"HL9{at:02}",
            name=f"name-{'long-' * 12}{at}",
            locations=tuple(Location(file, at + one, "f" * 90, 0.1) for one in range(6)),
            say=words,
            evidence=tuple(Evidence(f"figure {one}", one * 1.5, "unit") for one in range(20)),
            remedy=Remedy("code", (), words),
            recoverable_share=Bounds(None, 0.2 - at * 0.009),
        )
        for at in range(20)
    )
    facts = _measured(
        source={f"{file}:{at}": SourceLine(Place(file, at, "f"), line) for at in range(30)},
        operators=operators(
            *((file, f"mine::{'long_' * 12}{at}", at, 1.0, 1.0) for at in range(20))
        ),
        not_measured=tuple((f"thing {at}", f"reason {at} {words}") for at in range(12)),
    )
    found = Diagnosis("host", words, many, (), words, Bounds(1.1, None), 0.012)
    return Case(facts, found)


CASES = {
    "input_bound": input_bound,
    "stopped": stopped,
    "two": two,
    "healthy": healthy,
    "nothing": nothing,
    "undecided": undecided,
    "foreign": foreign,
    "long": long,
}
