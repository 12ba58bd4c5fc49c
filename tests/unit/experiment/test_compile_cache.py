"""The trials' cache of compiled code: a copy of the user's, and gone at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.experiment import compile_cache
from hotlap.experiment.compile_cache import CompileCache


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return variables of a user whose caches hold one file each."""
    inductor, home = tmp_path / "inductor", tmp_path / "home"
    (inductor / "ab").mkdir(parents=True)
    (inductor / "ab" / "kernel.so").write_bytes(b"compiled")
    (home / ".triton" / "cache").mkdir(parents=True)
    (home / ".triton" / "cache" / "k.cubin").write_bytes(b"triton")
    return {"TORCHINDUCTOR_CACHE_DIR": str(inductor), "HOME": str(home)}


def test_it_begins_as_a_copy_of_the_user_s(tmp_path: Path, environ: dict[str, str]) -> None:
    cache = CompileCache(tmp_path / "cache", environ)
    cache.begin()
    given = cache.variables()
    copy = Path(given["TORCHINDUCTOR_CACHE_DIR"]) / "ab" / "kernel.so"
    assert copy.read_bytes() == b"compiled"
    assert (Path(given["TRITON_CACHE_DIR"]) / "k.cubin").read_bytes() == b"triton"
    copy.write_bytes(b"changed in a trial")
    original = Path(environ["TORCHINDUCTOR_CACHE_DIR"]) / "ab" / "kernel.so"
    assert original.read_bytes() == b"compiled"
    assert cache.through() == (tmp_path / "cache",)


def test_without_a_cache_it_begins_empty(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache", {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    cache.begin()
    folders = [Path(one) for one in cache.variables().values()]
    assert len(folders) == 2
    assert all(folder.is_dir() and not list(folder.iterdir()) for folder in folders)


def test_one_that_is_too_large_is_not_copied_and_not_replaced(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_cache, "_MOST_BYTES", 10)
    cache = CompileCache(tmp_path / "cache", environ)
    cache.begin()
    assert cache.variables() == {}
    assert cache.through() == ()
    assert not (tmp_path / "cache").exists()


def test_after_a_trial_that_was_killed_it_is_given_up(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    cache = CompileCache(tmp_path / "cache", environ)
    cache.begin()
    cache.spoiled()
    assert cache.variables() == {}
    assert not (tmp_path / "cache").exists()
