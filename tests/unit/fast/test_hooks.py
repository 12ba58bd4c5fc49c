"""A compiled hook is as good as the function that it stands for, and nothing of ours gets out."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import traceback
import types
import warnings
import weakref
from typing import Any

import pytest

from hotlap.fast import choice
from hotlap.fast.choice import Depth
from hotlap.probe.ledger import FORWARD, OTHER
from unit.fast.bench import Bench, Host, hooks, throw

pytestmark = pytest.mark.skipif(choice.hooks is None, reason=f"no compiled hooks: {choice.because}")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_it_looks_like_the_function_it_stands_for(bench: Bench) -> None:
    original, hook = Host.__call__, bench.module()
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__code__", "__defaults__"):
        assert getattr(hook, name) == getattr(original, name)
    assert inspect.signature(hook) == inspect.signature(original)
    assert inspect.unwrap(hook) is original
    assert inspect.getsource(hook) == inspect.getsource(original)
    assert repr(hook) == repr(original)
    assert hook.__wrapped__ is original
    hook.of_the_users = 1
    assert hook.__dict__["of_the_users"] == 1
    assert weakref.ref(hook)() is hook
    with pytest.raises(AttributeError, match="no_such"):
        getattr(hook, "no_such")  # noqa: B009 - a constant name, of a thing of any kind


def test_it_binds_and_is_pickled_as_a_function_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, hook = Host(), bench.module()
    monkeypatch.setattr(Host, "__call__", hook)
    monkeypatch.setattr(sys.modules[Host.__module__], "Host", Host, raising=False)
    bound = host.__call__
    assert type(bound) is types.MethodType
    assert bound.__func__ is hook.fallback  # what Dynamo can look into, whenever it comes
    assert Host.__call__ is hook
    assert host(1, 2, factor=3) == bound(1, 2, factor=3) == (1, (2,), 3)
    assert copy.copy(hook) is copy.deepcopy(hook) is hook
    assert pickle.loads(pickle.dumps(hook)) is hook


def test_what_it_is_given_and_gives_back(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()
    assert hook(host, 1, 2, factor=3) == (1, (2,), 3)
    assert hook(*[host, 5], **{"factor": 6}) == (5, (), 6)
    assert bench.left == []
    assert bench.standing.counts == [1, 2, 0]
    assert bench.ledger.stack == []
    with pytest.raises(TypeError) as ours:
        hook(host, no_such=1)
    with pytest.raises(TypeError) as theirs:
        Host.__call__(host, no_such=1)  # type: ignore[call-arg]  # the error is compared
    assert str(ours.value) == str(theirs.value)


def test_parts_inside_a_model_are_its_own(bench: Bench) -> None:
    host, part, hook = bench.root(), Host(), bench.module()
    seen: list[Any] = []

    def inner() -> None:
        seen.append((bench.ledger.current, Depth().inside))

    hook(host, lambda: hook(part, inner))
    assert seen == [(FORWARD, True)]
    assert not Depth().inside
    assert bench.standing.counts[1] == 1
    assert bench.left == []


def test_no_code_of_the_model_runs_to_learn_its_mode(bench: Bench) -> None:
    asked: list[str] = []

    class Watching(Host):
        def __getattribute__(self, name: str) -> Any:
            asked.append(name)
            return object.__getattribute__(self, name)

    host, hook = Watching(), bench.module()
    bench.standing.roots[id(host)] = weakref.ref(host)
    hook(host, 1)
    assert bench.left == []
    assert asked == []


def test_exceptions_pass_with_the_users_own_frames_only(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()

    def fails() -> None:
        raise KeyError("theirs")

    def caller(call: Any) -> list[str]:
        with pytest.raises(KeyError) as caught:
            call(host, fails)
        assert caught.value.__context__ is None
        return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]

    assert caller(hook) == caller(Host.__call__) == ["caller", "__call__", "fails"]
    assert bench.ledger.stack == []
    assert not Depth().inside
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(error):
            hook(host, functools.partial(throw, error))
        assert bench.ledger.stack == []
    assert bench.faults == []


def test_warnings_name_the_line_that_called(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hook(host, lambda: warnings.warn("w", stacklevel=3))
    assert caught[0].filename == __file__


def test_a_generator_that_isthrown_into(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()

    def items() -> Any:
        while True:
            try:
                yield hook(host, 1)
            except ValueError:
                yield hook(host, lambda: bench.ledger.current)

    generator = items()
    next(generator)
    assert generator.throw(ValueError()) == FORWARD
    assert bench.ledger.stack == []


def test_our_own_failure_is_told_to_the_channel_alone(bench: Bench) -> None:
    def end(*_: Any) -> None:
        raise ZeroDivisionError("ours")

    bench.end = end  # type: ignore[method-assign]  # an end that fails
    hook = bench.make("backward", lambda work=None: work and work())
    bench.standing.stepped_inside = True  # what is left to the end in Python
    assert hook() is None
    bench.ledger.abandon()  # as the recorder does then
    with pytest.raises(KeyError) as caught:
        hook(lambda: throw(KeyError))
    assert caught.value.__context__ is None
    assert [type(error) for error in bench.faults] == [ZeroDivisionError] * 2


@pytest.mark.parametrize("raised", [KeyboardInterrupt, TimeoutError])
def test_what_a_signal_handler_raises_in_our_end_is_the_scripts(
    bench: Bench, raised: type[BaseException]
) -> None:
    def fail(error: BaseException) -> None:
        raise error  # as the channel does with what came through a handler

    bench.end = lambda *_: throw(raised)  # type: ignore[method-assign]  # an end that is struck
    bench.faults = types.SimpleNamespace(append=fail)  # type: ignore[assignment]
    hook = bench.make("backward", lambda work=None: work and work())
    bench.standing.stepped_inside = True
    with pytest.raises(raised):
        hook()
    bench.ledger.abandon()
    with pytest.raises(raised) as caught:
        hook(lambda: throw(KeyError))
    assert isinstance(caught.value.__context__, KeyError)


def test_it_steps_aside_for_good(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()
    hook(host)
    hook.step_aside()
    hook(host)
    assert bench.left == ["module"]


def test_whatever_is_not_plain_is_left_to_python(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()
    standing = bench.standing
    for name, value in (("stretch", object()), ("at_edge", True), ("ticks", 0), ("due", 0)):
        before = getattr(standing, name)
        setattr(standing, name, value)
        hook(host)
        setattr(standing, name, before)
    bench.grad = False
    hook(host)
    bench.grad = True
    host.training = False
    hook(host)
    hook(Host())
    for name in ("stretch", "roots", "fetched", "pending", "kept", "begun"):
        delattr(standing, name)  # nobody does, and nothing falls over
        hook(host)
        bench.make("backward", lambda: None)()
        bench.make("step_begins", lambda *_: None, {}, {})(host, (), {})
    thread = threading.Thread(target=hook, args=(host,))
    thread.start()
    thread.join()
    assert bench.left.count("module") == 14
    assert standing.counts[1] == 0


def test_a_model_whose_attributes_raise(bench: Bench) -> None:
    class Odd(Host):
        def __init__(self) -> None:
            pass

        @property
        def training(self) -> bool:  # type: ignore[override]  # a user's own idea
            raise RuntimeError("no such thing")

    odd = Odd()
    bench.standing.roots[id(odd)] = weakref.ref(odd)
    assert bench.module()(odd, 1) == (1, (), 1)
    assert bench.left == ["module"]


def test_a_hook_that_is_taken_out_and_freed_while_it_is_on_the_stack(bench: Bench) -> None:
    held = {"hook": bench.module()}
    host = bench.root()

    def last() -> int:
        held.clear()
        gc.collect()
        return 1

    assert held["hook"](host, last) == 1
    assert bench.ledger.stack == []


def test_a_subject_that_dies_in_the_call(bench: Bench) -> None:
    hosts = [bench.root()]
    hook = bench.make("module", lambda _: hosts.clear(), lambda: True)
    hook(hosts[0])
    assert hosts == []
    assert bench.ledger.stack == []


def test_nests_as_deep_as_python_allows(bench: Bench) -> None:
    host, hook = bench.root(), bench.module()

    def nest(left: int) -> int:
        return 0 if not left else 1 + hook(host, functools.partial(nest, left - 1))

    assert nest(240) == 240

    def endless() -> Any:
        return hook(host, endless)

    with pytest.raises(RecursionError):
        endless()
    assert bench.ledger.stack == []
    assert not Depth().inside


def test_more_spans_than_there_is_room_for(bench: Bench) -> None:
    tokens = [bench.ledger.enter(index % 12) for index in range(1000)]
    assert bench.ledger.stack == [OTHER, *(index % 12 for index in range(999))]
    bench.ledger.leave(tokens[500])
    assert bench.ledger.depth == 500
    bench.ledger.leave(tokens[0])
    assert (bench.ledger.stack, bench.ledger.current) == ([], OTHER)


def test_wrong_values_are_refused(bench: Bench) -> None:
    for account in (-1, 12, 1 << 40):
        with pytest.raises((IndexError, OverflowError)):
            bench.ledger.enter(account)
    with pytest.raises(TypeError):
        bench.ledger.accounts = [0] * 12  # type: ignore[assignment]  # not a tally
    with pytest.raises(TypeError):
        hooks.Hook("module", len, len, bench.ledger, bench.standing, len, len)
    with pytest.raises(ValueError, match="no hook is of the kind"):
        hooks.Hook("such", len, len, bench.ledger, bench.standing, len, len)
