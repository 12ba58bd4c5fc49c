"""The door into a user's Python process. Standard library only; must never raise or print.

Any interpreter that a job starts reads this file, also one too old for hotlap: no annotations,
no syntax younger than Python 2.7, and every name looked up where it is used.

Python imports this file at start-up because its folder stands first on PYTHONPATH. It takes that
folder off ``sys.path`` again, runs the ``sitecustomize`` that it shadows, and hangs a finder on
``sys.meta_path`` that acts after ``import torch``. hotlap itself is loaded only then, from its
own folder: the packages beside it stay invisible to the user's script.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,union-attr"
# (no annotations here: see above)

import os
import sys


def _leave_path():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if not _is(entry, here)]
    return here


def _is(entry, here):
    try:
        return os.path.abspath(entry or ".") == here
    except Exception:
        return False  # the current directory is gone


def _chain(here):
    """Run the sitecustomize that this one hides, as Python would have: its errors are its own."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec
    except ImportError:
        _chain_old()
        return
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or os.path.dirname(spec.origin or "") == here:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _chain_old():
    """The same for Python 2."""
    import imp

    try:
        found = imp.find_module("sitecustomize", sys.path)
    except ImportError:
        return
    try:
        imp.load_module("sitecustomize", *found)
    finally:
        if found[0]:
            found[0].close()


class _Door:
    """A finder that finds nothing itself: it lets others find, and listens after the import."""

    def __init__(self, handoff):
        self.handoff = handoff
        self.watched = {"torch"}
        self.session = None

    def find_spec(self, name, path=None, target=None):
        if name not in self.watched:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Listener(spec.loader, self)
                return spec
        return None

    def imported(self, name):
        """After a watched import: the first time, load hotlap and let it in."""
        try:
            self.watched.discard(name)
            if name == "torch":
                _note(self.handoff, {"pid": os.getpid(), "torch": True})
                _load(self.handoff["package_dir"])
                if not self.handoff.get("compiled", True):
                    from hotlap.fast import switch

                    switch.off = True
                from hotlap.inject.session import let_in

                self.session = let_in(self.handoff)
                self.watched.update(self.session.watched)
            elif self.session is not None:
                self.session.imported(name)
        except Exception as error:
            _note(self.handoff, {"pid": os.getpid(), "fault": repr(error)[:300]})


class _Listener:
    """A loader that behaves as the one it stands for, and tells the door when it has loaded."""

    def __init__(self, loader, door):
        self._loader = loader
        self._door = door

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException as error:
            # Without this frame Python shortens the traceback of an import as it always does.
            place = BaseException.__dict__["__traceback__"].__get__(error)
            if place is not None:
                BaseException.with_traceback(error, place.tb_next)
            raise
        self._door.imported(module.__name__)


def _load(package_dir):
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec, spec_from_file_location

    there = sys.modules.get("hotlap")
    known = getattr(there, "__spec__", None) or PathFinder.find_spec("hotlap", sys.path)
    if known is not None and known.origin and not _is_hotlap(known.origin):
        # Under that name the script would get ours in place of its own.
        raise ImportError("a module of the script's own has the name hotlap: " + known.origin)
    if there is not None:
        return
    spec = spec_from_file_location(
        "hotlap",
        os.path.join(package_dir, "__init__.py"),
        submodule_search_locations=[package_dir],
    )
    module = module_from_spec(spec)
    sys.modules["hotlap"] = module
    spec.loader.exec_module(module)


def _is_hotlap(origin):
    """Tell whether a package of that name is this one, in whatever environment and version."""
    inside = os.path.join(os.path.dirname(origin), "inject", "site", "sitecustomize.py")
    return os.path.basename(origin).startswith("__init__.") and os.path.exists(inside)


def _note(handoff, entry):
    """Add a line to the run's list of interpreters; the list is bounded, losing it is no harm."""
    import json

    path = os.path.join(handoff["run_dir"], "seen.jsonl")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(handle).st_size < 262144:
                os.write(handle, (json.dumps(entry) + "\n").encode())
        finally:
            os.close(handle)
    except OSError:
        pass


def _program(words):
    """Return a command line up to the script: what follows may be anything, secrets too."""
    kept = [str(word)[:200] for word in words[:1]]
    takes_next = False
    for word in words[1:16]:
        kept.append(str(word)[:200])
        option = takes_next or word.startswith("-")
        if kept[-2] == "-m" or not option or (word in ("-c", "-") and not takes_next):
            break
        takes_next = not takes_next and word in ("-m", "-W", "-X", "--check-hash-based-pycs")
    return kept


def _enter():
    path = os.environ.get("HOTLAP_HANDOFF")
    if not path:
        return
    import io
    import json

    with io.open(path, encoding="utf-8") as file:  # noqa: UP020 - Python 2 has it only there
        handoff = json.load(file)
    if handoff.get("format") != 1:
        return
    if sys.version_info < (3, 10):  # noqa: UP036 - a job may start any interpreter
        version = ".".join(str(part) for part in sys.version_info[:3])
        _note(handoff, {"pid": os.getpid(), "argv": [], "too_old": version})
        return
    words = getattr(sys, "orig_argv", [])
    if not any("multiprocessing" in word for word in words[:16]):
        _note(handoff, {"pid": os.getpid(), "argv": _program(words)})
    sys.meta_path.insert(0, _Door(handoff))


_here = _leave_path()
try:  # noqa: SIM105 - contextlib would be one more import in every process
    _enter()
except Exception:
    pass
_chain(_here)
