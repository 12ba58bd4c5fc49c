"""The catalogue of sites agrees with the sites, and every patch can be undone."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

from hotlap.sites import catalogue
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

FOLDER = Path(catalogue.__file__).parent
NO_SITES = {"__init__", "around", "catalogue", "entries", "hub", "patches", "steering"}


def test_every_site_is_in_the_catalogue_once_and_sorted() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - NO_SITES
    assert set(catalogue.SITES) == files
    assert list(catalogue.SITES) == sorted(catalogue.SITES)


def test_every_module_that_a_site_waits_for_is_watched() -> None:
    wanted = {name for site in catalogue.site_modules() for name in site.MODULES}
    assert set(catalogue.WATCHED) == wanted


def snapshot() -> dict[str, object]:
    from torch.optim import optimizer as optimizers
    from torch.utils.data import dataloader

    places: dict[str, object] = {
        f"{owner.__name__}.{name}": value
        for owner in (
            torch,
            torch.Tensor,
            torch.nn.Module,
            torch.autograd,
            torch.distributed,
            torch.optim.Optimizer,
            dataloader.DataLoader,
            dataloader._BaseDataLoaderIter,
            importlib.import_module("torch.utils.data._utils.fetch")._MapDatasetFetcher,
            importlib.import_module("multiprocessing.reduction").ForkingPickler,
        )
        for name, value in vars(owner).items()
        if name != "nan"  # differs from itself
    }
    places["hooks"] = (
        len(optimizers._global_optimizer_pre_hooks),
        len(optimizers._global_optimizer_post_hooks),
    )
    places["stdout"] = dict(vars(sys.stdout)) if hasattr(sys.stdout, "__dict__") else None
    return places


def test_installing_and_undoing_leaves_everything_as_it_was() -> None:
    faults: list[tuple[str, BaseException]] = []
    hub = Hub(lambda name, error: faults.append((name, error)))
    patches = Patches()
    for site in catalogue.site_modules():
        for channel in site.CHANNELS:
            hub.subscribe(channel)
    before = snapshot()
    for module in catalogue.WATCHED:
        if module in sys.modules:
            catalogue.install(
                module, hub, patches, lambda name, error: faults.append((name, error))
            )
    during = snapshot()
    patches.undo()
    after = snapshot()
    assert faults == []
    changed = {name for name, value in during.items() if before.get(name) != value}
    assert {"Module.__call__", "Tensor.item", "torch.autograd.backward", "hooks"} <= changed
    assert {name for name in {*before, *after} if before.get(name) != after.get(name)} == set()
    assert set(vars(torch.Tensor)) == {n[7:] for n in after if n.startswith("Tensor.")}


def test_a_patch_that_somebody_wrapped_after_us_stays() -> None:
    class Place:
        def call(self) -> str:
            return "theirs"

    patches = Patches()
    patches.set("site", Place, "call", lambda _: "ours")
    outer = lambda _: "outer"  # noqa: E731 - a plain function in place of a method
    Place.call = outer  # type: ignore[method-assign]  # what a library loaded later does
    patches.undo()
    assert Place.call is outer
