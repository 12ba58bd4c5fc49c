"""Frames on disk: whatever happens to the bytes, whole frames come back and nothing else does."""

from __future__ import annotations

import random
import struct

import pytest

from hotlap.runs import frames
from hotlap.runs.frames import MAGIC, Frame, decode, encode, encode_json, encode_rows, header

HEADER_BYTES = 16


def split(data: bytes) -> tuple[list[Frame], list[str]]:
    """Return the frames of some bytes, and the sentences about damage."""
    found = list(decode(data))
    return [f for f in found if isinstance(f, Frame)], [s for s in found if isinstance(s, str)]


def some_frames(seed: int, count: int = 6) -> list[Frame]:
    """Return random frames, some of which hold what looks like a frame of their own."""
    generator = random.Random(seed)
    made = []
    for _ in range(count):
        payload = generator.randbytes(generator.choice((0, 1, 3, 17, 60)))
        if generator.random() < 0.3:
            payload += MAGIC + generator.randbytes(5)
        tag = "".join(generator.choices("abcdefghijklmnopqrstuvwxyz.", k=4))
        made.append(Frame(tag, payload))
    return made


def as_bytes(made: list[Frame]) -> list[bytes]:
    return [encode(frame.tag, frame.payload) for frame in made]


@pytest.mark.parametrize("seed", range(50))
def test_frames_come_back_as_they_went_in(seed: int) -> None:
    made = some_frames(seed, count=20)
    assert split(b"".join(as_bytes(made))) == (made, [])


def test_an_empty_file_holds_nothing_and_no_damage() -> None:
    assert split(b"") == ([], [])


@pytest.mark.parametrize("seed", range(8))
def test_a_tail_torn_at_any_byte_loses_only_the_torn_frame(seed: int) -> None:
    made = some_frames(seed)
    parts = as_bytes(made)
    data = b"".join(parts)
    ends = [sum(map(len, parts[: index + 1])) for index in range(len(parts))]
    for cut in range(len(data) + 1):
        found, damage = split(data[:cut])
        whole = sum(end <= cut for end in ends)
        assert found == made[:whole], cut
        assert bool(damage) == (cut not in (0, *ends)), cut


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_byte_loses_one_frame_and_invents_none(seed: int) -> None:
    made = some_frames(seed)
    parts = as_bytes(made)
    data = bytearray(b"".join(parts))
    at = 0
    for index, part in enumerate(parts):
        for offset in range(at, at + len(part)):
            for flip in (0x01, 0x80, 0xFF):
                data[offset] ^= flip
                found, damage = split(bytes(data))
                data[offset] ^= flip
                assert found == made[:index] + made[index + 1 :], (offset, flip)
                assert damage, (offset, flip)
        at += len(part)


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\0" * 4096,
        b"hlp",
        b"hlp1",
        MAGIC * 9,
        b"x" * 15,
        b"x" * 16,
        b"hlp1abcd\xff\xff\xff\xff0000",
    ],
)
def test_rubbish_before_between_and_after_frames_is_skipped(rubbish: bytes) -> None:
    made = some_frames(1, count=3)
    parts = as_bytes(made)
    data = rubbish + parts[0] + rubbish + parts[1] + parts[2] + rubbish
    found, damage = split(data)
    assert found == made
    assert len(damage) >= 3


def test_a_torn_frame_whose_payload_holds_the_magic_is_dropped_whole() -> None:
    good = encode("good", b"1")
    torn = encode("torn", b"see " + MAGIC + b" here, and more text after it" * 3)
    for cut in range(1, len(torn)):
        found, damage = split(good + torn[:cut])
        assert found == [Frame("good", b"1")], cut
        assert damage, cut


def test_a_frame_after_a_torn_one_is_found() -> None:
    """A write may break off in the middle, and a later process append to the same file."""
    torn = encode("torn", b"x" * 100)
    good = encode("good", b"1")
    for cut in range(1, len(torn)):
        found, damage = split(torn[:cut] + good)
        assert found == [Frame("good", b"1")], cut
        assert damage, cut


@pytest.mark.parametrize("length", [(64 << 20) - 1, 64 << 20, (64 << 20) + 1, 0xFFFFFFFF])
def test_a_huge_length_neither_allocates_nor_swallows_what_follows(length: int) -> None:
    huge = struct.pack("<4s4sII", MAGIC, b"huge", length, 0)
    good = encode("good", b"1")
    assert split(huge + good)[0] == [Frame("good", b"1")]
    found, damage = split(huge)
    assert found == []
    assert len(damage) == 1


def test_the_sentences_tell_how_many_bytes_are_lost_and_where() -> None:
    good = encode("good", b"1")
    assert split(b"abc" + good)[1] == ["3 damaged bytes at offset 0 skipped"]
    assert split(good + good[:9])[1] == ["torn tail of 9 bytes dropped"]


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_never_raise(seed: int) -> None:
    generator = random.Random(seed)
    data = generator.randbytes(300)
    for _ in range(10):
        at = generator.randrange(len(data))
        data = data[:at] + MAGIC + data[at:]
    assert split(data)[0] == []


def test_a_tag_that_nobody_knows_is_a_frame_like_others() -> None:
    assert split(encode("zzzz", b"?"))[0] == [Frame("zzzz", b"?")]


def test_a_tag_has_exactly_four_letters_on_disk() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode("tück", b"")
    assert len(encode("abcd", b"")) == HEADER_BYTES


def test_tables_come_back() -> None:
    rows = [(1, -2, 2**62), (-(2**63), 2**63 - 1, 0)]
    (found,), _ = split(encode_rows("tick", ["a", "b", "c"], rows))
    assert found.rows() == (["a", "b", "c"], rows)
    (empty,), _ = split(encode_rows("tick", ["a"], []))
    assert empty.rows() == (["a"], [])


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"[]\n", b'["a"]\n1234567', b"not json\n", b'["a","b"]\n' + bytes(24)],
)
def test_a_table_that_does_not_fit_its_columns_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Frame("tick", payload).rows()


def test_json_comes_back_and_what_is_none_is_refused() -> None:
    value = {"text": "Grüße\n\0", "list": [1, None, 2.5]}
    (found,), _ = split(encode_json("fact", value))
    assert found.json() == value
    with pytest.raises(ValueError, match=r"."):
        Frame("fact", b"\xff{").json()


def test_a_file_says_its_version_and_kind_first() -> None:
    (found,), _ = split(header("process"))
    assert found.tag == "head"
    assert found.json() == {"major": frames.MAJOR, "minor": frames.MINOR, "kind": "process"}
