"""Calls that raise in many ways, bare and wrapped: prints where the two differ.

Run by the tests under several Pythons: standard library only, nothing younger than 3.10.
"""

import asyncio
import contextlib
import linecache
import sys
import traceback

from hotlap.sites.around import around, first, nothing
from hotlap.sites.hub import Hub

# mypy: disable-error-code="no-untyped-def,no-untyped-call,type-arg,misc"
# (no annotations: what a user's script looks like)

OURS = sys.modules["hotlap.sites.around"].__file__


def plain():
    raise ValueError("plain")


class Frozen(Exception):
    """Like a frozen dataclass: takes no attributes."""

    def __setattr__(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r}")


def frozen():
    raise Frozen("frozen")


def deep(n=3):
    if n:
        deep(n - 1)
    raise KeyError("deep")


def from_another():
    try:
        plain()
    except ValueError as error:
        raise RuntimeError("with a cause") from error


def from_none():
    try:
        plain()
    except ValueError:
        raise RuntimeError("without a cause") from None


def in_a_handler():
    try:
        plain()
    except ValueError:
        raise RuntimeError("with a context")  # noqa: B904 - the context is what is tested


def with_notes():
    try:
        plain()
    except ValueError as error:
        if hasattr(error, "add_note"):
            error.add_note("a note")
        raise


def caught_and_raised_again():
    try:
        deep()
    except KeyError:
        raise


def in_finally():
    try:
        plain()
    finally:
        vars(sys)["missing in finally"]


def stop_iteration():
    next(iter(()))


def interrupt():
    raise KeyboardInterrupt


def leave():
    sys.exit(3)


def generator_exit():
    raise GeneratorExit


def from_a_generator():
    def generate():
        yield 1
        raise ValueError("inside")

    return list(generate())


def stop_inside_a_generator():
    def generate():
        yield 1
        raise StopIteration

    return list(generate())


def thrown_into_a_generator():
    def generate():
        yield 1

    one = generate()
    next(one)
    one.throw(ValueError("thrown"))


def from_a_coroutine():
    async def work():
        raise ValueError("inside")

    return asyncio.run(work())


def from_an_exit_stack():
    with contextlib.ExitStack() as stack:
        stack.callback(plain)
        raise KeyError("first")


def recursion():
    recursion()


def cancelled():
    raise asyncio.CancelledError


def returns():
    return 7


CASES = [
    plain,
    frozen,
    deep,
    from_another,
    from_none,
    in_a_handler,
    with_notes,
    caught_and_raised_again,
    in_finally,
    stop_iteration,
    interrupt,
    leave,
    generator_exit,
    from_a_generator,
    stop_inside_a_generator,
    thrown_into_a_generator,
    from_a_coroutine,
    from_an_exit_stack,
    recursion,
    cancelled,
    returns,
]


def refuse(*_):
    raise OSError("hotlap's own")


def one(_):
    return 1


def nobody(*_):
    return None


def channels():
    """Yield a kind of listening, and a channel that listens so."""
    for kind in ("listening", "begin fails", "end fails", "both fail", "subject fails", "closed"):
        hub = Hub(nobody)
        begin = refuse if kind in ("begin fails", "both fail") else one
        end = refuse if kind in ("end fails", "both fail") else nobody
        hub.subscribe("one", begin, end)
        channel = hub.channel("one")
        if kind == "closed":
            channel.open = False
        yield kind, channel


def outcome(call):
    """Return what a call gives, or the traceback that a user would see."""
    try:
        return ("returned", call())
    except BaseException as error:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        if sys.version_info < (3, 11):
            # It raises again with the traceback that it had saved: our entry cannot be hidden.
            lines = [line for line in lines if f'File "{OURS}"' not in line]
        return ("raised", type(error).__name__, lines if call_depth_is_certain(error) else None)


def call_depth_is_certain(error):
    # Where the stack runs out, one frame of ours more makes one of the user's less.
    return not isinstance(error, RecursionError)


def in_use(call):
    """Call the same thing from a handler, where a wrong context would show."""
    try:
        raise LookupError("the user's own handler")
    except LookupError:
        return outcome(call)


def main():
    """Print one line per difference."""
    linecache.clearcache()
    compared = 0
    for case in CASES:
        bare = (outcome(case), in_use(case))
        for kind, channel in channels():
            for picks in (first, nothing, refuse if kind == "subject fails" else nothing):
                channel.open = kind != "closed"
                wrapped = around(case, channel, picks)
                seen = outcome(wrapped)
                channel.open = kind != "closed"
                again = in_use(wrapped)
                compared += 1
                if (seen, again) != bare:
                    print("DIFFERS", case.__name__, kind, picks.__name__, seen, again, bare)
    print("compared", compared)


main()
