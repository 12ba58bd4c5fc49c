"""A plan's knobs put on from inside: what was made before is changed, and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import hotlap
from hotlap.errors import WrongUse
from hotlap.inject import prepared
from hotlap.machine.facts import machine_facts
from hotlap.tune.fingerprint import hardware
from hotlap.tune.plan_file import write
from unit.tune.plans import choice, plan


@pytest.fixture(autouse=True)
def _taken_off() -> Iterator[None]:
    yield
    prepared.take_off()


PlanOf = Callable[..., Path]


@pytest.fixture
def plan_of(tmp_path: Path) -> PlanOf:
    """Return what writes a plan of this machine, with the knobs that it is given."""

    def make(environment: dict[str, dict[str, str]] | None = None, **knobs: Any) -> Path:
        variables = environment or {}
        choices = [
            choice(name, value, environment=variables.get(name, {}))
            for name, value in knobs.items()
        ]
        path = tmp_path / "hotlap.plan.toml"
        write(path, plan(*choices, fingerprint=hardware(machine_facts(()))))
        return path

    return make


def loader(**arguments: Any) -> DataLoader[Any]:
    data = TensorDataset(torch.arange(64.0).reshape(16, 4), torch.arange(16))
    return DataLoader(data, batch_size=4, shuffle=True, **arguments)


def order(given: DataLoader[Any], epochs: int = 2) -> list[list[int]]:
    torch.manual_seed(5)
    return [labels.tolist() for _ in range(epochs) for _, labels in given]


def test_a_loader_that_was_made_before_gets_workers_and_keeps_its_order(plan_of: PlanOf) -> None:
    given = loader()
    expected = order(loader())
    assert hotlap.prepare(given, plan=plan_of(loader_workers=1, persistent_workers=True)) is given
    assert (given.num_workers, given.prefetch_factor, given.persistent_workers) == (1, 2, True)
    assert order(given) == expected
    del given._iterator  # its workers end
    given._iterator = None
    hotlap.unprepare()
    assert (given.num_workers, given.prefetch_factor, given.persistent_workers) == (0, None, False)
    assert order(given) == expected


def test_workers_are_taken_away_with_what_needs_them(plan_of: PlanOf) -> None:
    given = loader(num_workers=2, prefetch_factor=4, persistent_workers=True, timeout=60)
    hotlap.prepare(given, plan=plan_of(loader_workers=0))
    assert (given.num_workers, given.prefetch_factor, given.persistent_workers) == (0, None, False)
    assert sum(len(one) for one in order(given, 1)) == 16
    hotlap.unprepare()
    assert (given.num_workers, given.prefetch_factor, given.persistent_workers) == (2, 4, True)
    assert given.timeout == 60


def test_a_loader_whose_workers_run_is_left_alone(plan_of: PlanOf) -> None:
    given = loader(num_workers=1, persistent_workers=True)
    next(iter(given))
    hotlap.prepare(given, plan=plan_of(loader_workers=2))
    assert given.num_workers == 1


def test_a_stream_without_workers_gets_none(plan_of: PlanOf) -> None:
    class Stream(IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[int]:
            return iter(range(8))

    given = DataLoader(Stream(), batch_size=4)
    hotlap.prepare(given, plan=plan_of(loader_workers=2))
    assert given.num_workers == 0


def test_what_is_made_afterwards_is_changed_too(plan_of: PlanOf) -> None:
    assert hotlap.prepare(plan=plan_of(loader_workers=1)) == ()
    assert loader().num_workers == 1
    hotlap.unprepare()
    assert loader().num_workers == 0


def weights(optimize: Callable[[torch.nn.Module], torch.optim.Optimizer]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = optimize(model)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return [one.detach() for one in model.parameters()]


def groups(model: torch.nn.Module) -> list[dict[str, Any]]:
    first, *others = model.parameters()
    return [{"params": [first], "lr": 0.5, "weight_decay": 0.1}, {"params": others}]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_an_optimizer_that_was_made_before_is_fused(plan_of: PlanOf, kind: Any) -> None:
    expected = weights(lambda model: kind(groups(model), lr=0.1))
    path = plan_of(fused_optimizer=True)
    made: list[torch.optim.Optimizer] = []

    def fused(model: torch.nn.Module) -> torch.optim.Optimizer:
        optimizer = kind(groups(model), lr=0.1)
        assert hotlap.prepare(model, optimizer, plan=path) == (model, optimizer)
        assert [one["fused"] for one in optimizer.param_groups] == [True, True]
        assert [one["lr"] for one in optimizer.param_groups] == [0.5, 0.1]
        made.append(optimizer)
        return optimizer

    for one, other in zip(weights(fused), expected, strict=True):
        torch.testing.assert_close(one, other)
    hotlap.unprepare()
    assert [one["fused"] for one in made[0].param_groups] == [None, None]
    # A gradient scaler asks for it, and leaves its work to a fused optimizer.
    assert not getattr(made[0], "_step_supports_amp_scaling", False)


def test_an_optimizer_that_has_stepped_is_left_alone(plan_of: PlanOf) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([parameter])
    parameter.sum().backward()
    optimizer.step()
    hotlap.prepare(optimizer, plan=plan_of(fused_optimizer=True))
    assert optimizer.param_groups[0]["fused"] is None


def test_an_optimizer_that_torch_will_not_fuse_is_left_alone(plan_of: PlanOf) -> None:
    numbers = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    optimizer = torch.optim.SGD([numbers], lr=0.1, differentiable=True)
    hotlap.prepare(optimizer, plan=plan_of(fused_optimizer=True))
    assert not optimizer.param_groups[0]["fused"]


def test_an_optimizer_of_the_users_own_is_left_alone(plan_of: PlanOf) -> None:
    class Own(torch.optim.SGD):  # type: ignore[misc]
        pass

    optimizer = Own([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    hotlap.prepare(optimizer, plan=plan_of(fused_optimizer=True))
    assert not optimizer.param_groups[0]["fused"]


def test_what_waits_for_the_first_step_comes_after_it(plan_of: PlanOf) -> None:
    import gc

    before = gc.get_freeze_count()
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    hotlap.prepare(optimizer, plan=plan_of(gc_control="freeze"))
    assert gc.get_freeze_count() == before
    parameter.sum().backward()
    optimizer.step()
    assert gc.get_freeze_count() > before
    hotlap.unprepare()
    assert gc.get_freeze_count() == 0


def test_a_second_call_changes_more_and_begins_nothing_anew(plan_of: PlanOf) -> None:
    path = plan_of(loader_workers=1)
    first, second = loader(), loader()
    hotlap.prepare(first, plan=path)
    patched = DataLoader.__init__
    hotlap.prepare(second, plan=path)
    assert DataLoader.__init__ is patched
    assert first.num_workers == second.num_workers == 1


def test_another_plan_takes_the_place_of_the_first(plan_of: PlanOf) -> None:
    given = loader()
    hotlap.prepare(given, plan=plan_of(loader_workers=1))
    hotlap.prepare(given, plan=plan_of(zero_grad_to_none=True))
    assert given.num_workers == 0


def test_what_only_the_start_can_put_on_is_named(plan_of: PlanOf) -> None:
    variables = {"allocator": {"MALLOC_MMAP_THRESHOLD_": "4294967296"}}
    path = plan_of(variables, allocator="glibc-thresholds")
    with pytest.warns(UserWarning, match="started with MALLOC_MMAP_THRESHOLD_=4294967296"):
        hotlap.prepare(plan=path)


def test_other_hardware_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    write(path, plan(choice("loader_workers", 3)))
    given = loader()
    with pytest.warns(UserWarning, match="loader_workers of .* is left out: .* measured again"):
        hotlap.prepare(given, plan=path)
    assert given.num_workers == 0


def test_the_plan_is_looked_for_here(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    given = loader()
    monkeypatch.chdir(plan_of(loader_workers=1).parent)
    hotlap.prepare(given)
    assert given.num_workers == 1


def test_without_a_plan_all_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "train.py")])
    given = loader()
    with pytest.warns(UserWarning, match=r"no hotlap\.plan\.toml"):
        assert hotlap.prepare(given) is given


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no such file"):
        hotlap.prepare(plan=tmp_path / "none.toml")
