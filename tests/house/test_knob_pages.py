"""docs/knobs is what the knobs say of themselves."""

from __future__ import annotations

from pathlib import Path

from house.knob_pages import FOLDER, RENEW, files, write


def test_the_pages_are_in_step_with_the_knobs() -> None:
    held = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert held == files(), RENEW


def test_a_page_of_a_knob_that_is_gone_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "knobs"
    folder.mkdir()
    (folder / "gone.md").write_text("gone")
    write(folder)
    assert not (folder / "gone.md").exists()
    assert {path.name for path in folder.iterdir()} == set(files())
