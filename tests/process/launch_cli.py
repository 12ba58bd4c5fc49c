"""Become `hotlap run` with the command given, its record in a new temporary folder."""

import os
import signal
import sys
import tempfile

run = os.path.join(tempfile.mkdtemp(), "run")
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execv(
    sys.executable,
    [sys.executable, "-m", "hotlap", "run", "--quiet", "-o", run, *sys.argv[1:]],
)
