"""The child's environment, ranks, and what of an environment is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.errors import NotMeasurable
from hotlap.launch.environ import (
    RankInfo,
    child_environ,
    given_environ,
    rank_info,
    recorded_environ,
)
from hotlap.values.handoff import VARIABLE
from hotlap.values.secrets import HIDDEN

SITE = Path("/opt/hotlap/inject/site")
OUTER = "/home/me/.local/hotlap/inject/site"
HANDOFF = Path("/run/handoff.json")


@pytest.mark.parametrize(
    ("given", "child"),
    [
        (None, f"{SITE}"),
        ("", f"{SITE}"),
        ("/a:/b", f"{SITE}:/a:/b"),
        (":/a", f"{SITE}::/a"),
        ("/a:", f"{SITE}:/a:"),
        (f"{OUTER}:/a", f"{SITE}:/a"),
        (f"{OUTER}/:/a", f"{SITE}:/a"),
        (f"{SITE}", f"{SITE}"),
        (f"{SITE}:", f"{SITE}:"),
        (f"/a:{SITE}:/b", f"{SITE}:/a:/b"),
        ("/hotlap/inject/sites", f"{SITE}:/hotlap/inject/sites"),
    ],
)
def test_pythonpath(given: str | None, child: str) -> None:
    environ = {} if given is None else {"PYTHONPATH": given}
    assert child_environ(environ, SITE, HANDOFF)["PYTHONPATH"] == child


def test_nothing_else_changes() -> None:
    environ = {"A": "1", "LD_PRELOAD": "x", VARIABLE: "/outer/handoff.json"}
    before = dict(environ)
    child = child_environ(environ, SITE, HANDOFF)
    assert environ == before
    assert child == {"A": "1", "LD_PRELOAD": "x", "PYTHONPATH": str(SITE), VARIABLE: str(HANDOFF)}


def test_a_colon_in_our_path_is_said() -> None:
    with pytest.raises(NotMeasurable, match="PYTHONPATH"):
        child_environ({}, Path("/a:b/hotlap/inject/site"), HANDOFF)


def test_what_python_added_at_its_start_is_taken_out() -> None:
    ours = {"A": "1", "LC_CTYPE": "C.UTF-8"}
    assert given_environ(ours, b"A=1\0") == {"A": "1"}
    assert given_environ(ours, b"A=1\0LC_CTYPE=C.UTF-8\0") == ours
    assert given_environ(ours, None) == ours


@pytest.mark.parametrize(
    ("environ", "info"),
    [
        ({}, None),
        ({"WORLD_SIZE": "4"}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, None),
        (
            {"TORCHELASTIC_RUN_ID": "x", "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"},
            RankInfo("torchrun", 3, 1, 4),
        ),
        ({"RANK": "3", "WORLD_SIZE": "4"}, RankInfo("variables", 3, None, 4)),
        (
            {"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8"},
            RankInfo("slurm", 5, 1, 8),
        ),
        (
            {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "RANK": "9", "WORLD_SIZE": "16"},
            RankInfo("variables", 9, None, 16),
        ),
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
            RankInfo("openmpi", 1, None, 2),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, RankInfo("mpi", 1, None, 2)),
        ({"RANK": "many"}, RankInfo("variables", None, None, None)),
    ],
)
def test_rank(environ: dict[str, str], info: RankInfo | None) -> None:
    assert rank_info(environ) == info


def test_recorded_by_allow_list_and_redacted() -> None:
    environ = {
        "OMP_NUM_THREADS": "2",
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
        "SLURM_JOB_ID": "7",
        "TORCH_HOME": "https://me:pw@host/x",
        "PYTORCH_API_KEY": "abc",
        "HOME": "/home/me",
        "WANDB_API_KEY": "abc",
        "SLURM_JWT": "abc",
    }
    assert recorded_environ(environ) == {
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
        "OMP_NUM_THREADS": "2",
        "PYTORCH_API_KEY": HIDDEN,
        "SLURM_JOB_ID": "7",
        "TORCH_HOME": f"https://me:{HIDDEN}@host/x",
    }
