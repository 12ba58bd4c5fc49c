"""Samples read from storage and from memory: told apart by bytes, which no clock decides."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

import pytest

from hotlap.experiment.cold_and_warm import storage
from hotlap.inject.conditions import page_cache
from hotlap.values.facts import Measured
from process.trial_runs import Trial, trial, window

MIB = 1 << 20
FILES = 24


@functools.cache
def of(*words: str) -> Trial:
    """Return a trial that ends with a window over samples from storage."""
    found = trial(list(words), window("warm_up", 2), window("storage", 16, 20.0))
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    return found


def folder_on_disk() -> Path:
    """Return a folder whose files can leave the page cache; skips where there is none."""
    folder = Path(tempfile.mkdtemp(prefix="storage-"))
    probe = folder / "probe"
    with probe.open("wb") as file:
        file.write(b"x" * MIB)
        file.flush()
        os.fsync(file.fileno())
    page_cache.let_go([str(probe)])
    left = page_cache.resident_bytes(str(probe))
    if left is None or left > MIB // 10:
        pytest.skip("files in the temporary folder stay in memory")
    probe.unlink()
    return folder


@pytest.mark.xdist_group("storage window")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_bytes_come_from_storage_once(workers: str) -> None:
    folder_on_disk()
    words = ("--files", str(FILES), "--mib", "1", "--keep", "--epochs", "9", "--workers", workers)
    found = of("split/slow_storage.py", *words)
    compared = storage(found.windows)
    assert isinstance(compared, Measured), compared
    seen = compared.value
    split = found.windows[-1].split
    assert seen.samples == 16
    assert seen.files >= 16
    assert seen.file_bytes >= 16 * MIB
    assert seen.read_bytes is not None
    assert seen.read_bytes >= 16 * MIB
    assert split["warm_read_bytes"] == 0


@pytest.mark.xdist_group("storage window")
@pytest.mark.parametrize(
    ("trouble", "says"), [("none", "read no file"), ("stream", "the data is a stream")]
)
def test_what_cannot_be_compared_is_said(trouble: str, says: str) -> None:
    found = of("known_cost.py", "--trouble", trouble, "--samples", "64")
    compared = storage(found.windows)
    assert not isinstance(compared, Measured)
    assert says in compared.because
