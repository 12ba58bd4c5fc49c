"""Causes that one run suspects, in the reports of a plain run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.report.startup import MOST_LINES, startup
from hotlap.report.whole import whole
from unit.report.diagnosed import finding, logging_finding
from unit.report.gallery import RECORDS, summary

CAUSES = (
    finding(status="suspected"),
    logging_finding(status="suspected"),
    finding(status="suspected", phase="checkpoint", scope="run", code="HL704"),
)


def _joined(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", RECORDS)
def test_without_suspicion_a_report_says_nothing_of_it(name: str) -> None:
    for text in (whole(summary(name)), startup(summary(name))):
        assert "Suspected" not in text
        assert "hotlap diagnose" not in text


def test_the_whole_report_names_causes_and_what_would_settle_them() -> None:
    text = _joined(whole(summary("workers"), suspected=CAUSES))
    assert "Suspected ▸ HL101 input-bound-decode at train.py:14: Every sample is decoded" in text
    assert "HL704" in text
    # What to do waits for a proof.
    assert "Decode once" not in text
    assert "One run proves no cause; an experiment tells which limits" in text
    assert "hotlap diagnose python train.py" in text


def test_the_whole_report_shows_five_and_counts_the_rest() -> None:
    many = tuple(finding(status="suspected", code=f"HL1{at:02}") for at in range(8))
    text = _joined(whole(summary("workers"), suspected=many))
    assert "HL104" in text
    assert "HL105" not in text
    assert "and 3 smaller ones" in text


@pytest.mark.parametrize("name", RECORDS)
def test_the_start_up_report_stays_short(name: str) -> None:
    text = startup(summary(name), 80, suspected=CAUSES)
    assert len(text.splitlines()) <= MOST_LINES
    if "Step      No step" not in text and summary(name).absence is None:
        assert "HL101" in text
        assert "HL704" not in text
        assert "hotlap diagnose" in text
    assert "hotlap report" in text or summary(name).absence is not None


def test_the_start_up_report_stays_short_whatever_is_said() -> None:
    words = "and so on and on " * 40
    long = tuple(finding(say=words, name="n" * 70, code=f"HL10{at}") for at in range(4))
    one = replace(summary("cuda"), standing_out=(words, words))
    text = startup(one, 80, suspected=long)
    assert len(text.splitlines()) <= MOST_LINES
    assert "hotlap diagnose" in text
    assert "hotlap report" in text


def test_nothing_stands_out_is_not_said_beside_a_suspicion() -> None:
    one = summary("plain")
    assert "Nothing stands out" in whole(one)
    for text in (whole(one, suspected=CAUSES), startup(one, suspected=CAUSES)):
        assert "stands out" not in text


def test_a_command_that_is_too_long_is_not_repeated() -> None:
    one = replace(summary("workers"), command=("python", "train.py", *["--option=value"] * 20))
    text = whole(one, 80, suspected=CAUSES)
    assert "hotlap diagnose, with the same command after it" in text
