"""``hotlap report`` on a stored diagnosis, and the pages of HTML that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hotlap.cli.report import command
from hotlap.diagnose import judge
from hotlap.experiment.measure import FACTS_FILE
from hotlap.experiment.stored import save
from hotlap.report.diagnosis_html import run_html
from unit.report.diagnosed import CASES, finding
from unit.report.gallery import RECORDS, summary


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a run's folder that the store finds whatever it is asked for."""
    folder = tmp_path / "20260102-030405-ab12"
    folder.mkdir()

    class Found:
        def find(self, name: str | None) -> Path:  # noqa: ARG002 - the store's signature
            return folder

    monkeypatch.setattr("hotlap.runs.store.open_store", lambda start: Found())  # noqa: ARG005
    monkeypatch.setattr("hotlap.runs.reading.read_run", lambda path: RECORDS["workers"]())  # noqa: ARG005
    return folder


def test_stored_facts_are_judged_anew(run: Path) -> None:
    facts = CASES["input_bound"]().facts
    save(facts, run / FACTS_FILE)
    result = CliRunner().invoke(command, ["ab12"])
    assert result.exit_code == 0, result.output
    assert "Verdict" in result.output
    assert judge(facts).findings[0].code in result.output
    assert "hotlap report ab12 --html" in result.output


def test_a_stored_diagnosis_as_json_and_as_a_page(run: Path, tmp_path: Path) -> None:
    save(CASES["two"]().facts, run / FACTS_FILE)
    page = tmp_path / "page.html"
    result = CliRunner().invoke(command, ["ab12", "--json", "-", "--html", str(page)])
    assert result.exit_code == 0, result.output
    form = json.loads(result.output)
    assert form["report"] == "diagnosis"
    assert form["ceilings"]["compute_per_s"] == 8020.0
    assert "The answer" in page.read_text(encoding="utf-8")


def test_a_plain_run_has_a_page_of_its_own(run: Path, tmp_path: Path) -> None:
    assert run.is_dir()
    page = tmp_path / "page.html"
    result = CliRunner().invoke(command, ["ab12", "--html", str(page)])
    assert result.exit_code == 0, result.output
    assert "Photos, 2 workers" in result.output
    text = page.read_text(encoding="utf-8")
    assert "Where does the time of this training go?" in text
    assert 'id="chart-step"' in text
    assert "the account of one run, which proves no cause" in text


def test_the_page_of_a_plain_run_claims_nothing_of_experiments() -> None:
    text = run_html(summary("plain"))
    assert "Nothing stands out" in text
    for part in ("findings", "ceilings", "experiments", "lines"):
        assert f'<section id="{part}">' not in text
    assert "no replay was made" not in text
    assert "no CUDA device was used" in text
    suspected = run_html(summary("workers"), (finding(status="suspected"),))
    assert "What this run suggests" in suspected
    assert "HL101 input-bound-decode" in suspected
    assert "<h1>" in run_html(summary("absent"))
