"""The exceptions of hotlap and the exit codes that they carry.

HotlapError                 anything that we raise on purpose
├── WrongUse            2   the command line or an argument cannot mean what was written
├── NotMeasurable       3   nothing can be measured or compared here, and why
│   └── UnreadableRun   3   a run directory is missing, damaged or from a newer version
└── OurFault           70   hotlap itself failed
"""

from __future__ import annotations

from typing import ClassVar, Final

DONE: Final = 0
INTERRUPTED: Final = 130


class HotlapError(Exception):
    """Anything that hotlap raises on purpose. The message says what we saw and what to do."""

    exit_code: ClassVar[int] = 70


class WrongUse(HotlapError):
    """The command line or an argument cannot mean what was written."""

    exit_code = 2


class NotMeasurable(HotlapError):
    """Nothing can be measured or compared here."""

    exit_code = 3


class UnreadableRun(NotMeasurable):
    """A run directory is missing, damaged or from a newer version of hotlap."""


class OurFault(HotlapError):
    """hotlap itself failed."""

    exit_code = 70
