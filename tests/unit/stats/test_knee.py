"""Where more workers stop helping."""

from __future__ import annotations

import pytest

from hotlap.stats.knee import knee


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([], None),
        ([(0, 100.0)], 0),
        ([(0, 100.0), (1, 200.0), (2, 400.0)], 2),
        ([(0, 100.0), (1, 200.0), (2, 400.0), (4, 410.0)], 2),
        ([(4, 300.0), (0, 400.0), (2, 350.0)], 0),
        ([(0, 100.0), (1, 104.0)], 0),
        ([(0, 100.0), (1, 106.0)], 1),
        ([(0, 0.0), (1, 0.0)], 0),
    ],
)
def test_the_knee_is_the_fewest_that_are_nearly_the_best(
    rates: list[tuple[int, float]], expected: int | None
) -> None:
    assert knee(rates) == expected
