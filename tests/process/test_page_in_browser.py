"""The page of a diagnosis in a real browser: it draws, it fits, it prints, it asks for nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from hotlap.report.charts import charts
from hotlap.report.diagnosis_html import diagnosis_html
from hotlap.report.tuning_charts import tuning_charts
from hotlap.report.tuning_html import tuning_html
from hotlap.values.tuning import Tuning
from unit.report.diagnosed import CASES
from unit.report.test_tuning import bare, tuned

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium here ({', '.join(NAMES)})"),
    pytest.mark.xdist_group("browser"),
]

LABELS_OUTSIDE = """
chart => {
  const frame = chart.getBoundingClientRect();
  return Array.from(chart.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle'))
    .filter(text => text.textContent.trim())
    .map(text => [text.textContent, text.getBoundingClientRect()])
    .filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1)
    .map(([words]) => words);
}
"""

TEXTS = {
    "input_bound": "Every sample is decoded anew on a full CPU.",
    "healthy": "None. No cause that stands out of the noise was found.",
    "nothing": "No step was measured",
    "foreign": '</script><script>alert(1)</script>"',
    "long": "value_0 + value_1",
}
"""Per case, words that a reader must see."""

MEDIA: tuple[tuple[Literal["screen", "print"], Literal["light", "dark"]], ...] = (
    ("screen", "light"),
    ("screen", "dark"),
    ("print", "dark"),
)

LEAST_READABLE = 4.5
"""Contrast of text with its ground (WCAG 2.2, AA)."""


class Opened(NamedTuple):
    """A page, and what its browser had to say of it."""

    page: Page
    trouble: list[str]
    requests: list[str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def _open(browser: Browser, folder: Path, name: str) -> Opened:
    """Open the page of a case at 1280 pixels, and wait until its charts are drawn."""
    case = CASES[name]()
    file = folder / f"{name}.html"
    file.write_text(diagnosis_html(case.facts, case.diagnosis), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    opened = Opened(page, [], [])
    page.on("console", lambda said: opened.trouble.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: opened.trouble.append(f"error: {error}"))
    page.on("dialog", lambda dialog: opened.trouble.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: opened.requests.append(request.url))
    page.goto(file.as_uri())
    _drawn(page, name)
    return opened


def _drawn(page: Page, name: str) -> None:
    """Wait until all charts of a case are drawn."""
    count = len(charts(CASES[name]().facts))
    page.wait_for_function(f"document.querySelectorAll('.js-plotly-plot').length === {count}")


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_opens(browser: Browser, tmp_path: Path, name: str) -> None:
    page, trouble, requests = _open(browser, tmp_path, name)
    for width in (1280, 400):
        if width != 1280:
            page.set_viewport_size({"width": width, "height": 900})
            page.reload()
            _drawn(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.get_by_text(TEXTS[name]).first.is_visible()
        for heading in page.locator("h1, h2, h3").all():
            box = heading.bounding_box()
            assert box is not None
            assert 0 <= box["x"] < box["x"] + box["width"] <= width
        for chart in page.locator(".chart").all():
            box = chart.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width
            assert box["height"] >= 60
            assert chart.locator("svg path").count() > 0
            assert chart.locator("svg text").count() > 0
            assert chart.evaluate(LABELS_OUTSIDE) == []
    assert trouble == []
    assert set(requests) == {page.url}
    page.close()


@pytest.mark.parametrize(("tuning", "says"), [(tuned(), "1.60 times as fast"), (bare(), "Nothing")])
def test_a_page_of_a_tuning_opens(
    browser: Browser, tmp_path: Path, tuning: Tuning, says: str
) -> None:
    file = tmp_path / "tuning.html"
    file.write_text(tuning_html(tuning), encoding="utf-8")
    trouble: list[str] = []
    for width in (1280, 400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda said: trouble.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.goto(file.as_uri())
        count = len(tuning_charts(tuning))
        page.wait_for_function(f"document.querySelectorAll('.js-plotly-plot').length === {count}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert says in page.locator("h1").inner_text()
        for chart in page.locator(".chart").all():
            assert chart.evaluate(LABELS_OUTSIDE) == []
        page.close()
    assert trouble == []


CONTRASTS = """
() => {
  const parse = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map(one => one / 255)
    .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const seen = 'h1, h2, h3, p, dt, dd, th, td, li, span, code, summary';
  for (const element of document.querySelectorAll(seen)) {
    if (!element.innerText || !element.innerText.trim()) continue;
    const [one, other] = [parse(getComputedStyle(element).color), ground(element)].map(light);
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found.push([contrast, element.tagName + ' ' + element.className]);
  }
  for (const text of document.querySelectorAll('.chart .xtick text, .chart .ytick text')) {
    const [one, other] = [parse(getComputedStyle(text).fill), ground(document.body)].map(light);
    found.push([(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), 'chart label']);
  }
  return found;
}
"""


def test_text_is_legible_and_prints(browser: Browser, tmp_path: Path) -> None:
    page, trouble, _ = _open(browser, tmp_path, "two")
    grounds = []
    for media, scheme in MEDIA:
        page.emulate_media(media=media, color_scheme=scheme)
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 50
        assert [found for found in contrasts if found[0] < LEAST_READABLE] == []
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    # A dark screen prints on white paper.
    assert grounds[0] == grounds[2] == "rgb(255, 255, 255)"
    assert grounds[1] != grounds[0]
    # The width of A4 between the margins that the page asks for.
    page.set_viewport_size({"width": 703, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    paper = page.pdf(prefer_css_page_size=True, print_background=True)
    assert paper.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
    assert trouble == []
    page.close()
