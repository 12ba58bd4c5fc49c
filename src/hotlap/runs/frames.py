"""Framed, checksummed records: a file is readable after its writer died at any moment.

A frame is ``magic, tag, length, crc32(tag + payload)``, little endian, then the payload: one JSON
object, or for tables a JSON line of column names followed by rows of signed 64-bit integers.
A torn tail is dropped, a damaged frame is skipped to the next magic, an unknown tag is ignored.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAGIC: Final = b"hlp1"
_HEADER: Final = struct.Struct("<4s4sII")
_LIMIT: Final = 64 << 20

MAJOR: Final = 1
MINOR: Final = 0


@dataclass(frozen=True)
class Frame:
    """One record. tag: four ASCII letters; payload: its bytes."""

    tag: str
    payload: bytes

    def json(self) -> Any:
        """Decode a JSON payload; raises ValueError when it is none."""
        return json.loads(self.payload)

    def rows(self) -> tuple[list[str], list[tuple[int, ...]]]:
        """Decode a table: column names and rows; raises ValueError when it is none."""
        line, _, body = self.payload.partition(b"\n")
        columns = json.loads(line)
        if not isinstance(columns, list):
            raise ValueError(f"table of {columns!r:.60} columns")
        width = len(columns)
        if width == 0 or len(body) % (8 * width):
            raise ValueError(f"table of {len(body)} bytes does not fit {width} columns")
        count = len(body) // (8 * width)
        flat = struct.unpack(f"<{count * width}q", body)
        return columns, [flat[i * width : (i + 1) * width] for i in range(count)]


def encode(tag: str, payload: bytes) -> bytes:
    """Return the bytes of one frame. tag: exactly four ASCII letters."""
    raw = tag.encode("ascii")
    return _HEADER.pack(MAGIC, raw, len(payload), zlib.crc32(raw + payload)) + payload


def encode_json(tag: str, value: Any) -> bytes:
    """Return a frame whose payload is ``value`` as JSON."""
    return encode(tag, json.dumps(value, separators=(",", ":")).encode())


def encode_rows(tag: str, columns: Sequence[str], rows: Iterable[Sequence[int]]) -> bytes:
    """Return a frame whose payload is a table of 64-bit integers."""
    flat = array("q")
    for row in rows:
        flat.extend(row)
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        flat.byteswap()
    return encode(tag, json.dumps(list(columns)).encode() + b"\n" + flat.tobytes())


def header(kind: str) -> bytes:
    """Return the frame that opens a file. kind: what it holds."""
    return encode_json("head", {"major": MAJOR, "minor": MINOR, "kind": kind})


def decode(data: bytes) -> Iterator[Frame | str]:
    """Yield the frames of a file's bytes, and a sentence for each damage met."""
    at = 0
    while at + _HEADER.size <= len(data):
        magic, tag, length, checksum = _HEADER.unpack_from(data, at)
        end = at + _HEADER.size + length
        if magic == MAGIC and end > len(data) and length <= _LIMIT:
            following = data.find(MAGIC, at + 4)
            if following < 0:
                yield f"torn tail of {len(data) - at} bytes dropped"
                return
        payload = data[at + _HEADER.size : end]
        sound = magic == MAGIC and end <= len(data) and zlib.crc32(tag + payload) == checksum
        if sound:
            yield Frame(tag.decode("ascii", "replace"), payload)
            at = end
            continue
        following = data.find(MAGIC, at + 1)
        lost = (following if following >= 0 else len(data)) - at
        yield f"{lost} damaged bytes at offset {at} skipped"
        at = at + lost
    if at < len(data):
        yield f"torn tail of {len(data) - at} bytes dropped"
