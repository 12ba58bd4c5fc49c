"""# compile: torch.compile makes kernels of the model's forward and backward pass

**What.** Models are compiled at their first forward pass in training. The model itself stays as it
is, with its class, its parameters and its state: only its outermost call runs compiled code. A
model that the compiler cannot do runs on as before, and the knob says so.

* `default`: as torch does it: shapes are taken for fixed until a second one comes.
* `dynamic`: shapes are taken for variable at once. In a script that calls `torch.compile` itself,
  what it leaves to torch, or sets to False, becomes `dynamic=True`.

**Where it helps.** Models of many small operators. Compiling takes tens of seconds to minutes,
which the run must be long enough to earn back.

**What else it changes.** The last bits of results. Random draws within the model stay torch's own.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from hotlap.knobs.offers import judged, named_by, no_variables
from hotlap.knobs.outermost import replace_outermost, trains
from hotlap.knobs.target import Target
from hotlap.values.facts import Facts
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of, trainer_of

NAME: Final = "compile"
PHASE: Final = "forward"
NUMERICS: Final = ("rounding",)
environment = no_variables
BACKEND: Final = "inductor"
_LEAST_SHARE: Final = 0.2
_LEAST_S: Final = 60.0
"""A run shorter than this cannot earn back what compiling takes."""
_COMPILERS: Final = ("torch._dynamo", "torch._inductor", "torch._functorch")


def applies(case: Case) -> Offer | No:
    """Offer it to long runs of models, and ``dynamic`` to scripts that compile again and again."""
    found = named_by(case, NAME)
    again = found is not None and found.phase == "compile"
    if again or any(one.name == "compile" for one in case.facts.settings):
        if not again:
            return No("the script compiles already, and not again and again")
        share = share_of(case.facts, "compile")
        because = "what the script compiles is compiled again for other shapes"
        return judged(case, NAME, share, Offer(("dynamic",), NUMERICS[0], because))
    if any(one.name == "create_graph" and one.value is not False for one in case.facts.settings):
        return No("gradients of gradients cannot go through compiled code")
    share = share_of(case.facts, "forward", "backward")
    if found is None and (share or 0.0) < _LEAST_SHARE:
        return No("the model takes too little of the time for compiling to pay")
    seconds = _seconds(case.facts)
    if seconds is not None and seconds < _LEAST_S:
        return No(f"a run of {seconds:.0f} s cannot earn back what compiling takes")
    several = bool(case.facts.defaults.get("padded_width"))
    values = ("dynamic", "default") if several else ("default",)
    because = "forward and backward pass take most of the time"
    return judged(case, NAME, share, Offer(values, NUMERICS[0], because))


def _seconds(facts: Facts) -> float | None:
    """Return how long the steps of a whole run take; None where it is not known."""
    trainer, steps = trainer_of(facts), facts.run.horizon_steps
    if trainer is None or steps is None or not trainer.step.mean_ns:
        return None
    return steps * trainer.step.mean_ns / 1e9


def apply(target: Target, value: Any) -> None:
    """Compile models at their first call in training; with ``dynamic`` the script's own too."""
    torch = sys.modules["torch"]
    models = _Models(target, torch.compile, dynamic=value == "dynamic")
    _watch_scripts_own(target, models)
    replace_outermost(target, models.call)


def _watch_scripts_own(target: Target, models: _Models) -> None:
    torch = sys.modules["torch"]
    own = torch.compile

    @functools.wraps(own)
    def compile(*args: Any, **kwargs: Any) -> Any:
        models.script_compiles = True
        if models.dynamic and kwargs.get("dynamic") is not True and not kwargs.get("disable"):
            kwargs["dynamic"] = True
            target.acted("what the script compiles was made for variable shapes")
        else:
            target.note("the script compiles by itself, so nothing else is compiled")
        return own(*args, **kwargs)

    target.replace(torch, "compile", compile)


class _Models:
    """The models of a process, and what was compiled of each."""

    def __init__(self, target: Target, compiler: Callable[..., Any], *, dynamic: bool) -> None:
        self.script_compiles = False
        self.dynamic = dynamic
        self._target = target
        self._compiler = compiler
        self._compiled: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def call(
        self, module: Any, own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make an outermost call, compiled where it is one of training."""
        compiled = self._compiled.get(module)
        if compiled is False or not trains(module) or self._is_scripts_own(module):
            return own(module, *args, **kwargs)
        is_new = compiled is None
        try:
            if compiled is None:
                compiled = self._compiled[module] = self._made(module, own)
            before = _graphs() if is_new else 0
            result = compiled(*args, **kwargs)
        except Exception as error:
            if not _is_of_a_compiler(error):
                raise
            self._compiled[module] = False
            words = " ".join(str(error).split())[:200]
            self._target.note(f"{type(module).__name__} could not be compiled: {words}")
            return own(module, *args, **kwargs)
        if is_new:
            self._prove(module, _graphs() - before)
        return result

    def _prove(self, module: Any, graphs: int) -> None:
        name = type(module).__name__
        if graphs > 0:
            self._target.acted(f"{name} was compiled, in {graphs} graph{'s' * (graphs > 1)}")
        else:
            self._target.note(f"no graph was made of {name}")

    def _made(self, module: Any, own: Callable[..., Any]) -> Callable[..., Any]:
        """Return a compiled call. It holds no model: the map that it stands in is of weak keys."""
        held = weakref.ref(module)
        self._keep_buffers()

        def run(one: Any, *args: Any, **kwargs: Any) -> Any:
            return own(one, *args, **kwargs)

        # Draws of dropout stay those of torch's generator.
        options = {"fallback_random": True} if BACKEND == "inductor" else None
        compiled = self._compiler(
            run, backend=BACKEND, dynamic=True if self.dynamic else None, options=options
        )
        return lambda *args, **kwargs: compiled(held(), *args, **kwargs)

    def _keep_buffers(self) -> None:
        """Let a backward pass be made twice, as ``retain_graph`` asks for it without a compiler."""
        config: Any = importlib.import_module("torch._functorch.config")
        if getattr(config, "donated_buffer", False):
            config.donated_buffer = False
            self._target.undo_with(lambda: setattr(config, "donated_buffer", True))

    def _is_scripts_own(self, module: Any) -> bool:
        """Tell whether the script compiles, this model or anything else: then it has chosen."""
        if self.script_compiles:
            return True
        return getattr(module, "_compiled_call_impl", None) is not None


def _graphs() -> int:
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["stats"]["unique_graphs"]) if utils is not None else 0


def _is_of_a_compiler(error: BaseException) -> bool:
    return any(kind.__module__.startswith(_COMPILERS) for kind in type(error).__mro__)


def snippet(value: Any) -> str:
    """Return the line to paste before the first step."""
    return "model.compile(dynamic=True)" if value == "dynamic" else "model.compile()"
