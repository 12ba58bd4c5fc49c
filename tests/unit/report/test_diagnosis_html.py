"""A diagnosis as one HTML file: what it says, and that nothing of the user's becomes markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import pytest

from hotlap.errors import WrongUse
from hotlap.report.chart_style import COLOURS
from hotlap.report.charts import charts
from hotlap.report.diagnosis_html import diagnosis_html, refuse_without_libraries
from hotlap.report.diagnosis_page import diagnosis_page
from hotlap.report.excerpt import excerpt
from hotlap.report.experiments import trial_views
from hotlap.report.operators_chart import MOST, operator_times
from hotlap.report.profile_chart import line_times
from hotlap.values.facts import Facts
from hotlap.values.finding import Location
from hotlap.values.phase import RUN_PHASES, STEP_PHASES
from unit.report.diagnosed import CASES, Case, source

TAGS = """html head meta title style body main header section article script p pre code span strong
h1 h2 h3 ul ol li dl dt dd table tr th td div details summary br""".split()


class _Page(HTMLParser):
    """Collects tags, attributes, and the text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.scripts: dict[str, str] = {}
        self.seen = ""
        self._inside = ""
        self._script = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        self.seen += " " if tag in ("td", "th", "dt", "dd") else ""
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")
        if tag == "script":
            self._script = dict(attrs).get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        elif self._inside != "style":
            self.seen += data


@cache
def _page(name: str) -> _Page:
    case = CASES[name]()
    return _Page(diagnosis_html(case.facts, case.diagnosis))


def _text(page: _Page) -> str:
    return " ".join(page.seen.split())


@pytest.mark.parametrize("name", CASES)
def test_a_page_asks_nothing_of_a_network(name: str) -> None:
    page = _page(name)
    assert set(page.tags) <= set(TAGS)
    assert not {"src", "href", "srcset", "action", "style"} & set(page.attributes)
    policy = page.attributes["content"]
    assert any(words.startswith("default-src 'none'") for words in policy)


@pytest.mark.parametrize("name", CASES)
def test_every_chart_has_its_figure(name: str) -> None:
    page = _page(name)
    drawn = [one.removeprefix("chart-") for one in page.attributes["id"] if "chart-" in one]
    figures = [one.removeprefix("figure-") for one in page.scripts if one.startswith("figure-")]
    assert sorted(drawn) == sorted(figures) == sorted(charts(CASES[name]().facts))
    for one in figures:
        assert json.loads(page.scripts[f"figure-{one}"])["data"]


def test_which_charts_there_are() -> None:
    every = {"step", "run", "ceilings", "workers", "course", "trainer", "worker"}
    assert set(charts(CASES["input_bound"]().facts)) == every
    assert set(charts(CASES["undecided"]().facts)) == {"step", "run"}
    assert charts(CASES["nothing"]().facts) == {}


def test_the_page_is_for_somebody_who_was_not_there() -> None:
    text = _text(_page("input_bound"))
    for words in (
        "Why does this training take the time that it takes",
        "python train.py",
        "2026-01-02 03:04:05",
        "Input-bound: the loader's workers decode, and every core is full.",
        "The next ceiling: Compute, at 8,020 samples/s.",
        "Two equal stretches of this training differed by up to 1.2 %",
        "high HL101 input-bound-decode proven",
        "1.52 to 1.71 times as fast without it",
        "35 % to 42 % of the run, in every step (waiting for data)",
        "a setting (loader_workers)",
        "The order of random draws in workers.",
        "train.py:14 in __getitem__, 81 % of its time",
        '14image = Image.open(file).convert("RGB")',
        "cold reads not measured",
        "hotlap explain HL101",
        "replay of 8 batches in trial 1",
        "every page was in memory, so that nothing had to be fetched",
        "recorded batches instead of the loader's",
        "torch threads = 1 1.02 (0.99 to 1.05) no difference",
        "a profile by operators torch.profiler failed in this trial",
        "cores allowed 2 of 8",
    ):
        assert words in text


def test_the_excerpt_shows_the_lines_around_and_marks_the_one() -> None:
    case = CASES["input_bound"]()
    html = diagnosis_html(case.facts, case.diagnosis)
    found = re.search(r'<pre class="source">(.*?)</pre>', html, re.DOTALL)
    assert found is not None
    lines = re.findall(r'<span class="line( named)?"><span class="number">(.+?)</span>', found[1])
    assert lines == [("", "11"), ("", "⋮"), ("", "13"), (" named", "14"), ("", "15")]


def test_an_excerpt_shows_the_loops_and_the_function_around() -> None:
    lines = source(
        ("train.py", 3, "def main():"), ("train.py", 9, "for x in y:"), ("train.py", 20, "a = x")
    )
    lines["train.py:20"] = replace(lines["train.py:20"], loops=(9, 15), function_line=3)
    facts = replace(CASES["input_bound"]().facts, source=lines)
    shown = excerpt(facts, Location("train.py", 20, "main"))
    assert [(one.line, one.named, one.gap) for one in shown] == [
        (3, False, False),
        (9, False, True),
        (20, True, True),
    ]


def test_without_source_there_is_no_excerpt() -> None:
    case = CASES["input_bound"]()
    html = diagnosis_html(replace(case.facts, source={}), case.diagnosis)
    assert "train.py:14" in html
    assert '<pre class="source">' not in html


def test_two_findings_and_what_they_bring_together() -> None:
    text = _text(_page("two"))
    assert text.index("HL101") < text.index("HL402")
    assert "With every finding mended it would be 1.58 to 1.80 times as fast." in text


def test_a_healthy_page_and_one_that_cannot_tell() -> None:
    assert "None. No cause that stands out of the noise was found." in _text(_page("healthy"))
    for name in ("nothing", "undecided"):
        text = _text(_page(name))
        assert "What binds this training could not be told." in text
        assert "That does not say that nothing is wrong." in text
        assert "HL101 the loader was not drained" in text or name == "nothing"
    assert "No step was measured:" in _text(_page("nothing"))
    assert "this rests on what one run recorded" in _text(_page("undecided"))


def test_nothing_of_the_users_becomes_markup() -> None:
    page = _page("foreign")
    text = _text(page)
    for words in (
        "<b>Größe</b>",
        "Größe & <i>Form</i> ändern sich. Tu {{ nichts }} </script>.",
        'x = "</script><script>alert(1)</script>"',
        "<b>{{ 7 * 7 }}</b> 日本語 &",
        "lade_größe<b>",
    ):
        assert words in text
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|\b49\b", text)
    assert "\x1b" not in page.seen
    assert "\udcff" not in page.seen
    # Ours alone: the figures, plotly, and the script of the page.
    figures = len(charts(CASES["foreign"]().facts))
    assert page.tags.count("script") == figures + 2


def test_chart_labels_are_escaped_for_the_chart_library_too() -> None:
    chart = json.loads(charts(CASES["foreign"]().facts)["trainer"])
    shown = json.dumps(chart["data"][0]["labels"] + chart["data"][0]["customdata"])
    assert "&lt;script&gt;" in shown
    assert "<" not in shown


def test_a_line_of_the_users_is_cut_off() -> None:
    case = CASES["input_bound"]()
    long = source(("train.py", 14, "x = " + "1 + " * 5000))
    html = diagnosis_html(replace(case.facts, source=long), case.diagnosis)
    assert "1 + " * 70 in html
    assert "1 + " * 100 not in html


def test_without_its_libraries_it_says_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_without_libraries()

    def without(name: str) -> ModuleSpec | None:
        return None if name == "plotly" else find_spec(name)

    monkeypatch.setattr("hotlap.report.html_file.find_spec", without)
    case = CASES["healthy"]()
    with pytest.raises(WrongUse, match=r"plotly is not installed; .* -m pip install 'hotlap\["):
        diagnosis_html(case.facts, case.diagnosis)


def test_times_by_line_add_up() -> None:
    facts = CASES["input_bound"]().facts
    times = line_times(facts, "worker")
    assert [time.place for time in times] == ["train.py:14", "train.py:15", "train.py:20"]
    assert sum(time.share for time in times) == pytest.approx(1.0)
    assert times[0].working == pytest.approx(times[0].share * 0.75)
    assert line_times(Facts(run=facts.run), "trainer") == []


def test_operators_by_name_over_all_their_lines() -> None:
    facts = CASES["healthy"]().facts
    first, second = operator_times(facts)
    assert (first.name, first.calls, first.ns) == ("aten::mm", 12.0, 18_000_000.0)
    assert first.share == pytest.approx(0.9)
    assert first.by_phase == {"forward": 6_000_000.0, "backward": 12_000_000.0}
    assert first.place == "train.py:12"  # of the backward pass, the line that recorded it
    assert second.name == "aten::relu"
    assert operator_times(CASES["input_bound"]().facts) == []
    text = _text(_page("healthy"))
    assert "aten::mm 12.0 18.0 ms 90 % float32 train.py:12" in text


def test_operators_are_stacked_by_phase_and_their_names_cut() -> None:
    chart = json.loads(charts(CASES["healthy"]().facts)["operators"])
    assert [bars["name"] for bars in chart["data"]] == ["forward", "backward"]
    assert [bars["x"] for bars in chart["data"]] == [[6.0, 2.0], [12.0, 0.0]]
    long = json.loads(charts(CASES["long"]().facts)["operators"])
    assert long["data"][0]["y"] == list(range(MOST))
    assert all(len(name) < 60 for name in long["layout"]["yaxis"]["ticktext"])
    foreign = json.loads(charts(CASES["foreign"]().facts)["operators"])
    assert "&lt;b&gt;" in foreign["layout"]["yaxis"]["ticktext"][0]


def test_every_phase_has_a_colour() -> None:
    assert {*STEP_PHASES, *RUN_PHASES} <= set(COLOURS)


def test_trials_keep_what_is_not_known_of_them() -> None:
    (trial,) = trial_views(
        [
            {
                "name": "change intra_op_threads = 2",
                "wall_ns": 2_000_000_000,
                "ended_by": "limit",
                "exit_code": 0,
                "contained": False,
                "moved_bytes": 2_000_000,
                "windows": [
                    {"kind": "workers", "workers": 4, "batches": 20, "ended_by": "steps"},
                    {"kind": "drain", "ended_by": "failed: no loader", "workers": None},
                    {"kind": "other_kind", "begin_ns": 0, "end_ns": 5_000_000},
                ],
            }
        ]
    )
    assert trial.name == "change intra op threads = 2"
    assert trial.tells == "with this one change"
    assert trial.wall == "2.00 s"
    assert trial.ended.startswith("stopped at the time that it was given; its writes were not")
    assert trial.more == [("moved", "2.00 MB")]
    assert [window.name for window in trial.windows] == ["4 workers", "drain", "other kind"]
    assert [window.size for window in trial.windows] == [
        "20 batches",
        "failed: no loader",
        "5.00 ms",
    ]


def test_a_busy_machine_is_named() -> None:
    case = CASES["input_bound"]()
    machine = replace(
        case.facts.run.machine,
        others_cpu_share=0.31,
        throttled_share=0.2,
        gpus=({"index": 3, "others": 2},),
    )
    facts = replace(case.facts, run=replace(case.facts.run, machine=machine))
    words = (
        "Meanwhile other programs used 31 % of the cores, the CPU quota held the training "
        "back in 20 % of its periods and other programs computed on GPU 3 as well."
    )
    assert words in _text(_Page(diagnosis_html(facts, case.diagnosis)))
    assert words in " ".join(diagnosis_page(facts, case.diagnosis).split())
    assert "Meanwhile" not in _text(_page("input_bound"))


def test_a_bare_case_makes_a_page() -> None:
    case: Case = CASES["nothing"]()
    assert "<h1>" in diagnosis_html(Facts(run=case.facts.run), case.diagnosis)
