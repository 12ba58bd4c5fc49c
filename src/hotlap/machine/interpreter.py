"""The user's own Python, asked by child processes: which torch it has, and which decoders.

hotlap may live in another environment than the training, so nothing is imported here. Two questions
are put apart: a torch that crashes on import does not hide the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hotlap.errors import WrongUse

_MARK: Final = "hotlap-answer:"

_HEAD: Final = """
import sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
import json
def answer(found):
    sys.stdout.write("\\nhotlap-answer:" + json.dumps(found) + "\\n")
    sys.stdout.flush()
"""
"""The current folder leaves the path, as it would for a script: a file of the user's called
``random.py`` must not answer for the library."""

_ASK_PACKAGES: Final = (
    _HEAD
    + """
import os, platform, sysconfig
try:
    import importlib.metadata as metadata
except ImportError:
    metadata = None
found = {}
for one in metadata.distributions() if metadata else ():
    name = one.metadata["Name"] if one.metadata else None
    if name and name.lower().replace("_", "-") not in found:
        found[name.lower().replace("_", "-")] = one.version
answer({
    "executable": sys.executable, "version": platform.python_version(), "prefix": sys.prefix,
    "packages": found,
    "headers": os.path.isfile(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
    "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
})
"""
)

_ASK_TORCH: Final = (
    _HEAD
    + """
import torch
import importlib.util
def safe(function):
    try:
        return function()
    except Exception:
        return None
cuda = bool(torch.cuda.is_available())
backends = torch.backends
answer({
    "version": str(torch.__version__), "cuda": torch.version.cuda,
    "hip": getattr(torch.version, "hip", None), "cuda_available": cuda,
    "devices": safe(lambda: [
        [torch.cuda.get_device_name(i), list(torch.cuda.get_device_capability(i))]
        for i in range(torch.cuda.device_count())]) if cuda else [],
    "mps_available": safe(lambda: bool(backends.mps.is_available())),
    "threads": torch.get_num_threads(), "interop_threads": torch.get_num_interop_threads(),
    "mkl": safe(backends.mkl.is_available), "openmp": safe(backends.openmp.is_available),
    "onednn": safe(backends.mkldnn.is_available),
    "cpu_capability": safe(lambda: backends.cpu.get_cpu_capability()),
    "triton": importlib.util.find_spec("triton") is not None,
    "compiler": hasattr(torch, "compile"),
})
"""
)

_DECODERS: Final = {
    "pillow": "JPEG, PNG",
    "pillow-simd": "JPEG, PNG",
    "simplejpeg": "JPEG",
    "pyturbojpeg": "JPEG",
    "jpeg4py": "JPEG",
    "opencv-python": "JPEG, PNG, video",
    "opencv-python-headless": "JPEG, PNG, video",
    "opencv-contrib-python": "JPEG, PNG, video",
    "opencv-contrib-python-headless": "JPEG, PNG, video",
    "torchvision": "JPEG, PNG",
    "imagecodecs": "JPEG, PNG, TIFF",
    "kornia-rs": "JPEG, PNG",
    "torchcodec": "video, audio",
    "av": "video, audio",
    "decord": "video",
    "torchaudio": "audio",
    "soundfile": "audio",
}
"""Distributions that turn bytes into arrays, and what they decode."""


@dataclass(frozen=True)
class Python:
    """An interpreter that answered. packages: version by name (lower case, with hyphens).

    headers: ``Python.h`` is there, which ``torch.compile`` needs on the CPU. suffix: how files of
    compiled modules for it end; None: it does not tell.
    """

    executable: str
    version: str
    prefix: str
    headers: bool
    packages: Mapping[str, str] = field(repr=False)
    suffix: str | None = None


@dataclass(frozen=True)
class Torch:
    """A torch that could be imported; None: this torch does not tell.

    cuda, hip: versions it was built for; None without. devices: name and capability of each GPU.
    threads: intra-op. cpu_capability: the vector instructions that its CPU kernels take.
    compiler: whether ``torch.compile`` exists.
    """

    version: str
    cuda: str | None
    hip: str | None
    cuda_available: bool
    devices: tuple[tuple[str, tuple[int, int]], ...] | None
    mps_available: bool | None
    threads: int
    interop_threads: int
    mkl: bool | None
    openmp: bool | None
    onednn: bool | None
    cpu_capability: str | None
    triton: bool
    compiler: bool


def find_python(wanted: str | None = None) -> str | None:
    """Return the interpreter to ask: the one wanted, or ``python`` or ``python3`` on PATH.

    wanted: a path or a name on PATH. Returns None when none was wanted and PATH has none; raises
    WrongUse when the one wanted does not exist.
    """
    if wanted is None:
        return shutil.which("python") or shutil.which("python3")
    found = shutil.which(os.path.expanduser(wanted))
    if found is None:
        raise WrongUse(f"--python {wanted}: no program of this name; give a path or a name on PATH")
    return found


def ask(executable: str, question: str, timeout_s: float) -> tuple[Any, str | None]:
    """Run a question in an interpreter; return ``(answer, None)`` or ``(None, why not)``.

    The child gets the user's environment, so that it finds what a training would find.
    """
    environ = {name: value for name, value in os.environ.items() if name != "HOTLAP_HANDOFF"}
    try:
        code, stdout, stderr = _run([executable, "-c", question], environ, timeout_s)
    except subprocess.TimeoutExpired:
        return None, f"it did not answer within {timeout_s:g} s"
    except OSError as error:
        return None, f"{executable} does not start: {error.strerror or error}"
    for line in reversed(stdout.splitlines()):
        if line.startswith(_MARK):
            try:
                return json.loads(line[len(_MARK) :]), None
            except ValueError:
                break
    return None, _end_in_words(code, stderr)


def _run(command: list[str], environ: dict[str, str], timeout_s: float) -> tuple[int, str, str]:
    """Run a command in a session of its own; after the time limit the whole session is killed,
    since ``python`` may be a wrapper whose child holds the pipes open."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environ,
        start_new_session=True,
    ) as child:
        try:
            stdout, stderr = child.communicate(timeout=timeout_s)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
    return child.returncode, stdout, stderr


def _end_in_words(code: int, stderr: str) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"it was killed by {name}"
    lines = [line for line in stderr.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "it printed no error"
    return last if len(last) <= 300 else last[:297] + "..."


def ask_packages(executable: str, timeout_s: float = 30) -> tuple[Python | None, str | None]:
    """Return what an interpreter is and has installed, or None and why not."""
    found, because = ask(executable, _ASK_PACKAGES, timeout_s)
    if found is None:
        return None, because
    return Python(**found), None


def ask_torch(executable: str, timeout_s: float = 120) -> tuple[Torch | None, str | None]:
    """Import torch in an interpreter and return what it says, or None and why not.

    Cost: the import of torch (seconds; a minute from a cold network disk), and on a machine with
    GPUs a CUDA context for a moment.
    """
    found, because = ask(executable, _ASK_TORCH, timeout_s)
    if found is None:
        return None, because
    devices = found.pop("devices")
    if devices is not None:
        devices = tuple((name, (int(pair[0]), int(pair[1]))) for name, pair in devices)
    return Torch(devices=devices, **found), None


def decoders(packages: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return ``(name, version, what it decodes)`` of the decoders among installed packages."""
    found = [(n, packages[n], kinds) for n, kinds in _DECODERS.items() if n in packages]
    for name, version in sorted(packages.items()):
        if name.startswith("nvidia-dali-cuda"):
            found.append((name, version, "JPEG, video"))
    return tuple(found)


def find_compiler(environ: Mapping[str, str] = os.environ) -> tuple[str | None, str]:
    """Return the path of the C++ compiler that ``torch.compile`` takes on the CPU, and its name.

    The path is None when there is no such program. The name is torch's default unless ``CXX`` is
    set; other compilers are not tried, because torch does not try them either.
    """
    default = "clang++" if sys.platform == "darwin" else "g++"
    name = (environ.get("CXX") or default).split()[0]
    return shutil.which(name), name
