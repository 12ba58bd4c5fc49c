"""What the user's code sets is found in its text, whatever it calls things."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hotlap.experiment.settings import settings_in
from hotlap.experiment.source_files import SourceFiles

IMPORTS = """\
import gc, os, time, copy
import numpy as np
import torch
import torch as th
from torch import nn, optim
from torch.optim import AdamW
from torch.optim.sgd import SGD as Descent
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader as Loader
from torch.autograd import set_detect_anomaly as anomaly
"""


def found(folder: Path, text: str) -> list[tuple[str, Any]]:
    """Return names and values of what a text sets, after the usual imports."""
    (folder / "train.py").write_text(IMPORTS + dedent(text))
    return [(one.name, one.value) for one in settings_in(SourceFiles(folder), "train.py")]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("torch.autograd.set_detect_anomaly(True)", [("detect_anomaly", True)]),
        ("torch.autograd.set_detect_anomaly(mode=False)", [("detect_anomaly", False)]),
        ("anomaly(debug)", [("detect_anomaly", "debug")]),
        ("with th.autograd.detect_anomaly(): pass", [("detect_anomaly", True)]),
        ("torch.set_num_threads(4)", [("set_num_threads", 4)]),
        ("torch.set_num_threads(os.cpu_count())", [("set_num_threads", "os.cpu_count()")]),
        ("torch.set_default_dtype(torch.float64)", [("float64", "torch.float64")]),
        ("x = x.double()", [("double", True)]),
        ("x = x.to(torch.double)", [("float64", "torch.double")]),
        ("x = np.zeros(3, dtype=np.float64)", [("float64", "numpy.float64")]),
        ("x = x.astype('float64')", [("float64", "float64")]),
        ("x = row.half", []),
        ("os.environ['OMP_NUM_THREADS'] = '1'", [("OMP_NUM_THREADS", "1")]),
        ("os.environ.setdefault('MKL_NUM_THREADS', '2')", [("MKL_NUM_THREADS", "2")]),
        ("os.environ['PASSWORD'] = 'x'", []),
        ("torch.backends.cudnn.benchmark = True", [("backends.cudnn.benchmark", True)]),
        (
            "torch.backends.cuda.matmul.allow_tf32 = fast",
            [("backends.cuda.matmul.allow_tf32", "fast")],
        ),
        ("settings.backends.cudnn.benchmark = True", []),
        ("loss.backward(retain_graph=True)", [("retain_graph", True)]),
        ("torch.autograd.grad(a, b, create_graph=True)", [("create_graph", True)]),
        ("optimizer.zero_grad(set_to_none=False)", [("set_to_none", False)]),
        ("optimizer.zero_grad(False)", [("set_to_none", False)]),
        ("optimizer.zero_grad()", []),
        ("net = torch.compile(net)", [("compile", True)]),
        ("net = torch.compile(net, mode='max-autotune')", [("compile", "max-autotune")]),
        ("net.compile()", [("compile", True)]),
        ("import re; p = re.compile('a')", []),
        ("gc.collect()", [("gc_collect", None)]),
        ("store.collect()", []),
        ("torch.save(net.state_dict(), 'last.pt')", [("save", "last.pt")]),
        ("image.save('a.png')", []),
        ("best = copy.deepcopy(net)", [("deepcopy", "net")]),
        ("time.sleep(0.1)", [("sleep", 0.1)]),
        ("print(loss)", [("print", True)]),
        ("net.eval()", [("eval", True)]),
        ("frame.eval('a + b')", []),
        ("eval('1')", []),
        ("with torch.no_grad(): pass", [("no_grad", True)]),
        ("with torch.inference_mode(False): pass", [("inference_mode", False)]),
        ("with ddp.no_sync(): pass", [("no_sync", True)]),
        (
            "with torch.autocast('cuda', dtype=torch.bfloat16): pass",
            [("autocast", "torch.bfloat16"), ("bfloat16", "torch.bfloat16")],
        ),
        ("DDP(net, find_unused_parameters=True)", [("find_unused_parameters", True)]),
        ("torch.use_deterministic_algorithms(True)", [("use_deterministic_algorithms", True)]),
    ],
)
def test_what_is_set(tmp_path: Path, text: str, settings: list[tuple[str, Any]]) -> None:
    if "set_default_dtype" in text:
        settings = [*settings, ("set_default_dtype", "torch.float64")]
    assert found(tmp_path, text) == settings


def test_arguments_of_loaders(tmp_path: Path) -> None:
    text = """
        Loader(data, 32, True, num_workers=4, persistent_workers=False, pin_memory=on)
        torch.utils.data.DataLoader(data, 8, False, sampler)
        DataLoader(data, *rest, num_workers=N)
        StatefulDataLoader(data, num_workers=2)
        read_csv(data, num_workers=9)
    """
    assert found(tmp_path, text) == [
        ("batch_size", 32),
        ("num_workers", 4),
        ("persistent_workers", False),
        ("pin_memory", "on"),
        ("shuffle", True),
        ("batch_size", 8),
        ("sampler", "sampler"),
        ("shuffle", False),
        ("num_workers", "N"),
        ("num_workers", 2),
    ]


def test_optimizers(tmp_path: Path) -> None:
    text = """
        AdamW(net.parameters(), lr=1e-3, fused=True)
        optim.Adam(net.parameters(), foreach=False)
        Descent(net.parameters(), 0.1)
        mine.Adam(net.parameters(), foreach=False)
    """
    assert found(tmp_path, text) == [
        ("fused", True),
        ("optimizer", "AdamW"),
        ("foreach", False),
        ("optimizer", "Adam"),
        ("optimizer", "SGD"),
    ]


def test_places_name_line_and_function(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        dedent("""\
            import torch
            torch.set_num_threads(1)

            class Rows:
                def __getitem__(self, i):
                    torch.set_num_threads(2)

            @torch.no_grad()
            def evaluate():
                run(lambda: torch.set_num_threads(3))

            @torch.inference_mode
            def check():
                pass
            """)
    )
    settings = list(settings_in(SourceFiles(tmp_path), "train.py"))
    assert [(one.name, one.value, one.place.line, one.place.function) for one in settings] == [
        ("set_num_threads", 1, 2, "<module>"),
        ("set_num_threads", 2, 6, "__getitem__"),
        ("no_grad", True, 8, "evaluate"),
        ("set_num_threads", 3, 10, "<lambda>"),
        ("inference_mode", True, 13, "<module>"),
    ]


def test_a_sleep_after_an_error_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        dedent("""\
            import time
            def call():
                try:
                    time.sleep(1)
                except OSError:
                    if again:
                        time.sleep(2)
                    return lambda: time.sleep(3)
            """)
    )
    settings = list(settings_in(SourceFiles(tmp_path), "train.py"))
    assert [(one.name, one.value) for one in settings] == [
        ("sleep", 1),
        ("sleep", 2),
        ("sleep_after_error", 2),
        ("sleep", 3),
    ]


def test_an_argument_stands_on_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        dedent("""\
            from transformers import TrainingArguments
            arguments = TrainingArguments(
                output_dir="out",
                gradient_checkpointing=True,
                unknown=3,
            )
            print(gradient_checkpointing=False)
            """)
    )
    settings = list(settings_in(SourceFiles(tmp_path), "train.py"))
    assert [(one.name, one.value, one.place.line) for one in settings] == [
        ("gradient_checkpointing", True, 4),
        ("print", True, 7),
    ]


@pytest.mark.parametrize("text", ["def f(:\n", "\x00", "", "# nothing\n", "torch.set_num_threads("])
def test_texts_that_set_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert list(settings_in(SourceFiles(tmp_path), "train.py")) == []


def test_nothing_of_the_users_is_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import pathlib\npathlib.Path(__file__).unlink()\nprint(1)\n"
    )
    assert [one.name for one in settings_in(SourceFiles(tmp_path), "train.py")] == ["print"]
    assert (tmp_path / "train.py").exists()
