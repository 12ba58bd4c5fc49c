"""Start the command given, the way `hotlap run` does, and leave as it left."""

import os
import sys
from pathlib import Path

from hotlap.errors import HotlapError
from hotlap.launch.child import leave, run_child
from hotlap.launch.environ import read_given_environ


def _write_pid(pid: int) -> None:
    if path := os.environ.get("DRIVER_CHILD_PID_FILE"):
        temporary = Path(path + ".new")
        temporary.write_text(str(pid))
        temporary.rename(path)


def _poll() -> None:
    if os.environ.get("DRIVER_POLL_RAISES"):
        raise RuntimeError("poll failed on purpose")


def main() -> None:
    """Run it."""
    environ = {k: v for k, v in read_given_environ().items() if not k.startswith("DRIVER_")}
    try:
        outcome = run_child(sys.argv[1:], environ, on_start=_write_pid, on_poll=_poll, poll_s=0.05)
    except HotlapError as error:
        print(f"driver: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    leave(outcome.exit_code)


main()
