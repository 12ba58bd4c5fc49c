"""A diagnosis as text: it fits, it says what was found, and it says what is missing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from hotlap.report.diagnosis_page import MOST_LINES, diagnosis_page
from hotlap.report.limits import knee
from hotlap.report.readable import readable
from hotlap.report.wording import figure, gain, recoverable
from hotlap.values.facts import Facts, WorkerPoint
from hotlap.values.finding import Bounds
from unit.report.diagnosed import CASES, Case, finding

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def _joined(name: str, width: int = 80) -> str:
    """Return the page with its line breaks and indents taken out."""
    return " ".join(_page(CASES[name](), width).split())


def _page(case: Case, width: int = 80, colour: bool = False, unicode: bool = True) -> str:
    return diagnosis_page(case.facts, case.diagnosis, width, colour, unicode)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_page_fits_its_width(name: str, width: int) -> None:
    text = _page(CASES[name](), width)
    assert max(map(cell_len, text.splitlines())) <= min(width, 100)
    assert text.endswith("\n")
    assert "\n\n\n" not in text


@pytest.mark.parametrize("name", ["input_bound", "two", "healthy", "nothing", "undecided"])
def test_a_usual_page_is_short(name: str) -> None:
    assert len(_page(CASES[name]()).splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", [name for name in CASES if name != "foreign"])
def test_ascii_is_ascii(name: str) -> None:
    assert _page(CASES[name](), unicode=False).isascii()


@pytest.mark.parametrize("name", CASES)
def test_colour_adds_escapes_and_nothing_else(name: str) -> None:
    plain, coloured = _page(CASES[name]()), _page(CASES[name](), colour=True)
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert ESCAPE.sub("", coloured) == plain


def test_the_verdict_comes_first() -> None:
    lines = _page(CASES["input_bound"]()).splitlines()
    assert lines[0].startswith("hotlap  python train.py")
    assert "Input-bound: the loader's workers decode, and every core is full." in lines[2]


def test_an_input_bound_training_reads_as_one() -> None:
    text = _joined("input_bound")
    assert "the next ceiling: compute, at 8,020 samples/s" in text
    assert "waiting for data 60 % 6.01 ms" in text
    assert "start-up 24 % 1.40 s" in text
    assert re.search(r"now 3,200 █+.* compute 8,020 █+.* loader 3,210 █+", text)
    assert "fetching not measured: every page was in memory" in text
    assert "more than 2 do not help" in text
    assert "2 ▸ 3,210 (3,150 to 3,300)" in text
    assert "1 high HL101 input-bound-decode 1.52 to 1.71 times as fast" in text
    assert "train.py:14 in __getitem__, 81 % of it" in text
    assert 'image = Image.open(file).convert("RGB")' in text
    assert "seen: CPU of a batch: 61 %; decoding: 6.01 ms per step; loader alone: 3,210" in text
    assert "cold reads: not measured" in text
    assert "costs: 35 % to 42 % of the run, in every step" in text
    assert "remedy: a setting (loader_workers)" in text
    assert "the order of random draws in workers" in text
    assert "differed by up to 1.2 %" in text
    assert "a profile by operators: torch.profiler failed in this trial" in text
    assert "hotlap explain HL101" in text
    assert "hotlap report 20260102-030405-ab12 --html report.html" in text


def test_two_causes_are_ranked_and_told_in_full() -> None:
    text = _joined("two")
    assert text.index("1 high HL101") < text.index("2 medium HL402")
    assert "with all findings mended 1.58 to 1.80 times as fast" in text
    assert 'with open("log.txt", "a") as log:' in text
    assert "nothing but the speed" in text
    assert "HL501: one process trained alone" in text or "more reason" in text


def test_a_healthy_training_reads_as_one() -> None:
    text = _joined("healthy")
    assert "Nothing worth fixing; you are bound by compute." in text
    assert "the next ceiling: the loader, at 9,000 samples/s" in text
    assert "Findings None: no cause that stands out of the noise was found." in text
    assert "hotlap explain" not in text


def test_no_findings_for_lack_of_figures_is_no_clean_bill() -> None:
    for name in ("nothing", "undecided"):
        text = _joined(name)
        assert "What binds it could not be told" in text
        assert "That does not say that nothing is wrong." in text
        assert "loader, preparing, fetching not measured: the loader was not drained" in text
    assert "Nothing No step was measured:" in _joined("nothing")


def test_shares_are_of_the_steps_where_the_horizon_is_not_known() -> None:
    text = _joined("stopped")
    assert "costs: 35 % to 42 % of the steps" in text
    assert "watched up to here and not to the run's own end" in text


def test_storage_and_the_end_of_an_epoch_are_told() -> None:
    text = _joined("stopped")
    assert (
        "Storage one reader, 64 files: 100 samples/s from storage (waiting 81 % of that time), "
        "400 from memory (5.0 %)"
    ) in text
    assert "Epoch its end, after 4,000 steps: at least evaluation 12.0 s, checkpoints" in text
    assert "Storage" not in _joined("input_bound")
    assert "Epoch its end" not in _joined("input_bound")


def test_a_suspected_finding_says_so() -> None:
    case = CASES["input_bound"]()
    suspected = (finding(status="suspected", locations=()),)
    text = _page(Case(case.facts, replace(case.diagnosis, findings=suspected)))
    assert "HL101 input-bound-decode (suspected)" in text


def test_what_the_users_wrote_cannot_command_the_terminal() -> None:
    text = _page(CASES["foreign"]())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\udcff" not in text
    assert 'x = "</script>' in text
    text.encode()


def test_what_is_cut_off_is_counted() -> None:
    text = _joined("long")
    assert "and 11 smaller findings, all of them in --json" in text
    assert "and 3 more lines" in text
    assert "more reasons, all of them in --json" in text
    assert "value_0 + value_1" in text
    assert "value_399" not in text


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Bounds(None, None), "gain not known"),
        (Bounds(1.5, None), "at least 1.50 times as fast"),
        (Bounds(None, 1.3), "up to 1.30 times as fast"),
        (Bounds(0.98, 1.3), "up to 1.30 times as fast"),
        (Bounds(1.301, 1.302), "1.30 times as fast"),
        (Bounds(0.9, 1.0), "no gain in sight"),
        (Bounds(float("nan"), float("inf")), "gain not known"),
    ],
)
def test_gains_in_words(bounds: Bounds, words: str) -> None:
    assert gain(bounds) == words


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Bounds(None, None), "an unknown part of the run"),
        (Bounds(0.1, None), "at least 10 % of the run"),
        (Bounds(0.0, 0.1), "up to 10 % of the run"),
        (Bounds(0.101, 0.102), "10 % of the run"),
    ],
)
def test_shares_in_words(bounds: Bounds, words: str) -> None:
    assert recoverable(bounds, "the run") == words


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "ns", "not measured"),
        (float("nan"), "share", "not measured"),
        (True, "", "yes"),
        (1_500_000, "ns", "1.50 ms"),
        (0.256, "share", "26 %"),
        (-0.25, "share", "-25 %"),
        (0.256, "share of that time", "26 % of that time"),
        (41.0, "us", "41.0 µs"),
        (2_000_000, "bytes", "2.00 MB"),
        (2_000_000, "bytes/s", "2.00 MB/s"),
        (1200, "times", "1,200 times"),
        (0.0314, "per step", "0.0314 per step"),
        (["a", 1], "", "a, 1"),
        ("float64\x1b", "", "float64\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_evidence_in_words(value: object, unit: str, words: str) -> None:
    assert figure(value, unit) == words


def test_a_knee_takes_two_points() -> None:
    points = (WorkerPoint(0, 100.0, 98.0, 102.0), WorkerPoint(1, 300.0, 290.0, 310.0))
    assert knee(points) == 1
    assert knee(points[:1]) is None
    assert knee(()) is None


def test_the_most_workers_may_be_the_fastest() -> None:
    case = CASES["input_bound"]()
    rising = Case(replace(case.facts, curve=case.facts.curve[:3]), case.diagnosis)
    text = " ".join(_page(rising).split())
    assert "2, the most that were tried, are the fastest" in text


def test_readable_text_is_one_harmless_line() -> None:
    assert readable("a\tb\nc\x07\x1b[0m\u202e\udc80ü日") == "a b c��[0m��ü日"


def test_bare_facts_make_a_page() -> None:
    case = CASES["nothing"]()
    assert diagnosis_page(Facts(run=case.facts.run), case.diagnosis)
