"""A diagnosis as one HTML file that asks nothing of a network.

The template, its style and its script lie in ``templates``; plotly's own script is taken from the
installed package. A content security policy in the file forbids every request.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hotlap.errors import WrongUse
from hotlap.report.charts import charts
from hotlap.report.html_view import missing, view
from hotlap.report.readable import readable
from hotlap.report.sections import sentence
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Diagnosis, Finding
from hotlap.values.summary import RunSummary

TEMPLATES: Final = Path(__file__).parent / "templates"


def refuse_without_libraries() -> None:
    """Raise WrongUse, with the line that installs them, when jinja2 or plotly is missing.

    To be called before trials are made whose page could then not be written.
    """
    for name in ("jinja2", "plotly"):
        if find_spec(name) is None:
            raise WrongUse(
                f"--html needs jinja2 and plotly, and {name} is not installed; install: "
                f"{sys.executable} -m pip install 'hotlap[report]'"
            )


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
    refuse_without_libraries()
    import jinja2
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    own = {name: (TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")}
    said = view(facts, diagnosis)
    if is_plain:
        # The rest would be said of experiments that nobody asked for.
        said["missing"] = missing(facts.run.not_measured)
    return environment.get_template("diagnosis.html.j2").render(
        **said,
        is_plain=is_plain,
        charts={name: _as_it_stands(chart) for name, chart in charts(facts).items()},
        style=_as_it_stands(own["page.css"]),
        script=_as_it_stands(own["page.js"]),
        plotly=_as_it_stands(get_plotlyjs().replace("</script", r"<\/script")),
    )


def _as_it_stands(text: str) -> Any:
    """Return text of our own, or of plotly's, that the template does not escape."""
    from markupsafe import Markup

    return Markup(text)


def _harmless(value: Any) -> Any:
    """Return what the template writes for a value: the users' text without what is no text."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return readable(value)
    return value
