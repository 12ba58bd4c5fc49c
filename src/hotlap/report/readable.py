"""Text of the user's (paths, source, commands) made harmless for a terminal and a page."""

from __future__ import annotations


def readable(text: str) -> str:
    """Return the text on one line, without anything that a terminal or browser would obey.

    Whitespace of any kind becomes a space. Control and direction characters, and bytes of a file
    name that are no text, become the replacement character.
    """
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
