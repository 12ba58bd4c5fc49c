"""Each rule on facts made by hand: one set that must fire it, one that must not."""

from __future__ import annotations

import pytest

from hotlap.diagnose import judge
from hotlap.diagnose.catalogue import RULES, all_rules, rule
from hotlap.values.facts import Facts, Measured, WhatIf
from hotlap.values.finding import Clear, Finding, Unknown
from unit.diagnose.firing import FIRES, WAITING, curve, getitem, waiting
from unit.diagnose.made import (
    HEALTHY,
    HEALTHY_STEP,
    entry,
    facts,
    loader,
    run,
)


@pytest.mark.parametrize("code", sorted(one.CODE for one in all_rules()))
def test_a_rule_fires_on_its_own_facts(code: str) -> None:
    module = rule(code)
    assert module is not None
    found = module.check(FIRES[code])
    assert isinstance(found, Finding), found
    assert found.code == code
    assert found.name == module.NAME
    share, gain = found.recoverable_share, found.predicted_speedup
    assert share.low is not None
    assert share.high is not None
    assert 0.0 <= share.low <= share.high < 1.0
    assert gain.low is not None
    assert gain.high is not None
    assert 1.0 <= gain.low <= gain.high
    assert len(found.say) > 40


@pytest.mark.parametrize("code", sorted(one.CODE for one in all_rules()))
def test_no_rule_fires_on_a_healthy_run(code: str) -> None:
    healthy = facts(run(HEALTHY_STEP, loaders=(loader(2),)), *HEALTHY)
    module = rule(code)
    assert module is not None
    answer = module.check(healthy)
    assert isinstance(answer, Clear | Unknown)
    assert answer.because


def test_a_healthy_run_is_said_to_have_nothing_worth_fixing() -> None:
    found = judge(facts(run(HEALTHY_STEP, loaders=(loader(2),)), *HEALTHY))
    assert found.findings == ()
    assert found.bound == "compute"
    assert "Nothing worth fixing" in found.headline


@pytest.mark.parametrize("code", sorted(FIRES))
def test_every_rule_is_silent_or_unknown_without_measurements(code: str) -> None:
    module = rule(code)
    assert module is not None
    answer = module.check(Facts(run=run({}, trainers=())))
    assert isinstance(answer, Clear | Unknown)


def test_codes_and_files_are_told_apart_and_known() -> None:
    modules = list(all_rules())
    assert len({one.CODE for one in modules}) == len(RULES) == len({one.NAME for one in modules})
    for one in modules:
        assert one.__doc__.startswith(f"# {one.CODE} {one.NAME}: ")
        for part in ("**What.**", "**How it is measured.**", "**When it is wrong.**"):
            assert part in one.__doc__


def test_a_specific_finding_takes_the_place_of_the_general_one() -> None:
    found = judge(facts(run(HEALTHY_STEP), entry("other", 19, 0.3, expression="copy.deepcopy(m)")))
    assert [one.code for one in found.findings] == ["HL402"]


def test_a_wait_for_workers_is_divided_among_their_lines() -> None:
    summary = run(WAITING, loaders=(loader(2),))
    given = facts(
        summary,
        entry("data_wait", 10, 0.6, state="blocked", leaf="selectors.PollSelector.select"),
        entry("fetch", 40, 0.9, "Photos.__getitem__", role="worker", expression="np.sort(x)"),
        entry("fetch", 41, 0.3, "Photos.__getitem__", role="worker", expression="np.fft.fft(x)"),
    )
    module = rule("HL101")
    assert module is not None
    found = module.check(given)
    assert isinstance(found, Finding)
    assert found.locations[0].line == 40
    # Three quarters of the workers' time is at the line, and 60 % of the run waits for them.
    assert found.recoverable_share.high == pytest.approx(0.45, abs=0.01)


def test_many_workers_tried_without_gain_are_no_cause() -> None:
    flat = (WhatIf("loader_workers", 2, 1.0, 0.97, 1.03, acted=True),)
    module = rule("HL103")
    assert module is not None
    assert isinstance(module.check(waiting(getitem(), what_ifs=flat)), Clear)


def test_a_flat_curve_is_no_reason_for_more_workers() -> None:
    module = rule("HL103")
    assert module is not None
    given = waiting(
        getitem(), curve=curve(100.0, 98.0, 101.0), compute_per_s=Measured(1_000.0, "made")
    )
    assert isinstance(module.check(given), Clear)


def test_noise_hides_what_lies_below_it() -> None:
    quiet = facts(run(HEALTHY_STEP), entry("other", 19, 0.08, expression="copy.deepcopy(m)"))
    assert judge(quiet).findings
    noisy = facts(
        run(HEALTHY_STEP),
        entry("other", 19, 0.08, expression="copy.deepcopy(m)"),
        noise=Measured(0.2, "made by hand"),
    )
    assert not judge(noisy).findings


def test_a_broken_rule_is_one_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    module = rule("HL402")
    assert module is not None

    def fail(_: Facts) -> Finding:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(module, "check", fail)
    found = judge(facts(run(HEALTHY_STEP), *HEALTHY))
    assert ("HL402 host-code", "the rule failed: ZeroDivisionError: on purpose") in found.unknown
