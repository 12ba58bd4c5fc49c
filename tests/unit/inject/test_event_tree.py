"""The tree of events where torch's names of functions are gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hotlap.inject.conditions.event_tree import Names, Walk


class _Gone:
    """A call site whose names lie in memory that was given back."""

    line_number = 7

    @property
    def file_name(self) -> str:
        return b"\xdb".decode()

    function_name = file_name


def _event(tag: str, name: str, site: Any, children: tuple[Any, ...] = ()) -> Any:
    extra = SimpleNamespace(
        callsite=site,
        caller=SimpleNamespace(line_number=3),
        scope="FUNCTION",
        sequence_number=-1,
        inputs=(),
    )
    return SimpleNamespace(
        tag=f"EventType.{tag}",
        name=name,
        extra_fields=extra,
        children=list(children),
        duration_time_ns=1_000,
        start_time_ns=0,
        end_time_ns=1_000,
    )


def test_an_operator_below_a_call_without_a_name_is_that_of_the_line_above() -> None:
    operator = _event("TorchOp", "aten::mm", None)
    nameless = _event("PyCall", "", _Gone(), (operator,))
    site = SimpleNamespace(file_name="/users/train.py", line_number=1, function_name="main")
    main = _event("PyCall", "main", site, (nameless,))
    names = Names(lambda file: file.endswith("train.py"), lambda _: "train.py")
    walk = Walk(names)
    walk.take([main])
    (row,) = walk.rows(1)
    assert row["name"] == "aten::mm"
    assert row["place"] == ("train.py", 3, "main")
