"""Failed tests are found again when they are run alone."""

from __future__ import annotations

import pytest

from house.groups import without_group


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        ("tests/a.py::test_one[p@q]@g@x", "tests/a.py::test_one[p@q]"),
        ("tests/a.py::test_two@scripts/two.py", "tests/a.py::test_two"),
        ("tests/a@b.py::test_three", "tests/a@b.py::test_three"),
        ("tests/a.py::test_four[x@y]", "tests/a.py::test_four[x@y]"),
        ("tests/a@b.py", "tests/a@b.py"),
    ],
)
def test_a_name_is_told_from_its_group(name: str, alone: str) -> None:
    assert without_group(name) == alone
