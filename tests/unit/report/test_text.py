"""Reports as text: they fit, they say the figures, and they say what is missing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hotlap.account import summarise
from hotlap.report.page import bar
from hotlap.report.sections import sentence
from hotlap.report.startup import MOST_LINES, startup
from hotlap.report.whole import whole
from hotlap.values.phase import STEP_PHASES
from hotlap.values.record import Place
from hotlap.values.summary import Part
from unit.report.gallery import RECORDS, ranks, summary

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def _joined(text: str) -> str:
    """Return the text with its line breaks and indents taken out."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("width", [80, 100, 200])
def test_text_fits_its_width(name: str, width: int) -> None:
    for text in (whole(summary(name), width), startup(summary(name), width)):
        assert max(map(len, text.splitlines())) <= min(width, 100)
        assert text.endswith("\n")
        assert "\n\n\n" not in text


@pytest.mark.parametrize("name", RECORDS)
def test_ascii_is_ascii(name: str) -> None:
    assert whole(summary(name), unicode=False).isascii()
    assert startup(summary(name), unicode=False).isascii()


@pytest.mark.parametrize("name", RECORDS)
def test_colour_adds_escapes_and_nothing_else(name: str) -> None:
    plain, coloured = whole(summary(name)), whole(summary(name), colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert ESCAPE.sub("", coloured) == plain


@pytest.mark.parametrize("name", RECORDS)
def test_the_start_up_report_is_short(name: str) -> None:
    assert len(startup(summary(name), 80).splitlines()) <= MOST_LINES


def test_the_start_up_report_is_short_however_much_there_is_to_say() -> None:
    one = summary("cuda")
    first = one.trainers[0]
    phases = {name: Part(1_000_000, 1 / 8) for name in STEP_PHASES}
    gpu = {**one.machine.gpus[0], "name": "A GPU with a name that is far too long for a line"}
    full = replace(
        one,
        trainers=(replace(first, step=replace(first.step, phases=phases)),),
        machine=replace(one.machine, gpus=tuple({**gpu, "index": at} for at in range(8))),
        standing_out=("word " * 60, "more " * 60),
    )
    text = startup(full, 80)
    assert len(text.splitlines()) <= MOST_LINES
    assert "hotlap report" in text


def test_a_healthy_run_reads_as_one() -> None:
    text = _joined(whole(summary("plain")))
    assert "300 steps, ended well" in text
    assert "10.0 ms median" in text
    assert "288 steady steps after 12 of warm-up" in text
    assert "Nothing stands out: 93 % of the step is forward, backward and optimizer." in text
    assert "checkpoints 2.1 % 120 ms" in text
    assert "torch.save train.py:80 3 in all 36.7 ms outside" in text
    assert "item train.py:61 1.00 per step 30.0 µs" in text
    assert "transfer: the model runs on the CPU" in text


def test_the_worker_split_is_one_sentence() -> None:
    text = _joined(startup(summary("workers")))
    assert "Photos, 2 workers, batches of 32, made at train.py:31" in text
    assert (
        "a worker needs 10.5 ms for a batch: CPU 61 %, waiting for a core 16 %, collate 9.5 %, "
        "blocked 8.6 %, hand-over 4.8 %"
    ) in text


def test_a_killed_run_shows_the_time_without_a_record() -> None:
    text = _joined(whole(summary("killed")))
    assert "killed by SIGKILL" in text
    assert "no record 74 %" in text
    assert "shut-down: process 100 left no farewell" in text
    assert "tensor_read: AttributeError" in text


def test_other_rules_of_a_step_are_explained() -> None:
    assert "one cycle of optimizers, 6 optimizer steps" in _joined(whole(summary("gan")))
    assert "no optimizer stepped" in _joined(whole(summary("inference")))


def test_ranks_stand_below_each_other() -> None:
    text = whole(summary("ranks"))
    assert "median on rank 0" in text
    assert re.search(r"^ +1 +200 +10\.0 ms +50 % +30 % +node1$", text, re.MULTILINE)


def test_of_many_ranks_the_fastest_and_slowest_are_shown() -> None:
    text = whole(summarise(ranks(20)))
    assert "20 in all, the fastest and the slowest are shown" in _joined(text)
    assert len(re.findall(r"node1$", text, re.MULTILINE)) == 8


def test_a_gpu_has_its_line() -> None:
    text = _joined(whole(summary("cuda")))
    assert "0 NVIDIA H200: 62 % busy, memory 31.0 GB of 150 GB, 412 W, 1.75 GHz" in text
    assert "held back by software power cap" in text
    assert "by its own clock: forward 2.40 ms, backward 3.80 ms" in text


def test_a_command_without_training_says_why() -> None:
    for text in (whole(summary("absent")), startup(summary("absent"))):
        assert "none imported torch" in text
    assert "ended with exit code 1" in whole(summary("absent"))


def test_small_phases_share_a_line() -> None:
    one = summary("workers")
    first = one.trainers[0]
    parts = {**first.step.phases, "other": Part(9, 0.004), "logging": Part(9, 0.004)}
    few = replace(one, trainers=(replace(first, step=replace(first.step, phases=parts)),))
    assert "under 1.0 % each: logging, other host code" in whole(few)


def test_a_long_command_is_cut_and_the_run_is_not() -> None:
    one = replace(summary("plain"), command=("python", "x" * 300))
    line = whole(one, 80).splitlines()[0]
    assert len(line) == 80
    assert line.endswith(one.id)
    assert "…" in line


def test_the_run_may_go_by_another_name() -> None:
    assert "hotlap report ./out --json -" in whole(summary("plain"), name="./out")
    assert "hotlap report ./out" in startup(summary("plain"), name="./out")


def test_bars_are_as_long_as_their_share() -> None:
    assert bar(None, 40) == ""
    assert bar(0.0, 40) == ""
    assert bar(0.5, 40) == "█" * 20
    assert bar(1.0, 40) == bar(1.7, 40) == "█" * 40
    assert bar(1 / 80, 40) == "▌"


def test_long_paths_lose_their_beginning_and_not_the_figures() -> None:
    one = summary("plain")
    first = one.trainers[0]
    place = Place("/a/very/long/path/to/the/project/of/somebody/who/nests/train.py", 61, "main")
    touches = tuple(replace(touch, place=place) for touch in first.touches)
    text = whole(replace(one, trainers=(replace(first, touches=touches),)), 80)
    assert re.search(r"item +…\S*nests/train\.py:61 +1\.00 per step +30\.0 µs +<1 %", text)


def test_loaders_of_folds_are_shown_once() -> None:
    one = summary("workers")
    first = one.trainers[0]
    loaders = tuple(replace(first.loaders[0], ordinal=at, batches=9 + at) for at in range(5))
    text = whole(replace(one, trainers=(replace(first, loaders=loaders),)))
    assert text.count("a worker needs") == 1
    assert "the busiest of 5 from there" in _joined(text)


def test_sentences_end_with_one_full_stop() -> None:
    assert sentence("so it is") == sentence("So it is.") == "So it is."
