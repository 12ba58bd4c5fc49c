"""The search for knobs that help, on a machine made by hand: one test per trap."""

from __future__ import annotations

import pytest

from hotlap.values.knob import Case, No, Offer
from unit.tune.stage import ABOUT_S, Answer, Machine, Stage, offer, product

Patch = pytest.MonkeyPatch


def test_a_knob_that_helps_is_kept_with_its_proof_and_what_it_brought(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(product(good=0.8)), {"good": offer()})
    stage.play()
    kept = stage.one("good")
    assert kept.word == "kept"
    assert kept.measured is not None
    assert kept.measured.low <= 1.25 <= kept.measured.high
    assert kept.proof == "good was seen"
    assert kept.snippet == "good(True)"
    assert stage.search.arm.settings == {"good": True}
    assert stage.search.arm.environment == {"GOOD_VARIABLE": "True"}
    assert stage.proven == [({"good": True}, "identical")]


def test_the_command_as_it_stands_is_run_before_and_after_each_knob(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(), {"a": offer(hope=2.0), "b": offer(hope=1.5)})
    stage.play()
    assert stage.machine.arms() == [{}, {"a": True}, {}, {"b": True}, {}]


def test_a_knob_that_silently_does_nothing_is_rejected_though_faster(monkeypatch: Patch) -> None:
    machine = Machine(product(mute=0.5), idle=frozenset({"mute"}))
    stage = Stage(monkeypatch, machine, {"mute": offer()})
    stage.play()
    assert stage.kept == {}
    assert stage.one("mute").because == "it did nothing: mute was seen"


def test_a_knob_of_which_the_process_says_nothing_did_nothing(monkeypatch: Patch) -> None:
    machine = Machine(product(mute=0.5))
    stage = Stage(monkeypatch, machine, {"mute": offer()})
    run = machine.run

    def forgetful(arm: object, says: str = "") -> object:
        made = run(arm, says)  # type: ignore[arg-type]
        object.__setattr__(made, "proofs", {})
        return made

    monkeypatch.setattr(machine, "run", forgetful)
    stage.play()
    assert stage.one("mute").because.startswith("it did nothing: ")


def test_a_knob_that_slows_is_rejected_with_its_figure(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(product(bad=1.15)), {"bad": offer()})
    stage.play()
    assert stage.kept == {}
    slow = stage.one("bad")
    assert slow.because.startswith("it is slower: 0.87 times as fast")
    assert slow.measured is not None
    assert slow.measured.high < 1.0


def test_a_hopeless_knob_costs_one_run(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(product(bad=3.0)), {"bad": offer()})
    stage.play()
    assert stage.machine.arms() == [{}, {"bad": True}]
    assert "slower" in stage.one("bad").because


def test_a_knob_that_fails_is_rejected_with_the_reason(monkeypatch: Patch) -> None:
    machine = Machine(product(good=0.8), failing={"broken": "exit code 1: no such operator"})
    stage = Stage(monkeypatch, machine, {"broken": offer(hope=3.0), "good": offer()})
    stage.play()
    because = stage.one("broken").because
    assert because == "it does not work here: exit code 1: no such operator"
    assert stage.kept == {"good": True}


def test_a_command_that_fails_as_it_stands_is_no_knob_s_fault(monkeypatch: Patch) -> None:
    machine = Machine(product(good=0.8), bare_fails=True)
    stage = Stage(monkeypatch, machine, {"good": offer()})
    stage.play()
    assert "what it is compared with could not be run" in stage.one("good").because
    assert {"good": True} not in machine.arms()


def test_a_failure_in_the_run_beside_a_knob_does_not_harm_the_next(monkeypatch: Patch) -> None:
    machine = Machine(product(a=0.8, b=0.8))
    stage = Stage(monkeypatch, machine, {"a": offer(hope=3.0), "b": offer()})
    run = machine.run

    def unlucky(arm: object, says: str = "") -> object:
        machine.bare_fails = len(machine.runs) == 2
        return run(arm, says)  # type: ignore[arg-type]

    monkeypatch.setattr(machine, "run", unlucky)
    stage.play()
    assert "could not be run" in stage.one("a").because
    assert stage.kept == {"b": True}


def test_a_knob_that_changes_the_results_is_rejected_though_faster(monkeypatch: Patch) -> None:
    differs = "differs: the loss of step 3 is 2.31, and was 2.30"
    machine = Machine(product(wrong=0.5))
    stage = Stage(monkeypatch, machine, {"wrong": offer()}, proofs={"wrong": differs})
    stage.play()
    assert stage.kept == {}
    wrong = stage.one("wrong")
    assert wrong.because.startswith("it is faster (2.00 times as fast")
    assert wrong.because.endswith(differs)
    assert stage.search.sameness.word == "identical"


def test_what_helps_alone_and_hurts_together_is_taken_off(monkeypatch: Patch) -> None:
    def speed(settings: object) -> float:
        return {"": 1.0, "a": 0.8, "b": 0.5, "ab": 0.6}["".join(sorted(settings))]  # type: ignore

    stage = Stage(monkeypatch, Machine(speed), {"a": offer(hope=3.0), "b": offer()})
    stage.play()
    assert stage.kept == {"b": True}
    assert stage.one("a").word == "rejected"
    assert "it helped alone; beside the others, without it is 1.2" in stage.one("a").because
    assert stage.search.arm.settings == {"b": True}
    assert stage.search.arm.environment == {"B_VARIABLE": "True"}


@pytest.mark.parametrize("slower_from", range(8))
@pytest.mark.parametrize("slower", [1.3, 1 / 1.3])
def test_a_machine_that_changes_its_speed_gives_no_false_gain(
    monkeypatch: Patch, slower_from: int, slower: float
) -> None:
    machine = Machine(product(), slower_from=slower_from, slower=slower)
    stage = Stage(monkeypatch, machine, {"a": offer(hope=3.0), "b": offer()})
    stage.play()
    assert stage.kept == {}
    for knob in "ab":
        assert stage.one(knob).because.startswith("no gain that counts")


@pytest.mark.parametrize("slower_from", range(8))
@pytest.mark.parametrize("slower", [1.3, 1 / 1.3])
def test_a_machine_that_changes_its_speed_gives_no_false_loss(
    monkeypatch: Patch, slower_from: int, slower: float
) -> None:
    machine = Machine(product(a=0.85, b=0.9), slower_from=slower_from, slower=slower)
    stage = Stage(monkeypatch, machine, {"a": offer(hope=3.0), "b": offer()})
    stage.play()
    assert stage.kept == {"a": True, "b": True}
    for knob, truth in (("a", 1 / 0.85), ("b", 1 / 0.9)):
        measured = stage.one(knob).measured
        assert measured is not None
        assert measured.mid == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("slower_from", range(4, 14))
def test_a_machine_that_gets_faster_takes_no_knob_off(monkeypatch: Patch, slower_from: int) -> None:
    machine = Machine(product(a=0.85, b=0.9), slower_from=slower_from, slower=0.7)
    stage = Stage(monkeypatch, machine, {"a": offer(hope=3.0), "b": offer()})
    stage.play()
    assert stage.kept == {"a": True, "b": True}


def test_a_large_gain_is_seen_on_a_machine_that_never_keeps_its_speed(monkeypatch: Patch) -> None:
    machine = Machine(product(good=0.3, bad=1.5))
    stage = Stage(monkeypatch, machine, {"bad": offer(hope=3.0), "good": offer()})
    run = machine.run

    def unsteady(arm: object, says: str = "") -> object:
        machine.slower_from, machine.slower = 0, (1.0, 1.15, 0.9)[len(machine.runs) % 3]
        return run(arm, says)  # type: ignore[arg-type]

    monkeypatch.setattr(machine, "run", unsteady)
    stage.play()
    assert stage.kept == {"good": True}
    assert "slower" in stage.one("bad").because


def test_a_change_of_the_machine_s_speed_is_noted_once(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(slower_from=2), {"a": offer()})
    stage.play()
    assert stage.search.notes == ["the machine changed its speed meanwhile"]


def test_a_longer_start_that_the_run_does_not_earn_is_rejected(monkeypatch: Patch) -> None:
    # A step takes 5 ms and would take 4: 60 s are earned after 60,000 steps.
    def made(horizon: int | None) -> Stage:
        machine = Machine(product(late=0.8), start_s={"late": 60.0})
        stage = Stage(monkeypatch, machine, {"late": offer()}, horizon=horizon)
        stage.play()
        return stage

    short = made(10_000)
    assert short.kept == {}
    assert "its start takes 60 s longer" in short.one("late").because
    assert "this run has 10,000" in short.one("late").because
    long = made(100_000)
    assert long.kept == {"late": True}
    assert long.one("late").extra_start_s == pytest.approx(60.0)
    assert made(None).kept == {"late": True}


def test_what_the_budget_does_not_hold_is_named(monkeypatch: Patch) -> None:
    offers = {name: offer(hope=3.0 - at) for at, name in enumerate("abc")}
    stage = Stage(monkeypatch, Machine(), offers, budget_s=8 * ABOUT_S)
    stage.play()
    assert stage.one("a").word == "rejected"
    assert stage.search.not_tried == ("b", "c")
    assert stage.machine.now_s <= 8 * ABOUT_S


def test_what_is_left_stays_named_where_knobs_were_kept(monkeypatch: Patch) -> None:
    offers = {name: offer(hope=5.0 - at) for at, name in enumerate("abcd")}
    offers["strong"] = offer(numerics="learning")
    machine = Machine(product(a=0.8, b=0.8))
    stage = Stage(monkeypatch, machine, offers, budget_s=12.5 * ABOUT_S)
    stage.play()
    assert stage.kept == {"a": True, "b": True}
    assert {"c", "d", "strong"} <= set(stage.search.not_tried)


def test_the_budget_keeps_time_to_confirm_the_plan(monkeypatch: Patch) -> None:
    offers = {name: offer() for name in "abcdefgh"}
    machine = Machine(product(a=0.8))
    stage = Stage(monkeypatch, machine, offers, budget_s=20 * ABOUT_S)
    stage.play()
    assert stage.kept == {"a": True}
    assert machine.now_s + 4 * ABOUT_S <= 20 * ABOUT_S


@pytest.mark.parametrize("at", range(8))
def test_ctrl_c_ends_it_at_once_and_blames_no_knob(monkeypatch: Patch, at: int) -> None:
    offers = {"a": offer(hope=3.0), "b": offer(), "strong": offer(numerics="learning")}
    machine = Machine(product(a=0.8, b=0.8), interrupted_at=at)
    stage = Stage(monkeypatch, machine, offers)
    stage.play()
    assert len(machine.runs) == at + 1
    assert not [one for one in stage.search.tried if "Ctrl-C" in one.because]


def test_two_causes_are_mended_one_after_the_other(monkeypatch: Patch) -> None:
    def second(case: Case) -> Offer | No:
        return offer() if "first" in case.applied else No("hidden behind the first")

    machine = Machine(product(first=0.5, second=0.7))
    offers: dict[str, Answer] = {"first": offer(), "second": second}
    stage = Stage(monkeypatch, machine, offers)
    stage.play()
    assert stage.kept == {"first": True, "second": True}
    assert stage.diagnosed == [{"first": True}, {"first": True, "second": True}]
    measured = stage.search.kept[1].measured
    assert measured is not None
    assert measured.mid == pytest.approx(1 / 0.7, rel=0.02)


def test_a_new_diagnosis_that_fails_leaves_the_old_one(monkeypatch: Patch) -> None:
    machine = Machine(product(a=0.8, b=0.8))
    stage = Stage(monkeypatch, machine, {"a": offer(hope=3.0), "b": offer()})
    object.__setattr__(stage.search.means, "diagnose", lambda _: None)
    stage.play()
    assert stage.kept == {"a": True, "b": True}
    assert stage.search.case.applied == {"a": True, "b": True}


def test_of_several_values_the_best_is_kept(monkeypatch: Patch) -> None:
    factors = {2: 0.8, 4: 0.6, 8: 0.7}
    machine = Machine(product(workers=factors))
    stage = Stage(monkeypatch, machine, {"workers": offer(2, 4, 8)})
    stage.play()
    assert stage.kept == {"workers": 4}
    for value in (2, 8):
        assert stage.one("workers", value).because == "workers = 4 is faster still"
    assert machine.arms().count({"workers": 4}) == 1


def test_what_was_proven_of_another_value_says_nothing_of_the_plan(monkeypatch: Patch) -> None:
    machine = Machine(product(workers={2: 0.8, 4: 0.6}))
    stage = Stage(monkeypatch, machine, {"workers": offer(2, 4)})
    words = iter(["the same but for other random draws", "identical"])
    object.__setattr__(
        stage.search.means, "prove", lambda *_: type(stage.search.sameness)(next(words))
    )
    stage.play()
    assert stage.kept == {"workers": 4}
    assert stage.search.sameness.word == "identical"


def test_the_proof_of_all_that_is_kept_together_counts(monkeypatch: Patch) -> None:
    machine = Machine(product(a=0.8, b=0.8, c=0.8))
    offers = {"a": offer(hope=4.0), "b": offer(hope=3.0), "c": offer()}
    stage = Stage(monkeypatch, machine, offers, proofs={"c": "equal within rounding"})
    stage.play()
    assert stage.search.sameness.word == "equal within rounding"


def test_a_healthy_training_keeps_nothing(monkeypatch: Patch) -> None:
    offers = {name: offer() for name in "abcdef"}
    stage = Stage(monkeypatch, Machine(), offers)
    stage.play()
    assert stage.kept == {}
    assert {one.word for one in stage.search.tried} == {"rejected"}
    assert stage.proven == []
    assert stage.diagnosed == []


def test_a_gain_below_the_minimum_is_none(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(product(a=0.985)), {"a": offer()})
    stage.play()
    assert stage.kept == {}
    assert stage.one("a").because.startswith("no gain that counts: 1.0")


def test_what_could_save_too_little_is_not_run(monkeypatch: Patch) -> None:
    small = Offer((True,), "identical", "made by hand", most=1.02)
    stage = Stage(monkeypatch, Machine(product(small=0.5)), {"small": small})
    stage.play()
    assert stage.machine.runs == []
    assert stage.one("small").because == "it could save 2% of the time at most"


def test_what_does_not_apply_says_why_and_is_not_run(monkeypatch: Patch) -> None:
    stage = Stage(monkeypatch, Machine(), {"never": No("there is no GPU")})
    stage.play()
    assert stage.machine.runs == []
    assert stage.one("never").because == "there is no GPU"


def test_a_stronger_class_is_measured_and_offered_but_not_applied(monkeypatch: Patch) -> None:
    machine = Machine(product(plain=0.8, half=0.5))
    offers = {"half": offer(numerics="reduced", hope=3.0), "plain": offer(numerics="rounding")}
    stage = Stage(monkeypatch, machine, offers, most="rounding")
    stage.play()
    assert stage.kept == {"plain": True}
    half = stage.one("half")
    assert half.word == "offered"
    assert half.measured is not None
    assert half.measured.mid == pytest.approx(2.0, rel=0.02)
    assert half.proof == "half was seen"
    assert "'reduced'" in half.because
    assert stage.search.arm.settings == {"plain": True}


@pytest.mark.parametrize("slower_from", range(1, 6))
def test_nothing_is_offered_for_a_machine_that_got_faster(
    monkeypatch: Patch, slower_from: int
) -> None:
    machine = Machine(product(), slower_from=slower_from, slower=0.7)
    stage = Stage(monkeypatch, machine, {"half": offer(numerics="reduced")})
    stage.play()
    assert stage.one("half").word == "rejected"


def test_what_the_user_asks_for_comes_first_and_against_advice(monkeypatch: Patch) -> None:
    offers: dict[str, Answer] = {"good": offer(hope=9.0), "wish": No("it is thought to lose")}
    stage = Stage(monkeypatch, Machine(product(wish={7: 0.8})), offers, insisted={"wish": 7})
    stage.play()
    assert stage.machine.arms()[1] == {"wish": 7}
    assert stage.kept == {"wish": 7}


def test_what_promises_most_is_tried_first(monkeypatch: Patch) -> None:
    told = Offer((True,), "identical", "made by hand", most=5.0)
    offers = {"hoped": told, "little": offer(hope=1.1), "much": offer(hope=2.0)}
    stage = Stage(monkeypatch, Machine(), offers)
    stage.play()
    order = [one for arm in stage.machine.arms() for one in arm]
    assert order == ["much", "little", "hoped"]
