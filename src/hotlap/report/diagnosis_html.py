"""A diagnosis as one HTML file that asks nothing of a network."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.report.charts import charts
from hotlap.report.html_file import refuse_without_libraries, rendered
from hotlap.report.html_view import missing, view
from hotlap.report.sections import sentence
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Diagnosis, Finding
from hotlap.values.summary import RunSummary

__all__ = ["diagnosis_html", "refuse_without_libraries", "run_html"]


def diagnosis_html(facts: Facts, diagnosis: Diagnosis) -> str:
    """Return a diagnosis as the text of a self-contained HTML file, about 5 MB of it plotly's.

    Raises WrongUse as ``refuse_without_libraries`` does.
    """
    return _rendered(facts, diagnosis, is_plain=False)


def run_html(summary: RunSummary, suspected: Sequence[Finding] = ()) -> str:
    """Return the account of a plain run as such a file: no experiment, no verdict.

    suspected: causes that this one run suggests, ranked. Raises WrongUse as above.
    """
    says = " ".join(map(sentence, summary.standing_out)) or "See where the time went"
    plain = Diagnosis("unknown", says, tuple(suspected), (), None, Bounds(None, None), None)
    facts = Facts(run=summary, whole_run=summary.horizon_source == "observed")
    return _rendered(facts, plain, is_plain=True)


def _rendered(facts: Facts, diagnosis: Diagnosis, is_plain: bool) -> str:
    said = view(facts, diagnosis)
    if is_plain:
        # The rest would be said of experiments that nobody asked for.
        said["missing"] = missing(facts.run.not_measured)
    said["is_plain"] = is_plain
    return rendered("diagnosis.html.j2", lambda: charts(facts), said)
