"""Findings as lines of a terminal page: those proven by experiment, and those suspected."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from hotlap.report.excerpt import text_at
from hotlap.report.page import GUTTER, Page, ending, fitting
from hotlap.report.readable import readable
from hotlap.report.sections import sentence
from hotlap.report.units import many
from hotlap.report.wording import (
    SCOPES,
    evidence_line,
    gain,
    phase_name,
    place,
    place_in_full,
    recoverable,
    remedy,
    whole_of,
)
from hotlap.values.facts import Facts
from hotlap.values.finding import Diagnosis, Finding

SEVERITIES: Final = {"high": "bold red", "medium": "yellow", "low": "bright_black"}
MOST_PLACES: Final = 3
MOST_BRIEF: Final = 8


def finding_lines(page: Page, facts: Facts, diagnosis: Diagnosis, full: int, seen: int) -> None:
    """Write the ranked findings, so many in full, the next ones in brief, the rest as a count.

    seen: lines that evidence may take.
    """
    found = diagnosis.findings
    if not found:
        page.words("Findings", _none(diagnosis))
        return
    for at, finding in enumerate(found[: full + MOST_BRIEF]):
        if at < full:
            _in_full(page, facts, finding, at + 1, seen)
            page.blank()
        else:
            _in_brief(page, facts, finding, at + 1)
    if len(found) > full + MOST_BRIEF:
        more = many(len(found) - full - MOST_BRIEF, "smaller finding")
        page.words("", f"and {more}, all of them in --json", "dim")


def _none(diagnosis: Diagnosis) -> str:
    if diagnosis.bound == "unknown":
        return "None named: too little was measured. That does not say that nothing is wrong."
    above = " that stands out of the noise" if diagnosis.noise_floor is not None else ""
    return f"None: no cause{above} was found."


def _in_full(page: Page, facts: Facts, finding: Finding, number: int, seen: int) -> None:
    _title(page, finding, number)
    page.words("", sentence(finding.say))
    for location in finding.locations[:MOST_PLACES]:
        _place(page, place_in_full(location), "bold")
        text = text_at(facts, location)
        if text:
            _source(page, text)
    if len(finding.locations) > MOST_PLACES:
        page.words("", f"and {many(len(finding.locations) - MOST_PLACES, 'more line')}", "dim")
    if finding.evidence:
        page.words("", f"seen: {evidence_line(finding.evidence)}", most=seen)
    share_of = recoverable(finding.recoverable_share, whole_of(facts.run))
    page.words("", f"costs: {share_of}, {SCOPES.get(finding.scope, finding.scope)}")
    changes = finding.remedy.changes.rstrip(".") or "nothing but the speed"
    page.words("", f"remedy: {remedy(finding)}; what else it changes: {changes}", most=3)


def _place(page: Page, words: str, style: str = "") -> None:
    """Write where something is, on one line, without its beginning where it is too long."""
    page.words("", ending(words, page.width - GUTTER), style, most=1)


def _in_brief(page: Page, facts: Facts, finding: Finding, number: int) -> None:
    _title(page, finding, number)
    where = place(finding.locations[0]) if finding.locations else phase_name(finding.phase)
    share_of = recoverable(finding.recoverable_share, whole_of(facts.run))
    _place(page, f"{where}: {share_of}; hotlap explain {finding.code}")


def _title(page: Page, finding: Finding, number: int) -> None:
    """Write number, severity, code and name at the left, the gain at the right."""
    style = SEVERITIES.get(finding.severity, "")
    name = f"{finding.code} {readable(finding.name)}"
    suspected = "" if finding.status == "proven" else f" ({finding.status})"
    said = gain(finding.predicted_speedup)
    left = Text.assemble(
        (f"{number} {finding.severity}".ljust(GUTTER), style), (name, "bold"), suspected
    )
    left.truncate(page.width - len(said) - 2, overflow="ellipsis")
    gap = " " * (page.width - left.cell_len - len(said))
    page.lines.append(Text.assemble(left, gap, (said, "bold green")))


def _source(page: Page, text: str) -> None:
    """Write one line of the user's source, cut to fit."""
    shown = fitting(readable(text).strip(), page.width - GUTTER - 4)
    page.lines.append(Text.assemble(" " * (GUTTER + 4), (shown, "cyan")))


def suspected_lines(
    page: Page, findings: Sequence[Finding], most: int, command: Sequence[str]
) -> None:
    """Write causes that one run suspects, and the command that would settle them.

    findings: ranked. most: how many are written. command: the training's own.
    """
    shown = findings[:most]
    if not shown:
        return
    for at, finding in enumerate(shown):
        page.words("" if at else "Suspected", _suspicion(finding), "", "▸ ", most=3)
    if len(findings) > most:
        page.words("", f"and {many(len(findings) - most, 'smaller one')}", "dim")
    settles = "; ".join(dict.fromkeys(_settled_by(finding) for finding in shown[:2]))
    page.words("", f"One run proves no cause; an experiment tells {settles}:", "dim")
    text = f"hotlap diagnose {readable(shlex.join(command))}"
    if cell_len(text) > page.width - GUTTER:
        text = "hotlap diagnose, with the same command after it"
    page.lines.append(Text.assemble(" " * GUTTER, (text, "bold")))


def beside(sentences: Sequence[str], findings: Sequence[Finding]) -> Sequence[str]:
    """Return what stands out, without the sentence that nothing does where causes are suspected."""
    if not findings:
        return sentences
    return [words for words in sentences if not words.startswith("nothing stands out")]


def _suspicion(finding: Finding) -> str:
    """Return where it is and what it is, without what to do: a whole sentence or two."""
    where = f" at {place(finding.locations[0])}" if finding.locations else ""
    first = re.split(r"(?<=\.)\s+(?=[A-Z])", readable(finding.say), maxsplit=1)[0]
    return f"{finding.code} {readable(finding.name)}{where}: {sentence(first)}"


def _settled_by(finding: Finding) -> str:
    """Return what an experiment would find out about a suspected cause."""
    if finding.phase == "data_wait":
        return "which limits, the loader or the steps"
    if finding.scope != "step":
        return "what share of the run it costs"
    return "how much faster a step is without it"
