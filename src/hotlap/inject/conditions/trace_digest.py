"""Hashes and sums of what a training holds. Nothing here draws from a generator of the script's."""

from __future__ import annotations

import ctypes
import hashlib
import random
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

_MOST_BYTES: Final = 64 << 10
"""So much of a tensor is hashed, spread evenly."""
_PIECES: Final = 16
_ROW_BYTES: Final = 4 << 10
_MOST_ROWS: Final = 4096
"""Rows of a batch that are looked at."""
_MOST_DRAWN: Final = 1 << 22
"""Elements of a gradient that are projected."""
_BUCKETS: Final = 16
_DEEPEST: Final = 12


def _hash() -> Any:
    return hashlib.blake2b(digest_size=8)


def text_hash(text: str) -> str:
    """Return the hash of a text."""
    found = _hash()
    found.update(text.encode())
    return str(found.hexdigest())


def batch_hash(batch: Any) -> str:
    """Return the hash of a batch: of the tensors, arrays, numbers and texts in it, in order."""
    found = _hash()
    _walk(batch, found, _DEEPEST)
    return str(found.hexdigest())


def _walk(value: Any, found: Any, depth: int) -> None:
    if depth == 0:
        return
    if isinstance(value, Mapping):
        for key, one in value.items():
            found.update(repr(key).encode())
            _walk(one, found, depth - 1)
    elif isinstance(value, (list, tuple)):
        found.update(b"[%d" % len(value))
        for one in value:
            _walk(one, found, depth - 1)
    elif isinstance(value, (str, bytes, int, float, complex, type(None))):
        found.update(repr(value)[:_MOST_BYTES].encode())
    elif (tensor := _tensor_of(value)) is not None:
        found.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
        found.update(_bytes_of(tensor, _MOST_BYTES))
    elif isinstance(getattr(value, "__dict__", None), dict):
        found.update(type(value).__name__.encode())
        _walk(vars(value), found, depth - 1)
    else:
        found.update(type(value).__name__.encode())


def _tensor_of(value: Any) -> Any:
    """Return a tensor for a tensor or an array; None for anything else."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return value.detach()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        try:
            return torch.from_numpy(numpy.array(value))
        except TypeError:
            return None
    return None


def _bytes_of(tensor: Any, most: int) -> bytes:
    """Return the bytes of a tensor in logical order: all, or evenly spread pieces of ``most``."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        if tensor.layout is not torch.strided or tensor.device.type == "meta":
            return b""
        flat = tensor.detach().reshape(-1)
        size = flat.element_size()
        if flat.numel() * size > most:
            length = max(1, most // _PIECES // size)
            apart = (flat.numel() - length) / (_PIECES - 1)
            flat = torch.cat([flat[round(i * apart) :][:length] for i in range(_PIECES)])
        flat = flat.cpu().contiguous()
        if flat.is_conj() or flat.is_neg():
            flat = flat.resolve_conj().resolve_neg()
        return ctypes.string_at(flat.data_ptr(), flat.numel() * size) if flat.numel() else b""


def row_hashes(batch: Any) -> list[bytes]:
    """Return a hash of each row of the first tensor in a batch; none where it has no rows."""
    tensor = _first_tensor(batch, _DEEPEST)
    if tensor is None or tensor.dim() == 0:
        return []
    rows = tensor[:_MOST_ROWS]
    rows = rows.cpu() if rows.device.type != "meta" else rows
    return [
        hashlib.blake2b(_bytes_of(row, _ROW_BYTES), digest_size=8).digest()
        for row in rows.reshape(rows.shape[0], -1)
    ]


def _first_tensor(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth:
        found = (_first_tensor(one, depth - 1) for one in value)
        return next((one for one in found if one is not None), None)
    return _tensor_of(value)


def total_and_norm(tensor: Any) -> tuple[float, float]:
    """Return sum and Euclidean norm of a tensor, in float64."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        own = tensor.detach()
        if own.is_complex():
            own = torch.view_as_real(own)
        total = own.sum(dtype=torch.float64)
        if not own.is_floating_point():
            return float(total), 0.0
        norm = torch.linalg.vector_norm(own, dtype=torch.float64)
        return float(total), float(norm)


def fingerprint(tensor: Any) -> tuple[float, float, bytes]:
    """Return what changes when a tensor's values do."""
    total, norm = total_and_norm(tensor)
    return total, norm, hashlib.blake2b(_bytes_of(tensor, _MOST_BYTES), digest_size=8).digest()


def sketch(gradients: Iterable[Any]) -> tuple[list[float | None], list[float]]:
    """Return the norm of each gradient, and fixed projections of all (a count sketch).

    The signs are those of a private generator, the same ones in every process.
    """
    torch = sys.modules["torch"]
    norms: list[float | None] = []
    projected: list[float] = []
    for index, gradient in enumerate(gradients):
        if gradient is None:
            norms.append(None)
            projected += [0.0] * _BUCKETS
            continue
        with torch.no_grad():
            own = gradient.detach()
            own = own.to_dense() if own.is_sparse else own
            norms.append(total_and_norm(own)[1])
            flat = own.reshape(-1)
            flat = flat[:: max(1, -(-flat.numel() // _MOST_DRAWN))]
            flat = flat.to(device="cpu", dtype=torch.float32)
            signs = torch.randint(
                0, 2, flat.shape, generator=torch.Generator().manual_seed(index), device="cpu"
            )
            signed = flat * (signs * 2 - 1).to(flat.dtype)
            signed = torch.nn.functional.pad(signed, (0, -signed.numel() % _BUCKETS))
            projected += signed.reshape(-1, _BUCKETS).sum(0, dtype=torch.float64).tolist()
    return norms, projected


def generators() -> dict[str, str]:
    """Return the hash of the state of each global generator that is loaded."""
    torch = sys.modules["torch"]
    found = {
        "torch": hashlib.blake2b(_bytes_of(torch.get_rng_state(), 1 << 20), digest_size=8),
        "random": hashlib.blake2b(repr(random.getstate()).encode(), digest_size=8),
    }
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        name, keys, *rest = numpy.get_state()
        state = repr((name, *rest)).encode() + keys.tobytes()
        found["numpy"] = hashlib.blake2b(state, digest_size=8)
    return {name: one.hexdigest() for name, one in found.items()}
