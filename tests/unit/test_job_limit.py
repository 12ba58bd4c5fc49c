"""A batch job's end bounds a diagnosis."""

from __future__ import annotations

import pytest

from hotlap.cli.diagnose import job_s
from hotlap.errors import NotMeasurable


def test_without_a_job_there_is_no_bound() -> None:
    assert job_s({}, 1000.0) is None
    assert job_s({"SLURM_JOB_END_TIME": "soon"}, 1000.0) is None


def test_what_is_left_of_a_job_bounds_it_with_a_margin() -> None:
    left = job_s({"SLURM_JOB_END_TIME": "1500"}, 1000.0)
    assert left is not None
    assert 400 < left < 500


def test_a_job_that_ends_too_soon_is_refused_in_words() -> None:
    with pytest.raises(NotMeasurable, match="ends in 10 s"):
        job_s({"SLURM_JOB_END_TIME": "1010"}, 1000.0)
