"""Arrays whose rows lie scattered, found in data sets and those around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Subset

from hotlap.inject.conditions.contents import scattered_arrays

ROWS: Any = np.zeros((600, 600), np.float32)


class Held:
    """A data set that holds one array."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return 4


@pytest.mark.parametrize(
    "table",
    [
        np.asfortranarray(ROWS),
        ROWS.T,
        torch.zeros(600, 600).t(),
        torch.zeros(600, 600, 4).permute(2, 1, 0),
    ],
)
def test_a_table_stored_the_other_way_round_is_found(table: Any) -> None:
    assert scattered_arrays([Held(table)]) == {
        "scattered_arrays": [["table", [int(one) for one in table.shape], False]]
    }


def test_a_memory_map_is_found_behind_a_subset(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", np.asfortranarray(ROWS))
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    around: Any = Subset(Subset(Held(mapped), [0, 1]), [0])
    assert scattered_arrays([around]) == {"scattered_arrays": [["table", [600, 600], True]]}


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        ROWS[::2],
        ROWS[0],
        np.asfortranarray(ROWS[:10, :10]),
        torch.zeros(600, 600),
        torch.zeros(600, 600).to_sparse(),
        [ROWS.T],
        None,
        torch.nn.Linear(2, 2),
    ],
)
def test_rows_in_one_piece_small_tables_and_other_things_are_none(table: Any) -> None:
    assert scattered_arrays([Held(table)]) == {}


def test_what_is_no_data_set_is_passed_over() -> None:
    assert scattered_arrays([None, 3, [1, 2], object()]) == {}
