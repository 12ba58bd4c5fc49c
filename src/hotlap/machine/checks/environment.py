"""Checks of the user's Python and what is installed beside it."""

from __future__ import annotations

import os
from typing import Final

from hotlap.machine.allocators import name_of
from hotlap.machine.checks.check import Check, cores
from hotlap.machine.checks.surroundings import NO_PYTHON, Surroundings
from hotlap.machine.interpreter import Torch
from hotlap.machine.interpreter import decoders as decoders_of

_OLDEST_PYTHON: Final = (3, 10)
_OLDEST_TORCH: Final = (2, 4)

_FAST_JPEG: Final = (
    "simplejpeg pyturbojpeg jpeg4py opencv imagecodecs torchvision kornia-rs nvidia-dali".split()
)
"""Beginnings of the names of packages that decode JPEG without pillow."""


def _version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: ``2.13.0+cpu`` is (2, 13, 0)."""
    numbers = []
    for part in text.partition("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def python(seen: Surroundings) -> Check:
    """The interpreter that a training would be started with."""
    found = seen.python
    if found is None:
        return Check(
            "python",
            "absent" if seen.python_because == NO_PYTHON else "unknown",
            seen.python_because or "it does not answer",
            "hotlap run starts the first python on PATH, as your shell does",
            "activate the environment of the training, or name one with --python",
        )
    words = f"{found.version} at {found.executable}"
    if _version(found.version) < _OLDEST_PYTHON:
        consequence = "hotlap measures inside Python 3.10 and newer"
        return Check("python", "limited", words, consequence, "an environment with a newer Python")
    if seen.python_named:
        consequence = "looked at because --python names it; hotlap run starts the first on PATH"
        return Check("python", "good", words, consequence)
    return Check("python", "good", words, "the first on PATH: this is what hotlap run starts")


def torch(seen: Surroundings) -> Check:
    """The torch of that interpreter, and whether it fits the machine."""
    found = seen.torch
    if found is None:
        return _no_torch(seen)
    words = f"{found.version}, built for {_built_for(found)}"
    if _version(found.version) < _OLDEST_TORCH:
        fix = "pip install --upgrade torch"
        return Check("torch", "limited", words, "hotlap is made for torch 2.4 and newer", fix)
    has_gpu = bool(seen.gpus or seen.driver_models)
    if has_gpu and not found.cuda_available:
        why = "this build has no CUDA" if not found.cuda else "its CUDA and the driver do not match"
        return Check(
            "torch",
            "limited",
            words,
            f"there is a GPU that torch does not use: {why}",
            "install the build for your driver: https://pytorch.org/get-started/locally/",
        )
    device = "GPU" if found.cuda_available or found.mps_available else "CPU"
    return Check("torch", "good", words, f"trainings can run on the {device}")


def _built_for(torch: Torch) -> str:
    device = f"CUDA {torch.cuda}" if torch.cuda else None
    device = f"ROCm {torch.hip}" if torch.hip else device
    if device is None:
        return "Metal, which works" if torch.mps_available else "the CPU only"
    return f"{device}, which {'works' if torch.cuda_available else 'cannot be used here'}"


def _no_torch(seen: Surroundings) -> Check:
    because = seen.torch_because or "it does not answer"
    if seen.python is None:
        return Check("torch", "unknown", because, "no Python answered, so no torch was found")
    consequence = "no training can start with this Python"
    if "No module named 'torch'" in because and "torch" not in seen.python.packages:
        fix = "activate the environment of the training, or name its Python with --python"
        words = f"not installed in {seen.python.executable}"
        return Check("torch", "absent", words, consequence, fix)
    version = seen.python.packages.get("torch")
    words = f"installed ({version}), but" if version else "not importable:"
    return Check(
        "torch",
        "limited",
        f"{words} its import fails: {because}",
        consequence,
        f"see it whole: {seen.python.executable} -c 'import torch'",
    )


def threads(seen: Surroundings) -> Check:
    """torch's threads for CPU work against the cores that can be used."""
    name, found, allowed = "torch threads", seen.torch, seen.cores.allowed
    if found is None or allowed is None:
        because = "no torch answered" if found is None else "usable cores are not known"
        return Check(name, "unknown", because, "whether threads fit the cores cannot be said")
    libraries = {"MKL": found.mkl, "oneDNN": found.onednn, "OpenMP": found.openmp}
    with_words = [library for library, there in libraries.items() if there]
    words = f"{found.threads} for CPU work, {cores(allowed)} usable"
    words += f"; {', '.join(with_words)}" if with_words else ""
    setting = seen.environ.get("OMP_NUM_THREADS")
    words += f"; OMP_NUM_THREADS={setting}" if setting else ""
    if found.threads > allowed:
        return Check(
            name,
            "limited",
            words,
            "more threads than cores: they wait for each other inside every operation",
            f"export OMP_NUM_THREADS={max(1, int(allowed))}",
        )
    if found.threads == 1 and allowed >= 2:
        fix = "unset OMP_NUM_THREADS" if setting else "torch.set_num_threads(...)"
        return Check(name, "limited", words, "CPU work of torch uses one core only", fix)
    return Check(name, "good", words, "loader workers take their share of the same cores")


def hooks(seen: Surroundings) -> Check:
    """Whether hotlap's hooks are compiled for that Python."""
    name, found = "compiled hooks", seen.python
    if found is None or _version(found.version) < _OLDEST_PYTHON:
        return Check(name, "unknown", "no fit Python answered", "whether they fit cannot be said")
    if found.suffix and f"_hooks{found.suffix}" in seen.hooks:
        words = f"built for Python {found.version}"
        return Check(name, "good", words, "a step pays little for being measured")
    return Check(
        name,
        "absent",
        f"none for Python {found.version}",
        "hooks in Python do the same; they cost each step some 50 us more",
        "install hotlap with this Python, where a C compiler and Python.h are",
    )


def compiler(seen: Surroundings) -> Check:
    """What ``torch.compile`` needs besides torch."""
    name, found, interpreter = "torch.compile", seen.torch, seen.python
    if found is None or interpreter is None:
        return Check(name, "unknown", "no torch answered", "whether it can work cannot be said")
    missing, fixes = [], []
    if seen.compiler is None:
        missing.append(f"no C++ compiler ({seen.compiler_name})")
        fixes.append(f"install {seen.compiler_name}, or name another in CXX")
    if not interpreter.headers:
        missing.append("no Python.h")
        fixes.append("install the headers of this Python (python3-dev)")
    if found.cuda_available and not found.triton:
        missing.append("no triton")
        fixes.append("pip install triton")
    if missing:
        consequence = "torch.compile fails when the model is first called"
        return Check(name, "limited", ", ".join(missing), consequence, "; ".join(fixes))
    words = f"{seen.compiler} and Python.h are there"
    words += ", triton too" if found.triton else ""
    return Check(name, "good", words, "models can be compiled; the first steps take longer then")


def allocators(seen: Surroundings) -> Check:
    """Allocators that can be preloaded instead of the C library's."""
    preloaded = seen.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    active = [os.path.basename(path) for path in preloaded if name_of(path)]
    if active:
        words = f"{active[0]} is in LD_PRELOAD"
        return Check("allocators", "good", words, "trainings started here use it")
    if seen.allocators:
        words = ", ".join(f"{name}: {path}" for name, path in seen.allocators.items())
        return Check(
            "allocators", "good", words, "there to be tried with LD_PRELOAD; none is in use"
        )
    return Check(
        "allocators",
        "absent",
        "no tcmalloc, jemalloc or mimalloc found",
        "nothing to try instead of the C library's; tcmalloc can save CPU time where batches are "
        "made and freed",
        "Debian, Ubuntu: apt install libtcmalloc-minimal4 (conda: gperftools)",
    )


def decoders(seen: Surroundings) -> Check:
    """Libraries that turn images, video and sound into arrays."""
    name, interpreter = "decoders", seen.python
    if interpreter is None:
        return Check(name, "unknown", "no Python answered", "what decodes your data is not known")
    found = decoders_of(interpreter.packages)
    if not found:
        words = "none of those that we know is installed"
        return Check(name, "absent", words, "of no matter for text and tables; images need one")
    words = ", ".join(f"{package} {version}" for package, version, _ in found)
    jpeg = [package for package, _, kinds in found if "JPEG" in kinds]
    if jpeg and not any(package.startswith(start) for package in jpeg for start in _FAST_JPEG):
        return Check(
            name,
            "limited",
            words,
            "JPEG goes through pillow; simplejpeg decodes the same in about 0.8 of its CPU time",
            "pip install simplejpeg, if decoding is what your steps wait for",
        )
    kinds = sorted({kind for _, _, all_kinds in found for kind in all_kinds.split(", ")})
    return Check(name, "good", words, f"they read {', '.join(kinds)}")
