"""The page and the JSON of doctor."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from hotlap.machine.checks.check import Check
from hotlap.report import doctor

CHECKS = (
    Check("cores", "good", "16 cores visible, 16 allowed by affinity, no quota", "all fit"),
    Check(
        "shared memory",
        "limited",
        "/dev/shm has 64 MiB free of 64 MiB [not markup] and a word of some length here",
        "room for 1 batch; the rest ends in a bus error, and this goes on for a while",
        "docker --shm-size=8g",
    ),
    Check("python", "unknown", "/a/very/long/path/" + "x" * 90 + "/python: no answer", "unknown"),
)


def printed(width: int) -> str:
    out = io.StringIO()
    doctor.show(CHECKS, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 300])
def test_no_line_is_too_long_and_no_word_is_lost(width: int) -> None:
    text = printed(width)
    assert max(map(len, text.splitlines())) <= min(width, 120)
    squeezed = "".join(text.split())
    for check in CHECKS:
        for words in (check.name, check.seen, check.consequence, check.fix or ""):
            assert "".join(words.split()) in squeezed
    last = "3 checks: 1 good, 1 limited, 1 unknown\nwith a fix above: shared memory\n"
    assert text.endswith(last)


def test_lines_have_no_trailing_blanks_and_no_colours_in_a_pipe() -> None:
    text = printed(80)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_the_fix_stands_below_its_check() -> None:
    rows = printed(80).splitlines()
    begin = next(n for n, row in enumerate(rows) if row.startswith("limited"))
    end = next(n for n, row in enumerate(rows) if row.startswith("unknown"))
    assert rows[end - 1].strip() == "fix: docker --shm-size=8g"
    assert begin < end


def test_the_json_form() -> None:
    found = doctor.document(CHECKS, {"cores_visible": 2}, "1.2.3")
    assert json.loads(json.dumps(found)) == found
    assert list(found) == ["format", "hotlap_version", "checks", "machine"]
    assert (found["format"], found["hotlap_version"]) == (1, "1.2.3")
    assert found["machine"] == {"cores_visible": 2}
    assert [set(check) for check in found["checks"]] == [
        {"name", "state", "seen", "consequence", "fix"}
    ] * 3
    assert found["checks"][0]["fix"] is None
