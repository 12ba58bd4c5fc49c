"""Caches of functions are found in the user's modules, with what they count themselves."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from hotlap.inject.conditions.caches import function_caches

TEXT = """
import functools

@functools.lru_cache(maxsize=4)
def load(key):
    return key

@functools.cache
def unbounded(key):
    return key

class Data:
    @functools.lru_cache(maxsize=2)
    def read(self, key):
        return key

again = load
"""


@pytest.fixture
def module() -> Iterator[ModuleType]:
    made = ModuleType("made_by_the_user")
    made.__file__ = "/users/train.py"
    made.functools = functools  # type: ignore[attr-defined]  # what the text imports
    exec(compile(TEXT, "/users/train.py", "exec"), vars(made))
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def found() -> dict[str, list[list[object]]]:
    return function_caches(lambda file: file == "/users/train.py", lambda _: "train.py")


def test_each_bounded_cache_is_told_once_with_its_counts(module: ModuleType) -> None:
    for key in (1, 2, 3, 4, 5, 5):
        module.load(key)
    data = module.Data()
    data.read(1)
    assert {tuple(one) for one in found()["function_caches"]} == {
        ("train.py", 4, "load", 1, 5, 4, 4),
        ("train.py", 13, "read", 0, 1, 2, 1),
    }
    assert len(found()["function_caches"]) == 2


class Late:
    """Loads something large as soon as anybody looks at it."""

    @property  # type: ignore[misc]  # as proxies do it
    def __class__(self) -> type:
        raise ImportError("loaded late")

    def __getattr__(self, name: str) -> None:
        raise ImportError(name)


def test_nothing_that_loads_late_is_touched(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    vars(module)["late"] = Late()
    monkeypatch.setitem(sys.modules, "late_module", Late())
    assert len(found()["function_caches"]) == 2


def test_modules_of_others_are_passed_over() -> None:
    assert found() == {}


def test_a_script_that_has_ended_has_no_name_any_more(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    del module.__file__
    monkeypatch.setitem(sys.modules, "__main__", module)
    assert len(found()["function_caches"]) == 2
