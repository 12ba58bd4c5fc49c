"""Which of a file's plans a run applies here, and which of its knobs."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.errors import WrongUse
from hotlap.knobs import catalogue
from hotlap.tune.choice import MACHINES_OWN, Applied, choose
from hotlap.values.plan import Plan
from unit.tune.plans import HERE, choice, plan

FILE = "hotlap.plan.toml"
BOTH = plan(choice("anomaly_mode", False), choice("loader_workers", 4))


def chosen(*plans: Plan, here: dict[str, Any] | None = None, **environ: str) -> Applied:
    """Choose on the machine ``HERE``, with what is different about it."""
    return choose(plans, {**HERE, **(here or {})}, environ, FILE)


def test_on_the_machine_that_it_was_measured_on_all_is_applied() -> None:
    found = chosen(BOTH)
    assert found.settings == {"anomaly_mode": False, "loader_workers": 4}
    assert found.left_out == {}
    assert found.differences == ()
    assert found.plan is BOTH
    assert found.plan_file == FILE


def test_other_hardware_leaves_out_the_machine_s_own_knobs_and_says_so() -> None:
    found = chosen(BOTH, here={"cores_allowed": 2.0})
    assert found.settings == {"anomaly_mode": False}
    assert found.left_out == {
        "loader_workers": "what it brings depends on the machine, and must be measured again"
    }
    assert found.differences == ("cores that it may use: 8.0 when it was measured, 2.0 now",)


def test_another_torch_is_told_and_leaves_nothing_out() -> None:
    found = chosen(BOTH, here={"torch": "2.14.0"})
    assert set(found.settings) == {"anomaly_mode", "loader_workers"}
    assert found.differences == ("torch: 2.13.0 when it was measured, 2.14.0 now",)


def test_what_is_not_known_yet_is_no_difference() -> None:
    hardware = {"cpu_model": HERE["cpu_model"]}
    assert choose([BOTH], hardware, {}, FILE).differences == ()


def test_of_several_plans_the_one_of_this_machine_is_taken() -> None:
    other = plan(choice("gc_control", "freeze"), fingerprint={**HERE, "cpu_model": "Another"})
    assert chosen(other, BOTH).plan is BOTH
    assert chosen(BOTH, other, here={"cpu_model": "Another"}).plan is other


def test_the_user_s_environment_wins() -> None:
    threads = choice("intra_op_threads", 4, environment={"OMP_NUM_THREADS": "4"})
    both = plan(threads, choice())
    found = chosen(both, OMP_NUM_THREADS="1")
    assert found.settings == {"anomaly_mode": False}
    assert found.environment == {}
    assert found.left_out == {
        "intra_op_threads": "OMP_NUM_THREADS is set in the environment, which is your word"
    }
    same = chosen(both, OMP_NUM_THREADS="4")
    assert same.environment == {"OMP_NUM_THREADS": "4"}
    assert same.left_out == {}


def test_a_knob_that_is_left_out_sets_no_variable() -> None:
    threads = choice("intra_op_threads", 4, environment={"OMP_NUM_THREADS": "4"})
    assert chosen(plan(threads), here={"cpu_model": "Another"}).environment == {}


def test_a_knob_of_a_later_hotlap_is_refused_in_words() -> None:
    with pytest.raises(WrongUse, match=r"a knob 'warp_drive' that this hotlap does not know"):
        chosen(plan(choice("warp_drive", 9)))


def test_a_file_without_plans_says_how_to_make_one() -> None:
    with pytest.raises(WrongUse, match=r"hotlap.plan.toml holds no plan; `hotlap tune COMMAND`"):
        chosen()


def test_the_machine_s_own_knobs_are_knobs() -> None:
    assert set(catalogue.KNOBS) >= MACHINES_OWN
