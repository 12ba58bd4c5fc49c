"""One HTML file that asks nothing of a network: template, style, script and charts in one text.

Templates, their style and their script lie in ``templates``; plotly's own script is taken from the
installed package. A content security policy in the file forbids every request.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hotlap.errors import WrongUse
from hotlap.report.readable import readable

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


def rendered(
    template: str, charts: Callable[[], Mapping[str, str]], said: Mapping[str, Any]
) -> str:
    """Return a template with its charts, and with what is said, as the text of one file.

    charts: makes them, by name, as JSON that may stand in HTML. Raises WrongUse as above.
    """
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
    return environment.get_template(template).render(
        **said,
        charts={name: _as_it_stands(chart) for name, chart in charts().items()},
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
