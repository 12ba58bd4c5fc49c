"""What a script of unusual habits prints, raises and computes is the same under hotlap as bare."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TRAIN = """
import sys, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.randn(24, 4)

def train(batches):
    for batch in batches:
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss
"""

SCRIPTS = {
    "a sampler whose len draws": """
class Drawn(Sampler):
    def batches(self):
        order = torch.randperm(24).tolist()
        return [order[i : i + 4] for i in range(0, 24, 4)]
    def __iter__(self):
        return iter(self.batches())
    def __len__(self):
        return len(self.batches())
for _ in range(2):
    train(DataLoader(rows, batch_sampler=Drawn()))
print(model.weight.tolist(), torch.rand(2).tolist())
""",
    "lengths that print": """
class Rows(Dataset):
    def __len__(self):
        print("len of the data set")
        return 24
    def __getitem__(self, index):
        return rows[index]
class Stream(IterableDataset):
    def __len__(self):
        print("len of the stream")
        return 3
    def __iter__(self):
        return iter(rows)
class Loader(DataLoader):
    def __len__(self):
        print("len of the loader")
        return 3
train(DataLoader(Rows(), batch_size=4))
train(DataLoader(Stream(), batch_size=4))
train(Loader(rows, batch_size=4))
""",
    "loaders that are all equal, have no hash, give iterators of their own": """
class Equal(DataLoader):
    __eq__ = lambda self, other: True
    __hash__ = None
class Own(DataLoader):
    def _get_iterator(self):
        return iter(rows.split(4))
for _ in range(2):
    train(Equal(rows, batch_size=4))
train(Own(rows, batch_size=4))
print(model.weight.tolist())
""",
    "a compiled function that steps the optimizer": """
import logging
torch._logging.set_logs(all=logging.ERROR)
graphs = []
def counting(graph, _):
    graphs.append(graph)
    return graph.forward
adam = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
@torch.compile(backend=counting)
def update():
    adam.step()
for batch in rows.split(4):
    adam.zero_grad()
    model(batch).pow(2).mean().backward()
    update()
print(len(graphs), model.weight.tolist())
""",
    "a warning names the user's line": """
loss = train(rows.split(4))
print(float(loss), float(loss))
def choose(x):
    return x if x.sum() > 0 else -x
torch.jit.trace(choose, torch.ones(2))
""",
    "warnings for the caller name the user's line": """
class Longer(IterableDataset):
    def __repr__(self):
        return "longer"
    def __len__(self):
        return 3
    def __iter__(self):
        return iter(rows)
batches = DataLoader(Longer(), batch_size=4)
print(len(batches))
train(batches)
x = torch.ones(2, requires_grad=True)
torch.autograd.grad((x**3).sum(), x, only_inputs=False)
torch.autograd.backward((x**3).sum(), grad_variables=torch.tensor(1.0))
""",
    "the methods of Tensor are torch's own": """
import pickle
from torch.overrides import TorchFunctionMode
class Show(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print(function)
        return function(*args, **(kwargs or {}))
for name in ("item", "cpu", "numpy", "tolist", "__bool__", "__float__"):
    method = getattr(torch.Tensor, name)
    print(method, pickle.loads(pickle.dumps(method)) is method)
loss = train(rows.split(4)).detach()
with Show():
    loss.item(), loss.cpu(), loss.tolist(), bool(loss), float(loss), int(loss)
""",
    "a log record that cannot be formatted": """
import logging
logging.basicConfig(level=logging.INFO)
train(rows.split(4))
logging.info("loss %d", "high")
""",
    "a mode that is none": """
train(rows.split(4))
torch.nn.Sequential(model).train("yes")
""",
    "a stream that hands attributes on": """
import sys
class Loud:
    def __init__(self, stream):
        self.__dict__["stream"] = stream
    def write(self, text):
        return self.stream.write(text.upper())
    def __getattr__(self, name):
        return getattr(self.stream, name)
    def __setattr__(self, name, value):
        setattr(self.stream, name, value)
sys.stdout = Loud(sys.stdout)
# TRAIN
print(train(rows.split(4)).item())
""",
}


def ran(folder: Path, *before: str) -> tuple[int, bytes, bytes]:
    environ = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [*before, sys.executable, "train.py"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def under_hotlap(folder: Path) -> tuple[int, bytes, bytes]:
    run = str(folder / "run")
    return ran(folder, sys.executable, "-m", "hotlap", "run", "--quiet", "-o", run)


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_bytes_and_exit_code(name: str, tmp_path: Path) -> None:
    text = SCRIPTS[name]
    text = text.replace("# TRAIN\n", TRAIN) if "# TRAIN" in text else TRAIN + text
    (tmp_path / "train.py").write_text(text)
    if sys.version_info < (3, 11) and name == "a mode that is none":
        pytest.skip("Python 3.10 shows a frame of ours")
    assert under_hotlap(tmp_path) == ran(tmp_path)


@pytest.mark.parametrize("order", ["import hotlap, torch", "import torch, hotlap"])
def test_a_module_of_the_same_name_stays_the_script_s(order: str, tmp_path: Path) -> None:
    (tmp_path / "hotlap.py").write_text("mine = 'of the script'\n")
    (tmp_path / "train.py").write_text(f"{order}\nprint(hotlap.mine)\n")
    run = tmp_path / "elsewhere"
    hotlap = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    with_hotlap = ran(tmp_path, *hotlap, "-m", "hotlap", "run", "--quiet", "-o", str(run))
    assert with_hotlap == ran(tmp_path) == (0, b"of the script\n", b"")
    assert "has the name hotlap" in (run / "report.txt").read_text()


def test_the_report_is_written_where_the_locale_is_not_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(TRAIN + "train(rows.split(4))\n")
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)
    assert under_hotlap(tmp_path) == (0, b"", b"")
    assert "Step" in (tmp_path / "run" / "report.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("stdout", [">&-", ">/dev/full"])
def test_output_that_goes_nowhere_is_said_in_words(stdout: str, tmp_path: Path) -> None:
    hotlap = f"{sys.executable} -m hotlap"
    text = f"{hotlap} run --quiet -o run true && {hotlap} report run {stdout}"
    done = subprocess.run(["sh", "-c", text], cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"hotlap: nothing can be written to stdout (")
    assert done.stderr.count(b"\n") == 1
