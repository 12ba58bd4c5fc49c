"""A command to be observed: says what it is given and what reaches it. First word: what to do."""

import contextlib
import os
import signal
import sys
import time


def say(text: str) -> None:
    """Write one line at once, in one write."""
    os.write(1, text.encode() + b"\n")


def log() -> None:
    """Say each signal that arrives; end with code 7 at SIGUSR2. `log PATH`: say it to a file."""
    if len(sys.argv) > 2:
        os.dup2(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    for name in "HUP INT QUIT USR1 ALRM TERM CONT WINCH TSTP USR2 RTMIN".split():
        signal.signal(getattr(signal, f"SIG{name}"), lambda n, _: say(signal.Signals(n).name))
    signal.signal(signal.SIGUSR2, lambda *_: os._exit(7))
    say(f"ready {os.getpid()}")
    rest()


def rest() -> None:
    """Wait for ever, in short sleeps: a signal just before a long one would go unnoticed in it."""
    while True:
        time.sleep(0.01)


def tidy() -> None:
    """Tidy up after an interrupt, and end with code 5; with 6 when interrupted again at it."""
    try:
        with contextlib.suppress(KeyboardInterrupt):
            say("ready")
            rest()
        say("tidying")
        if sys.argv[2:] == ["slowly"]:
            rest()
    except KeyboardInterrupt:
        say("again")
        sys.exit(6)
    say("tidied")
    sys.exit(5)


def ask() -> None:
    """Read one line from standard input, say it, and end with code 4. Say when continued."""
    signal.signal(signal.SIGCONT, lambda *_: say("continued"))
    say("ready")
    say("got " + os.read(0, 100).decode().strip())
    sys.exit(4)


def sleep() -> None:
    """Say the pid, and do nothing about any signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    say(f"ready {os.getpid()}")
    time.sleep(600)


def vim() -> None:
    """Tidy the terminal up before stopping, as an editor does, and stop by SIGSTOP."""

    def stop(*_: object) -> None:
        say("leaving the screen")
        os.kill(os.getpid(), signal.SIGSTOP)
        say("back")

    signal.signal(signal.SIGTSTP, stop)
    ask()


def terminal() -> None:
    """Say what of the standard streams is a terminal, which, how large, and whose."""
    for number in (0, 1, 2):
        tty = os.isatty(number)
        say(f"{number} {tty} {os.get_terminal_size(number) if tty else None}")
    say(f"foreground {os.tcgetpgrp(0) == os.getpgrp()}")


def await_usr1() -> None:
    """End with code 8 when SIGUSR1, which we were started with blocked, is there."""
    signal.sigwait({signal.SIGUSR1})
    sys.exit(8)


{f.__name__: f for f in (log, tidy, ask, sleep, vim, terminal, await_usr1)}[sys.argv[1]]()
