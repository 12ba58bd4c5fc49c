"""docs/rules is what the rules say of themselves, and each of them says enough."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from hotlap.cli.explain import page_of, rules
from hotlap.report.rule_page import GROUPS
from house.rule_pages import FOLDER, RENEW, files, write

PARTS = ("**What.**", "**How it is measured.**", "**When it is wrong.**", "**What to do.**")


def test_the_pages_are_in_step_with_the_rules() -> None:
    held = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert held == files(), RENEW


@pytest.mark.parametrize("module", rules(), ids=lambda module: str(module.CODE))
def test_a_page_says_what_how_when_not_and_what_to_do(module: ModuleType) -> None:
    assert str(module.__doc__).startswith(f"# {module.CODE} {module.NAME}: ")
    page = page_of(module)
    assert page.title
    assert page.code[:3] in GROUPS
    places = [page.text.find(part) for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)


def test_no_code_and_no_name_is_there_twice() -> None:
    pages = [page_of(module) for module in rules()]
    assert len({page.code for page in pages}) == len(pages)
    assert len({page.name for page in pages}) == len(pages)


def test_a_page_of_a_rule_that_is_gone_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "HL999.md").write_text("gone")
    write(folder)
    assert not (folder / "HL999.md").exists()
    assert {path.name for path in folder.iterdir()} == set(files())
