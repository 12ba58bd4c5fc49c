"""Importing torch with the door in place: the module, its loader and its errors are as without."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from unit.inject.stage import Stage
from unit.pythons import PYTHONS, python_or_skip

BASE = str(Path(sys.base_prefix) / "bin" / "python3")
"""The interpreter without the packages of the environment that the tests run in."""
NEW = [one for one in PYTHONS if one >= (3, 10)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Return a stage with a package called torch that is none."""
    made = Stage(tmp_path)
    made.write("libs/torch/__init__.py", "from torch import sub\nVALUE = 1\n")
    made.write("libs/torch/sub.py", "NAME = __name__\n")
    made.write("libs/torch/data.txt", "text\n")
    made.path = (tmp_path / "libs",)
    return made


LOOK = """\
import importlib, importlib.util, importlib.resources, inspect, pkgutil, sys
def show(name, spec):
    print(name, spec.name, spec.origin, spec.has_location, spec.cached, spec.parent,
          spec.submodule_search_locations, spec.loader_state)
before = importlib.util.find_spec("torch")
show("before", before)
print(before.loader.get_filename("torch"), before.loader.is_package("torch"))
print(importlib.util.find_spec("torch.sub").origin)
import torch
show("after", torch.__spec__)
print(type(torch.__loader__), torch.__spec__.loader is torch.__loader__, torch.__file__)
print(torch.VALUE, torch.sub.NAME, inspect.getsource(torch))
torch.VALUE = 2
print(importlib.reload(torch).VALUE, importlib.util.find_spec("torch").loader is torch.__loader__)
print(pkgutil.get_data("torch", "data.txt"), [m.name for m in pkgutil.iter_modules(torch.__path__)])
print((importlib.resources.files("torch") / "data.txt").read_text())
del sys.modules["torch"], sys.modules["torch.sub"]
import torch
print(torch.VALUE)
"""


@pytest.mark.parametrize("version", NEW)
def test_all_ways_to_look_at_the_module(stage: Stage, version: tuple[int, ...]) -> None:
    stage.write("train.py", LOOK)
    outcome = stage.same("train.py", python=python_or_skip(version))
    assert (outcome.code, outcome.err) == (0, "")
    # It is no torch that can be measured: noted in the run, nowhere else.
    assert [sorted(one) for one in stage.seen()] == [
        ["argv", "pid"],
        ["pid", "torch"],
        ["fault", "pid"],
    ]


BROKEN = {
    "import error": "raise ImportError('libfoo.so: cannot open shared object file')",
    "os error": "raise OSError('libcudart.so.12: cannot open shared object file')",
    "missing": "import a_module_that_is_not_there",
    "missing name": "from torch import not_there",
    "missing name elsewhere": "from json import not_there",
    "syntax": "this is no Python",
    "chained": "try:\n    {}['x']\nexcept KeyError as e:\n    raise RuntimeError('r') from e",
    "deep": "def f():\n    g()\ndef g():\n    raise ValueError('deep')\nf()",
    "in a submodule": "import torch.broken",
    "exit": "raise SystemExit('no licence')",
    "interrupt": "raise KeyboardInterrupt",
}


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_torch_that_breaks_half_way_breaks_as_without_us(
    stage: Stage, version: tuple[int, ...], text: str
) -> None:
    stage.write("libs/torch/__init__.py", f"VALUE = 1\n{text}\n")
    stage.write("libs/torch/broken.py", "raise ImportError('broken inside')\n")
    stage.write("train.py", "def main():\n    import torch\n\n\nmain()\n")
    python = python_or_skip(version)
    if version < (3, 11):
        # It raises again with the traceback that it had saved: our entry cannot be hidden.
        bare = stage.start("train.py", door=False, python=python)
        with_door = stage.start("train.py", door=True, python=python)
        assert (with_door.code, with_door.out) == (bare.code, bare.out)
        assert with_door.err.splitlines()[-1:] == bare.err.splitlines()[-1:]
        assert bare.code != 0
    else:
        assert stage.same("train.py", python=python).code != 0


def test_a_second_try_after_a_failed_import_is_listened_to(stage: Stage) -> None:
    stage.write(
        "libs/torch/__init__.py",
        "import builtins\nbuiltins.n = getattr(builtins, 'n', 0) + 1\nif builtins.n < 3:\n"
        "    raise ImportError(f'try {builtins.n}')\n",
    )
    stage.write(
        "train.py",
        "for _ in range(3):\n    try:\n        import torch\n"
        "    except ImportError as error:\n        print(error)\nprint(torch.__name__)\n",
    )
    assert stage.same("train.py").out == "try 1\ntry 2\ntorch\n"
    assert [one for one in stage.seen() if one.get("torch")]


def test_torch_that_is_not_there(stage: Stage) -> None:
    shutil.rmtree(stage.folder / "libs" / "torch")
    words = ("-c", "import importlib.util as u; print(u.find_spec('torch')); import torch")
    outcome = stage.same(*words, python=BASE)
    assert outcome.out == "None\n"
    assert outcome.err.endswith("ModuleNotFoundError: No module named 'torch'\n")


def test_torch_from_a_zip(stage: Stage) -> None:
    made = shutil.make_archive(str(stage.folder / "libs"), "zip", stage.folder / "libs")
    shutil.rmtree(stage.folder / "libs")
    stage.path = (Path(made),)
    stage.write("train.py", "import torch\nprint(torch.VALUE, torch.__file__, torch.__loader__)\n")
    assert stage.same("train.py").err == ""


def test_a_folder_called_torch_without_init(stage: Stage) -> None:
    shutil.rmtree(stage.folder / "libs" / "torch")
    (stage.folder / "libs" / "torch").mkdir()
    stage.write("train.py", "import torch\nprint(torch.__path__, torch.__spec__.origin)\n")
    outcome = stage.same("train.py", python=BASE)
    assert outcome.out.startswith("_NamespacePath")


def test_torch_imported_from_many_threads_at_once(stage: Stage) -> None:
    stage.write("libs/torch/__init__.py", "import time\ntime.sleep(0.05)\nVALUE = object()\n")
    stage.write(
        "train.py",
        "import threading\nfound = []\n"
        "def get():\n    import torch\n    found.append(torch.VALUE)\n"
        "threads = [threading.Thread(target=get) for _ in range(8)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\n"
        "print(len(found), len(set(map(id, found))))\n",
    )
    outcome = stage.same("train.py")
    assert (outcome.out, outcome.err) == ("8 1\n", "")
    assert len([one for one in stage.seen() if one.get("torch")]) == 1


FINDERS = """\
import sys
class Old:
    def find_module(self, name, path=None):
        return None
class Odd:
    pass
class Theirs:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("asked")
        return None
sys.meta_path[:0] = [Odd(), Theirs()] if sys.version_info >= (3, 12) else [Theirs()]
sys.meta_path.append(Old())
import torch
print(torch.VALUE)
"""


@pytest.mark.parametrize("version", NEW)
def test_finders_of_others_are_asked_and_odd_ones_are_passed(
    stage: Stage, version: tuple[int, ...]
) -> None:
    stage.write("train.py", FINDERS)
    stage.options = ("-W", "ignore")
    outcome = stage.start("train.py", door=True, python=python_or_skip(version))
    bare = stage.start("train.py", door=False, python=python_or_skip(version))
    assert (outcome.code, outcome.err) == (bare.code, bare.err)
    assert set(outcome.out.split()) == set(bare.out.split())


def test_a_lazy_loader_stays_lazy(stage: Stage) -> None:
    stage.write("libs/torch/__init__.py", "print('loaded')\nVALUE = 1\n")
    stage.write(
        "train.py",
        "import importlib.util as u, sys\nspec = u.find_spec('torch')\n"
        "spec.loader = u.LazyLoader(spec.loader)\nmodule = u.module_from_spec(spec)\n"
        "sys.modules['torch'] = module\nspec.loader.exec_module(module)\nprint('made')\n"
        "print(module.VALUE)\n",
    )
    assert stage.same("train.py").out == "made\nloaded\n1\n"


def test_a_package_of_the_name_in_the_project_itself(stage: Stage) -> None:
    stage.path = ()
    stage.write("torch.py", "VALUE = 'a file of the user'\n")
    stage.write("train.py", "import torch\nprint(torch.VALUE)\n")
    assert stage.same("train.py").out == "a file of the user\n"
