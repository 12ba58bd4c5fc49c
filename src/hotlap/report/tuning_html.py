"""A tuning as one HTML file that asks nothing of a network."""

from __future__ import annotations

import shlex
from typing import Any, Final

from hotlap.report.html_file import rendered
from hotlap.report.sections import sentence
from hotlap.report.tuning_charts import tuning_charts
from hotlap.report.tuning_page import left_to_mend, measured_words, predicted_words, ratio
from hotlap.report.units import many, share
from hotlap.values.plan import Choice
from hotlap.values.tuning import Tuning

_SAME: Final = {True: "yes", False: "no", None: "not known"}


def tuning_html(tuning: Tuning) -> str:
    """Return a tuning as the text of a self-contained HTML file, about 5 MB of it plotly's.

    Raises WrongUse, with the line that installs them, when jinja2 or plotly is missing.
    """
    run = tuning.baseline[0].run
    last = (tuning.tuned or tuning.baseline)[1]
    return rendered(
        "tuning.html.j2",
        lambda: tuning_charts(tuning),
        {
            "version": run.hotlap_version,
            "command": run.command,
            "started": run.started,
            "id": run.id,
            "headline": _headline(tuning),
            "doubt": _doubt(tuning),
            "notes": [sentence(one) for one in tuning.notes],
            "same": tuning.sameness.word,
            "plan": [_choice(one) for one in tuning.plan.choices] if tuning.plan else [],
            "rows": _rows(tuning),
            "how": (
                "The command as it stands, or under what was kept so far, was run before and after "
                f"each change; every run measured the same {tuning.span.get('steps', 0)} steps."
            ),
            "checks": [(one.name, _SAME[one.passed], one.says) for one in tuning.sameness.checks],
            "ceiling": sentence(f"the next ceiling: {last.next_ceiling}")
            if last.next_ceiling
            else "",
            "left": [one.say for one in left_to_mend(tuning)],
        },
    )


def _headline(tuning: Tuning) -> str:
    if tuning.plan is None or tuning.plan.gain is None:
        return "Nothing worth changing was found."
    return f"{tuning.plan.gain.mid:.2f} times as fast, with the script as it is."


def _doubt(tuning: Tuning) -> str:
    gain = tuning.gain
    counted = sum(1 for one in tuning.runs if one.failed is None)
    said = f"{many(counted, 'run')} were compared; a gain under {share(tuning.minimum_effect)} "
    said += "does not count."
    if gain is not None:
        said = f"95 % interval: {gain.low:.2f} to {gain.high:.2f}. {said}"
    if tuning.run_gain is not None:
        said += f" The whole run, with its start and its end: {ratio(tuning.run_gain)}."
    return said


def _choice(one: Choice) -> dict[str, Any]:
    return {
        "knob": one.knob,
        "value": one.value,
        "numerics": one.numerics,
        "measured": measured_words(one.measured),
        "predicted": predicted_words(one.predicted),
        "proof": one.proof,
        "code": one.snippet,
        "environment": [f"export {key}={shlex.quote(v)}" for key, v in one.environment.items()],
    }


def _rows(tuning: Tuning) -> list[tuple[str, str, str]]:
    """Return every knob with what became of it: those that were run first."""
    ordered = sorted(tuning.tried, key=lambda one: one.measured is None)
    rows = []
    for one in ordered:
        value = "" if one.value is None else f" = {one.value}"
        beside = "".join(f", {knob} = {value}" for knob, value in one.beside.items())
        rows.append((f"{one.knob}{value}{beside}", one.word, one.because))
    return rows
