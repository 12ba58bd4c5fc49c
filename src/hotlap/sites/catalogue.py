"""All sites, and their installation when the module that they patch has been imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Final

from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

SITES: Final[tuple[str, ...]] = (
    "autograd",
    "checkpoint",
    "collectives",
    "compile",
    "data_fetcher",
    "data_loader",
    "dynamo_frames",
    "library_saves",
    "module_call",
    "module_mode",
    "optimizer_step",
    "pickler",
    "sample_fetch",
    "streams",
    "tensor_copy",
    "tensor_read",
    "trackers",
)

WATCHED: Final[tuple[str, ...]] = (
    "torch",
    "torch._dynamo.callback",
    "torch._dynamo.eval_frame",
    "torch._dynamo.output_graph",
    "torch.distributed.checkpoint",
    "accelerate.accelerator",
    "lightning.pytorch.trainer.trainer",
    "mlflow.tracking.fluent",
    "pytorch_lightning.trainer.trainer",
    "safetensors.torch",
    "tensorboardX.writer",
    "torch.utils.tensorboard.writer",
    "transformers.trainer",
    "wandb.sdk.wandb_run",
)
"""Modules after whose import a site may be installed (a test keeps it equal to the sites')."""


def site_modules() -> Iterator[ModuleType]:
    """Import and yield every site."""
    for name in SITES:
        yield importlib.import_module(f"hotlap.sites.{name}")


def install(
    imported: str,
    hub: Hub,
    patches: Patches,
    on_fault: Callable[[str, BaseException], None],
) -> None:
    """Install the sites that wait for module ``imported``. Never raises.

    A site that cannot be installed (torch changed under it) is undone, reported and skipped.
    """
    for name in SITES:
        channels = []
        try:
            site = importlib.import_module(f"hotlap.sites.{name}")
            if imported not in site.MODULES:
                continue
            channels = [hub.channel(channel) for channel in site.CHANNELS]
            if not any(channels):
                continue
            site.install(hub, patches)
            for channel in channels:
                channel.silence = _silencer(patches, channel.name)
        except Exception as error:
            for channel in channels:
                patches.undo(channel.name)
            on_fault(name, error)


def _silencer(patches: Patches, name: str) -> Callable[[], None]:
    return lambda: patches.undo(name)
