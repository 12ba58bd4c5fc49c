"""What the charts of a page look like: mid tones that are read on white and on near-black."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Final

from hotlap.report.readable import readable

COLOURS: Final = {
    "data_wait": "#d99000",
    "transfer": "#a45fc0",
    "forward": "#3a7fd5",
    "backward": "#1f9bb3",
    "optimizer": "#3f9f57",
    "communication": "#d2504c",
    "logging": "#c0559a",
    "other": "#868c96",
    "start_up": "#868c96",
    "steps": "#3f9f57",
    "evaluation": "#3a7fd5",
    "checkpoint": "#a45fc0",
    "epoch_edge": "#d99000",
    "compile": "#1f9bb3",
    "shut_down": "#6d7480",
    "fetch": "#d99000",
    "collate": "#a45fc0",
    "idle": "#868c96",
}
"""Per phase of a step, of a run, and of a worker's profile."""

OTHER: Final = "#868c96"
MAIN: Final = "#3a7fd5"
MARK: Final = "#d2504c"

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
ROW: Final = 42
"""Height of one bar with its two lines of label, in pixels."""


def layout(height: int, **more: Any) -> dict[str, Any]:
    """Return the layout of a chart that lies on the page's own ground. height: in pixels."""
    axis = {
        "gridcolor": "#88888844",
        "zeroline": False,
        "fixedrange": True,
        "ticks": "outside",
        "ticklen": 6,
        "tickcolor": "rgba(0,0,0,0)",
    }
    plain: dict[str, Any] = {
        "height": height,
        # Fixed, and not by plotly's own measuring, which redraws and complains in narrow windows.
        "margin": {"l": 72, "r": 24, "t": 8, "b": 52},
        "template": {},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "bargap": 0.35,
        "xaxis": dict(axis),
        "yaxis": dict(axis),
    }
    for name, value in more.items():
        plain[name] = {**plain[name], **value} if isinstance(plain.get(name), dict) else value
    return plain


def beside(names: Sequence[str]) -> dict[str, int]:
    """Return the margin that leaves room for the longest of the names at the left of bars."""
    return {"l": 20 + 7 * max(len(name) for name in names)}


def label(text: str) -> str:
    """Return text of the user's for a chart, where a tag would be obeyed."""
    return html.escape(readable(text), quote=False)
