"""The list of knobs: each is whole, loads no torch, and remedies name only what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hotlap.knobs
from hotlap.diagnose import catalogue as rules
from hotlap.errors import WrongUse
from hotlap.knobs import catalogue
from hotlap.values.knob import NUMERICS
from hotlap.values.phase import RUN_PHASES, STEP_PHASES

PLANNED = {"data_cache"}
"""Named by remedies before they exist."""
BESIDE = {
    "batched_rows",
    "catalogue",
    "ddp_argument",
    "devices",
    "loader_argument",
    "offers",
    "optimizer_argument",
    "outermost",
    "plain_samples",
    "target",
    "thread_counts",
}
"""Modules of the package that are no knobs, but what several of them share."""
FOLDER = Path(hotlap.knobs.__file__).parent


@pytest.mark.parametrize("name", catalogue.KNOBS)
def test_a_knob_is_whole(name: str) -> None:
    knob = catalogue.load(name)
    assert name == knob.NAME
    assert knob.PHASE in (*STEP_PHASES, *RUN_PHASES)
    assert knob.NUMERICS
    assert set(knob.NUMERICS) <= set(NUMERICS)
    assert knob.__doc__.startswith(f"# {name}: ")
    parts = [
        knob.__doc__.find(part)
        for part in ("**What.**", "**Where it helps.**", "**What else it changes.**")
    ]
    assert -1 not in parts
    assert parts == sorted(parts)


def test_every_file_is_a_knob_or_shared_by_some() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert files == {*catalogue.KNOBS, *BESIDE}


def test_loading_knobs_loads_no_torch() -> None:
    code = "from hotlap.knobs import catalogue; list(catalogue.all_knobs()); import sys"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit('torch' in sys.modules)"], check=False
    )
    assert done.returncode == 0


def test_an_unknown_knob_is_told_with_what_is_near() -> None:
    with pytest.raises(WrongUse, match="loader_workers"):
        catalogue.load("loader_worker")
    with pytest.raises(WrongUse, match="no knob"):
        catalogue.load("os.path")


def test_how_many_workers_is_decided_before_what_depends_on_it() -> None:
    assert catalogue.KNOBS[-1] == "loader_workers"


def test_a_model_is_compiled_within_what_acts_on_its_calls() -> None:
    order = [catalogue.KNOBS.index(one) for one in ("compile", "channels_last", "autocast")]
    assert order == sorted(order)


def test_remedies_name_only_knobs() -> None:
    folder = Path(rules.__file__).parent / "rules"
    named = set()
    for path in folder.glob("*.py"):
        for given in re.findall(
            r"(?:Remedy\(\s*\"\w+\",\s*|knobs = )\(([^)]*)\)", path.read_text()
        ):
            named |= set(re.findall(r"\"(\w+)\"", given))
    assert named >= {"loader_workers", "anomaly_mode", "fused_optimizer"}
    assert named <= {*catalogue.KNOBS, *PLANNED}
