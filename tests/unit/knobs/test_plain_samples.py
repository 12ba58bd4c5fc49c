"""Byte code differs from Python to Python; what is read from it does not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import hotlap
from unit.pythons import python_or_skip

DRIVER = Path(__file__).with_name("plain_samples_driver.py")


@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 12), (3, 13), (3, 14)], ids=str)
def test_plans_are_read_from_every_pythons_byte_code(version: tuple[int, int]) -> None:
    source = str(Path(hotlap.__file__).parents[1])
    done = subprocess.run(
        [python_or_skip(version), str(DRIVER)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
