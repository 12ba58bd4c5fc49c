"""A plan as a unified diff of the user's script: what is edited, and what is told in words."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hotlap.tune.patch import patch
from hotlap.values.finding import Bounds
from hotlap.values.plan import Choice, Plan

SCRIPT = '''"""Ein Beispiel mit Umlauten: äöü."""
import torch
from torch.utils.data import DataLoader

torch.autograd.set_detect_anomaly(True)
loader = DataLoader(data, batch_size=4,
                    shuffle=True)
wert = "ä"; other = DataLoader(data, 8, num_workers=0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
'''


def plan(*choices: tuple[str, Any], **environment: str) -> Plan:
    made = tuple(
        Choice(knob, value, "identical", Bounds(None, None), None, "", environment, f"{knob}()")
        for knob, value in choices
    )
    return Plan(made, None, None, {}, "identical", (), "", "")


def applied(tmp_path: Path, text: str, diff: str) -> str:
    """Return the script after ``git apply``."""
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (tmp_path / "plan.diff").write_text(diff, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "plan.diff"], cwd=tmp_path, check=True)
    return (tmp_path / "train.py").read_text(encoding="utf-8")


def test_arguments_are_edited_where_the_calls_stand(tmp_path: Path) -> None:
    wanted = plan(("loader_workers", 2), ("fused_optimizer", True), ("anomaly_mode", False))
    after = applied(tmp_path, SCRIPT, patch(wanted, {"train.py": SCRIPT}))
    assert "shuffle=True, num_workers=2)" in after
    assert 'wert = "ä"; other = DataLoader(data, 8, num_workers=2)' in after
    assert "lr=1e-3, fused=True)" in after
    assert "set_detect_anomaly(False)" in after


def test_a_switch_stands_below_the_imports(tmp_path: Path) -> None:
    after = applied(tmp_path, SCRIPT, patch(plan(("flush_denormal", True)), {"train.py": SCRIPT}))
    assert "import DataLoader\n\nflush_denormal()\n" in after


def test_what_no_diff_can_say_is_told_in_words() -> None:
    said = patch(plan(("channels_last", True)), {"train.py": SCRIPT})
    assert "# channels_last = True has to be put in by hand:\n#   channels_last()" in said
    assert "---" not in said


def test_variables_are_an_environment_block() -> None:
    said = patch(plan(("allocator", "x"), LD_PRELOAD="/a b.so:"), {"train.py": SCRIPT})
    assert "#   export LD_PRELOAD='/a b.so:'" in said


def test_a_call_whose_arguments_are_not_seen_is_left_alone() -> None:
    text = "from torch.utils.data import DataLoader\nDataLoader(data, **given)\n"
    said = patch(plan(("loader_workers", 2)), {"train.py": text})
    assert "---" not in said
    assert "put in by hand" in said


def test_a_script_that_is_no_python_gives_words_only() -> None:
    assert "---" not in patch(plan(("loader_workers", 2)), {"train.py": "def ("})
