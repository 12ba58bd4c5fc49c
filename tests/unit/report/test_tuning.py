"""A tuning as a page and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hotlap.report.tuning_json import tuning_json
from hotlap.report.tuning_page import tuning_page
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.comparison import Interval
from hotlap.values.finding import Bounds
from hotlap.values.phase import ACCOUNTS
from hotlap.values.tuning import Check, Sameness, Tried, Tuning
from unit.account.records import MS
from unit.report.diagnosed import healthy, two
from unit.tune.plans import choice, plan

GAIN = Interval(1.5, 1.6, 1.7)
PLANNED = Arm({"anomaly_mode": False})
KEPT = Tried(
    "anomaly_mode",
    False,
    "identical",
    "kept",
    "1.60 times as fast",
    Bounds(1.4, 1.8),
    GAIN,
    "the switch was passed over",
    0.0,
    "torch.autograd.set_detect_anomaly(False)",
)
SLOW = Tried(
    "loader_workers",
    2,
    "resampled",
    "rejected",
    "it is slower: 0.80 times as fast (0.79 to 0.81)",
    measured=Interval(0.79, 0.80, 0.81),
    snippet="DataLoader(…, num_workers=2)",
)
NEVER = Tried("cudnn_benchmark", None, "identical", "rejected", "there is no GPU")
HALF = Tried("autocast", "bfloat16", "reduced", "offered", "2.00 times as fast", measured=GAIN)


def ran(arm: Arm, milliseconds: int, failed: str | None = None) -> ArmRun:
    """Return a run of 20 steps."""
    spans = () if failed else (milliseconds * MS,) * 20
    accounts = dict.fromkeys(ACCOUNTS, 0) | {"forward": 20 * milliseconds * MS}
    return ArmRun(arm, 0, spans, 20, 2.0, {}, failed, accounts={} if failed else accounts)


def tuned(**fields: Any) -> Tuning:
    """Return a tuning with a plan; fields replace its own."""
    given: dict[str, Any] = {
        "baseline": two(),
        "tuned": healthy(),
        "tried": (NEVER, SLOW, KEPT, HALF),
        "plan": plan(choice(), gain=GAIN),
        "gain": GAIN,
        "word": "faster",
        "runs": (ran(Arm(), 160), ran(PLANNED, 100), ran(Arm(), 1, "exit code 1")),
        "noise": 0.012,
        "sameness": Sameness("identical", (Check("loss", True, "equal in 4 steps"),)),
        "pays_back_steps": 0,
        "minimum_effect": 0.03,
        "span": {"warm_up": 10, "steps": 20, "seconds": 3.2, "holds_epoch": False},
    }
    return Tuning(**(given | fields))


def bare(**fields: Any) -> Tuning:
    """Return a tuning that found nothing; fields replace its own."""
    given: dict[str, Any] = {
        "tuned": None,
        "tried": (NEVER, SLOW),
        "plan": None,
        "gain": None,
        "word": "no difference",
        "sameness": Sameness("identical"),
        "pays_back_steps": None,
        "noise": None,
    }
    return tuned(**(given | fields))


def page(tuning: Tuning, width: int = 90, **more: Any) -> str:
    """Return the page as it is read: with all spaces the same."""
    return " ".join(tuning_page(tuning, width, **more).split())


def form(tuning: Tuning) -> dict[str, Any]:
    """Return the JSON as a reader gets it."""
    whole: dict[str, Any] = json.loads(json.dumps(tuning_json(tuning), allow_nan=False))
    return whole


def test_a_page_with_a_plan_says_what_it_brings_and_how_to_use_it() -> None:
    text = page(tuned(), file="hotlap.plan.toml", command="train.py --lr 1")
    assert "1.60 (1.50 to 1.70) times as fast, the same 20 steps in turn." in text
    assert "2 runs compared; two runs of one kind differ by 1.2 %" in text
    assert "a gain under 3" in text
    assert "anomaly_mode = False: 1.60 (1.50 to 1.70) times as fast, predicted 1.40 to 1.80" in text
    assert "identical; the switch was passed over" in text
    assert "autocast = bfloat16: 2.00 times as fast (--numerics reduced)" in text
    assert "loader_workers = 2: it is slower: 0.80 times as fast" in text
    assert "not for this training: cudnn_benchmark" in text
    assert "The training under the plan is identical." in text
    assert "hotlap run --plan hotlap.plan.toml train.py --lr 1" in text
    assert "160 ms a step" in text
    assert "100 ms a step" in text


def test_a_page_without_a_plan_says_so_and_what_bounds_the_training() -> None:
    text = page(bare(), command="train.py")
    assert "Nothing worth changing was found." in text
    assert "--plan" not in text
    assert "under the plan" not in text
    assert "160 ms a step" in text


def test_a_plan_that_was_not_confirmed_says_what_it_came_to() -> None:
    gain = Interval(0.98, 1.01, 1.04)
    text = page(bare(gain=gain))
    assert "all that helped, together, is 1.01 (0.98 to 1.04) times as fast." in text


def test_what_the_budget_left_and_what_the_machine_did_is_said() -> None:
    text = page(tuned(not_tried=("compile", "autocast"), notes=("others were busy",)))
    assert "not tried, since the budget is spent: compile, autocast;" in text
    assert "--resume" in text
    assert "Others were busy." in text


def test_a_check_that_could_not_be_made_is_said() -> None:
    words = "unknown, because no check could be made"
    unsure = Sameness(words, (Check("weights", None, "none were saved"),))
    text = page(tuned(sameness=unsure, pays_back_steps=1234))
    assert f"The training under the plan is {words}." in text
    assert "weights: none were saved" in text
    assert "The longer start is earned after 1,234 steps." in text


@pytest.mark.parametrize("width", [60, 90, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_a_page_keeps_to_its_width(width: int, unicode: bool) -> None:
    for tuning in (tuned(), bare(), tuned(runs=()), tuned(span={})):
        text = tuning_page(tuning, width, unicode=unicode, file="hotlap.plan.toml", command="t.py")
        assert text.endswith("\n")
        assert max(map(len, text.splitlines())) <= width
        assert unicode or text.isascii()


def test_the_contract_of_the_json() -> None:
    whole = form(tuned())
    assert whole["format"] == 1
    assert whole["report"] == "tuning"
    assert {
        "hotlap_version",
        "baseline",
        "tuned",
        "comparison",
        "plan",
        "rejected",
        "offered",
        "equivalence",
        "pays_back_after_steps",
        "next_ceiling",
        "noise_floor",
    } <= set(whole)
    for one in (whole["baseline"], whole["tuned"]):
        assert {"run", "step"} <= set(one)
        assert {"wall_ns", "phases", "horizon"} <= set(one["run"])
        assert {"median_ns", "steps", "phases"} <= set(one["step"])
    assert whole["comparison"]["word"] == "faster"
    assert whole["comparison"]["ratio"] == {"low": 1.5, "mid": 1.6, "high": 1.7}
    assert {"knob", "value", "numerics", "predicted", "measured", "acted"} <= set(whole["plan"][0])
    assert set(whole["plan"][0]["predicted"]) == {"low", "high"}
    assert set(whole["plan"][0]["measured"]) == {"low", "mid", "high"}
    assert {"knob", "value", "because"} <= set(whole["rejected"][0])
    assert {"knob", "numerics", "measured"} <= set(whole["offered"][0])
    assert set(whole["equivalence"]) == {"word", "checks"}
    assert set(whole["noise_floor"]) == {"ratio"}


def test_the_json_s_values_are_those_of_the_tuning() -> None:
    whole = form(tuned())
    (knob,) = whole["plan"]
    assert (knob["knob"], knob["value"], knob["acted"]) == ("anomaly_mode", False, True)
    assert [one["knob"] for one in whole["rejected"]] == ["cudnn_benchmark", "loader_workers"]
    assert whole["rejected"][0]["because"] == "there is no GPU"
    assert [one["knob"] for one in whole["offered"]] == ["autocast"]
    assert whole["equivalence"]["word"] == "identical"
    assert whole["equivalence"]["checks"] == [
        {"name": "loss", "passed": True, "says": "equal in 4 steps"}
    ]
    assert whole["next_ceiling"] == healthy().diagnosis.next_ceiling
    assert whole["noise_floor"]["ratio"] == 0.012
    assert [one["failed"] for one in whole["runs"]] == [None, None, "exit code 1"]
    assert whole["runs"][1]["arm"] == {"anomaly_mode": False}


def test_what_was_not_measured_is_null() -> None:
    whole = form(bare())
    assert whole["tuned"] is None
    assert whole["comparison"]["word"] == "no difference"
    assert whole["comparison"]["ratio"] is None
    assert whole["plan"] == []
    assert whole["offered"] == []
    assert whole["pays_back_after_steps"] is None
    assert whole["noise_floor"]["ratio"] is None
    assert whole["next_ceiling"] == two().diagnosis.next_ceiling
    infinite = form(tuned(gain=Interval(1.0, 1.2, float("inf"))))
    assert infinite["comparison"]["ratio"]["high"] is None


def test_a_choice_that_was_not_measured_alone_has_no_figure() -> None:
    whole = form(tuned(plan=plan(replace(choice(), measured=None))))
    assert whole["plan"][0]["measured"] is None
