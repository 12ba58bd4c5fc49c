"""The page of a tuning: one file, all that was found in it, nothing asked of a network."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from hotlap.experiment.stored import packed, unpacked
from hotlap.report.tuning_charts import tuning_charts
from hotlap.report.tuning_html import tuning_html
from hotlap.values.arm import Arm
from hotlap.values.finding import Bounds
from hotlap.values.tuning import Tuning
from unit.report.test_tuning import KEPT, PLANNED, bare, ran, tuned
from unit.tune.plans import choice


def test_the_page_says_what_the_tuning_found() -> None:
    text = tuning_html(tuned())
    assert "1.60 times as fast, with the script as it is." in text
    assert "anomaly_mode = False" in text
    assert "predicted 1.40 to 1.80" in text
    assert choice().snippet in text
    assert "there is no GPU" in text
    assert "equal in 4 steps" in text


def test_a_page_without_a_plan() -> None:
    text = tuning_html(bare())
    assert "Nothing worth changing was found." in text
    assert 'id="plan"' not in text


@pytest.mark.parametrize("tuning", [tuned(), bare(), tuned(runs=()), tuned(tried=())])
def test_charts_are_json_of_plotly(tuning: Tuning) -> None:
    for name, text in tuning_charts(tuning).items():
        assert json.loads(text)["data"], name


def test_text_of_the_users_is_escaped() -> None:
    evil = replace(KEPT, proof="</script><script>alert(1)</script>", predicted=Bounds(None, None))
    text = tuning_html(tuned(tried=(evil,), runs=(ran(Arm(), 3), ran(PLANNED, 2))))
    assert "<script>alert(1)" not in text


def test_nothing_is_fetched() -> None:
    text = tuning_html(tuned())
    assert "default-src 'none'" in text
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="http', text)


def test_a_stored_tuning_is_the_same_tuning() -> None:
    for tuning in (tuned(), bare()):
        assert unpacked(json.loads(json.dumps(packed(tuning)))) == tuning
