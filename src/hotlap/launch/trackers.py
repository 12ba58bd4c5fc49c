"""Experiment trackers stay offline in a trial: their own variables say so."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path


def offline(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variables that keep trackers from talking to their servers.

    environ: what the user gave; a tracker that was switched off there stays off.
    folder: where trackers that need a folder get one; it belongs to the trial.
    Model hubs (Hugging Face, torch.hub) are left alone: offline they may load something else.
    """
    wished = {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(),
        "WANDB_DIR": str(folder),
        "COMET_MODE": "OFFLINE",
        "COMET_START_ONLINE": "0",
        "COMET_OFFLINE_DIRECTORY": str(folder),
        "NEPTUNE_MODE": "offline",
        "CLEARML_OFFLINE_MODE": "1",
        "SWANLAB_MODE": "offline",
    }
    if environ.get("WANDB_MODE") in ("disabled", "dryrun") or environ.get("WANDB_DISABLED"):
        del wished["WANDB_MODE"]
    if environ.get("COMET_MODE", "").lower() == "disabled":
        del wished["COMET_MODE"]
    if environ.get("NEPTUNE_MODE") in ("debug", "read-only"):
        del wished["NEPTUNE_MODE"]
    if environ.get("SWANLAB_MODE") == "disabled":
        del wished["SWANLAB_MODE"]
    return wished


def fresh_rendezvous(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that gives torchrun a port of its own in this trial.

    An option on torchrun's command line counts more; a variable that the user set stays.
    """
    if "PET_MASTER_PORT" in environ:
        return {}
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return {"PET_MASTER_PORT": str(one.getsockname()[1])}
