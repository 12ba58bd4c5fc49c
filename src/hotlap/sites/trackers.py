"""Experiment trackers, called from the training loop: TensorBoard, Weights & Biases, MLflow.

Channel ``write``: subject = ("tracker", None). Only what the loop waits for is seen: most of them
write in threads or processes of their own.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.sites.entries import Entries, wrap_entries
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

_SUMMARY_WRITER: Final = tuple(
    ("SummaryWriter", name)
    for name in (
        "add_scalar",
        "add_scalars",
        "add_histogram",
        "add_image",
        "add_images",
        "add_figure",
        "add_video",
        "add_text",
        "add_graph",
        "add_embedding",
        "flush",
    )
)
ENTRIES: Final[Entries] = {
    "mlflow.tracking.fluent": ((None, "log_metric"), (None, "log_metrics")),
    "tensorboardX.writer": _SUMMARY_WRITER,
    "torch.utils.tensorboard.writer": _SUMMARY_WRITER,
    "wandb.sdk.wandb_run": (("Run", "log"),),
}

MODULES = tuple(ENTRIES)
CHANNELS = ("write",)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the calls of every tracker that has been imported by now."""
    wrap_entries(ENTRIES, hub.channel("write"), _tracker, patches)


def _tracker(args: tuple[Any, ...]) -> tuple[str, int | None]:  # noqa: ARG001 - a subject picker
    return "tracker", None
