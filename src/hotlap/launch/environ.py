"""The child's environment, and what of an environment may be recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from hotlap.errors import NotMeasurable
from hotlap.values.handoff import VARIABLE
from hotlap.values.secrets import redacted_value

_SITE_DIR_ENDS_WITH: Final = ("hotlap", "inject", "site")

_RECORDED_NAMES: Final = frozenset(
    "CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES "
    "ROCR_VISIBLE_DEVICES CUBLAS_WORKSPACE_CONFIG GOMP_CPU_AFFINITY LD_PRELOAD LD_LIBRARY_PATH "
    "OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS VECLIB_MAXIMUM_THREADS TOKENIZERS_PARALLELISM "
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK NODE_RANK MASTER_PORT PYTHONPATH "
    "PYTHONHASHSEED PYTHONUNBUFFERED PYTHONOPTIMIZE PYTHONMALLOC PYTHONNOUSERSITE VIRTUAL_ENV "
    "CONDA_PREFIX SLURM_JOB_ID SLURM_STEP_ID SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS "
    "SLURM_STEP_NUM_TASKS SLURM_JOB_NUM_NODES SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_GPUS "
    "SLURM_RESTART_COUNT OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_SIZE "
    "PMI_RANK PMI_SIZE".split()
)
_RECORDED_PREFIXES: Final = (
    "OMP_",
    "MKL_",
    "KMP_",
    "NCCL_",
    "GLOO_",
    "TORCH",
    "PYTORCH_",
    "TRITON_",
    "CUDNN_",
    "MALLOC_",
    "JEMALLOC_",
    "TCMALLOC_",
)


@dataclass(frozen=True)
class RankInfo:
    """Which process of how many a launcher made this one; None where it does not say.

    launcher: ``torchrun``, ``slurm``, ``openmpi``, ``mpi``, ``horovod`` or ``variables``
        (RANK and WORLD_SIZE set by an unknown hand).
    """

    launcher: str
    rank: int | None
    local_rank: int | None
    world_size: int | None


@dataclass(frozen=True)
class _Launcher:
    """Variables of one launcher; the first that is set counts. ``mark``: any one tells it."""

    name: str
    mark: tuple[str, ...]
    rank: tuple[str, ...]
    local_rank: tuple[str, ...]
    world_size: tuple[str, ...]


_LAUNCHERS: Final = (
    _Launcher("torchrun", ("TORCHELASTIC_RUN_ID",), ("RANK",), ("LOCAL_RANK",), ("WORLD_SIZE",)),
    _Launcher("variables", ("RANK",), ("RANK",), ("LOCAL_RANK",), ("WORLD_SIZE",)),
    _Launcher(
        "openmpi",
        ("OMPI_COMM_WORLD_RANK",),
        ("OMPI_COMM_WORLD_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_SIZE",),
    ),
    _Launcher(
        "horovod",
        ("HOROVOD_RANK",),
        ("HOROVOD_RANK",),
        ("HOROVOD_LOCAL_RANK",),
        ("HOROVOD_SIZE",),
    ),
    _Launcher(
        "mpi",
        ("PMI_RANK", "MV2_COMM_WORLD_RANK"),
        ("PMI_RANK", "MV2_COMM_WORLD_RANK"),
        ("MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"),
        ("PMI_SIZE", "MV2_COMM_WORLD_SIZE"),
    ),
    # Only inside a job step (srun): the script of a batch job carries SLURM_PROCID=0 as well,
    # but is one process, whatever SLURM_NTASKS says.
    _Launcher(
        "slurm",
        ("SLURM_STEP_ID", "SLURM_STEPID"),
        ("SLURM_PROCID",),
        ("SLURM_LOCALID",),
        ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    ),
)
"""Nearest launcher first: torchrun inside an srun step is torchrun's rank."""


def child_environ(environ: Mapping[str, str], site_dir: Path, handoff: Path) -> dict[str, str]:
    """Return the environment for the user's command.

    environ: ours, as it was given to us (see ``given_environ``).
    site_dir: the folder with our ``sitecustomize.py``; goes to the front of PYTHONPATH. The rest
        of PYTHONPATH stays, empty components (the current folder) too; the folder of an outer
        hotlap is taken out, because the inner one measures.
    handoff: path of the handoff file.
    Raises NotMeasurable when PYTHONPATH cannot carry the folder (a ``:`` in its path).
    """
    site = str(site_dir.absolute())
    if os.pathsep in site:
        raise NotMeasurable(
            f"hotlap is installed in {site!r}, and a path with {os.pathsep!r} cannot stand in "
            "PYTHONPATH. Install it into a folder without that character."
        )
    # An empty PYTHONPATH means none; appended after a separator it would mean the current folder.
    existing = environ.get("PYTHONPATH", "")
    components = existing.split(os.pathsep) if existing else []
    kept = [part for part in components if part != site and not _is_site_dir(part)]
    child = dict(environ)
    child["PYTHONPATH"] = os.pathsep.join([site, *kept])
    child[VARIABLE] = str(handoff.absolute())
    return child


def given_environ(environ: Mapping[str, str], at_start: bytes | None) -> dict[str, str]:
    """Return the environment that our process was given, without what Python itself added.

    In the C locale Python sets LC_CTYPE in its own environment at start (PEP 538); a command
    started without us would not see it.

    environ: ``os.environ``.
    at_start: content of ``/proc/self/environ``; None where there is none (then nothing is undone).
    """
    given = dict(environ)
    if at_start is not None and not any(
        entry.startswith(b"LC_CTYPE=") for entry in at_start.split(b"\0")
    ):
        given.pop("LC_CTYPE", None)
    return given


def read_given_environ() -> dict[str, str]:
    """Return ``given_environ`` of this process."""
    try:
        at_start = Path("/proc/self/environ").read_bytes() or None
    except OSError:
        at_start = None
    return given_environ(os.environ, at_start)


def rank_info(environ: Mapping[str, str]) -> RankInfo | None:
    """Return what a launcher's variables say of this process; None when none are set."""
    for launcher in _LAUNCHERS:
        if any(name in environ for name in launcher.mark):
            return RankInfo(
                launcher=launcher.name,
                rank=_first_int(environ, launcher.rank),
                local_rank=_first_int(environ, launcher.local_rank),
                world_size=_first_int(environ, launcher.world_size),
            )
    return None


def recorded_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are recorded with a run: those that change a training's speed.

    An allow-list of names, sorted; what looks like a secret in their values is hidden.
    """
    return {
        name: redacted_value(name, environ[name])
        for name in sorted(environ)
        if name in _RECORDED_NAMES or name.startswith(_RECORDED_PREFIXES)
    }


def _is_site_dir(component: str) -> bool:
    """Tell whether a component of PYTHONPATH is the site folder of some hotlap."""
    return PurePath(component).parts[-3:] == _SITE_DIR_ENDS_WITH


def _first_int(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        try:
            return int(environ[name])
        except (KeyError, ValueError):
            continue
    return None
