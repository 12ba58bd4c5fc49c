"""What the user's code sets: calls, arguments and assignments that bear on speed.

``CALLS`` and the tables below it say what is looked for. A new entry there is all that a new
setting takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from hotlap.experiment.source_files import Module, SourceFiles, shortened
from hotlap.values.facts import Setting
from hotlap.values.record import Place

_NOTHING: Final = object()

Argument = tuple[int, str, Any]
"""Position, keyword and default of the argument that is a call's value."""

CALLS: Final[dict[str, tuple[str, Argument | None]]] = {
    "set_detect_anomaly": ("detect_anomaly", (0, "mode", True)),
    "detect_anomaly": ("detect_anomaly", (9, "mode", True)),
    "set_num_threads": ("set_num_threads", (0, "int", None)),
    "set_num_interop_threads": ("set_num_interop_threads", (0, "int", None)),
    "set_default_dtype": ("set_default_dtype", (0, "d", None)),
    "set_default_tensor_type": ("set_default_dtype", (0, "t", None)),
    "use_deterministic_algorithms": ("use_deterministic_algorithms", (0, "mode", None)),
    "set_float32_matmul_precision": ("float32_matmul_precision", (0, "precision", None)),
    "set_flush_denormal": ("flush_denormal", (0, "mode", None)),
    "set_grad_enabled": ("set_grad_enabled", (0, "mode", None)),
    "set_sync_debug_mode": ("sync_debug_mode", (0, "debug_mode", None)),
    "set_sharing_strategy": ("sharing_strategy", (0, "new_strategy", None)),
    "set_start_method": ("start_method", (0, "method", None)),
    "no_grad": ("no_grad", None),
    "inference_mode": ("inference_mode", (0, "mode", True)),
    "enable_grad": ("enable_grad", None),
    "torch.compile": ("compile", (9, "mode", True)),
    "autocast": ("autocast", (9, "dtype", True)),
    "GradScaler": ("grad_scaler", None),
    "no_sync": ("no_sync", None),
    "Embedding": ("embedding", (9, "sparse", False)),
    "EmbeddingBag": ("embedding", (9, "sparse", False)),
    "checkpoint_sequential": ("activation_checkpoint", None),
    "torch.utils.checkpoint.checkpoint": ("activation_checkpoint", None),
    "gradient_checkpointing_enable": ("activation_checkpoint", None),
    "gc.collect": ("gc_collect", (0, "generation", None)),
    "gc.disable": ("gc_disable", None),
    "gc.freeze": ("gc_freeze", None),
    "gc.set_threshold": ("gc_threshold", (0, "threshold0", None)),
    "empty_cache": ("empty_cache", None),
    "synchronize": ("synchronize", None),
    "torch.save": ("save", (1, "f", None)),
    "save_checkpoint": ("save", (0, "filepath", None)),
    "deepcopy": ("deepcopy", (0, "x", None)),
    "time.sleep": ("sleep", (0, "seconds", None)),
    "print": ("print", None),
    "clip_grad_norm_": ("clip_grad_norm", (1, "max_norm", None)),
    "clip_grad_value_": ("clip_grad_value", (1, "clip_value", None)),
    "memory_allocated": ("memory_stats", None),
    "memory_summary": ("memory_stats", None),
    "torch.profiler.profile": ("profiler", None),
    "FlopCounterMode": ("dispatch_mode", None),
}
"""Name of a function, or its dotted name where the last part is too common, to the setting's."""

METHODS: Final[dict[str, tuple[str, Argument | None]]] = {
    "eval": ("eval", None),
    "compile": ("compile", None),
    "double": ("double", None),
    "half": ("half", None),
    "bfloat16": ("bfloat16", None),
    "share_memory": ("share_memory", None),
    "share_memory_": ("share_memory", None),
    "pin_memory": ("pin_memory", None),
    "register_comm_hook": ("comm_hook", (1, "hook", None)),
    "register_hook": ("register_hook", None),
}
"""Methods, which count only where they are called on something."""

_LOADER: Final = (
    "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last "
    "timeout worker_init_fn"
).split()
ARGUMENTS: Final[dict[str, tuple[tuple[str, ...], frozenset[str]]]] = {
    "DataLoader": (
        tuple(_LOADER),
        frozenset(
            "batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory "
            "worker_init_fn multiprocessing_context persistent_workers prefetch_factor "
            "pin_memory_device in_order generator".split()
        ),
    ),
    "DistributedDataParallel": (
        (),
        frozenset(
            "find_unused_parameters bucket_cap_mb static_graph gradient_as_bucket_view "
            "broadcast_buffers".split()
        ),
    ),
    "backward": ((), frozenset(("retain_graph", "create_graph"))),
    "grad": ((), frozenset(("retain_graph", "create_graph"))),
    "zero_grad": (("set_to_none",), frozenset(("set_to_none",))),
    "init_process_group": (("backend",), frozenset(("backend",))),
    "Trainer": (
        (),
        frozenset(
            "precision benchmark detect_anomaly deterministic accumulate_grad_batches "
            "log_every_n_steps val_check_interval profiler enable_checkpointing".split()
        ),
    ),
    "TrainingArguments": (
        (),
        frozenset(
            "dataloader_num_workers dataloader_pin_memory dataloader_persistent_workers "
            "dataloader_prefetch_factor gradient_accumulation_steps gradient_checkpointing fp16 "
            "bf16 tf32 torch_compile optim logging_steps save_steps eval_steps group_by_length "
            "ddp_find_unused_parameters use_cpu skip_memory_metrics".split()
        ),
    ),
}
"""Callee to its positional parameters, and the arguments that are settings of the same name."""

OPTIMIZERS: Final = frozenset(
    "Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD LBFGS Muon NAdam RAdam RMSprop Rprop SGD "
    "SparseAdam".split()
)
_OF_OPTIMIZERS: Final = frozenset("foreach fused capturable differentiable".split())
DTYPES: Final = {
    "float64": "float64",
    "double": "float64",
    "DoubleTensor": "float64",
    "bfloat16": "bfloat16",
    "float16": "half",
    "half": "half",
}
"""Attributes of torch and NumPy that name a type."""
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_DTYPES_IN: Final = ("torch", "numpy")
VARIABLES: Final = (
    *("OMP_", "MKL_", "KMP_", "NCCL_", "GLOO_", "TORCH", "PYTORCH_", "CUBLAS_", "CUDNN_"),
    *("CUDA_", "TOKENIZERS_PARALLELISM", "OPENBLAS_", "NUMEXPR_", "MALLOC_"),
)
"""Beginnings of environment variables that bear on speed."""


def _is_optimizer(name: str) -> bool:
    return name.rpartition(".")[2] in OPTIMIZERS and ("optim" in name or "." not in name)


def _arguments_of(name: str) -> list[tuple[tuple[str, ...], frozenset[str]]]:
    """Return the positional parameters and the settings of what is called by a dotted name."""
    last = name.rpartition(".")[2]
    return [
        known
        for callee, known in ARGUMENTS.items()
        if last == callee or (callee == "DataLoader" and last.endswith(callee))
    ]


def settings_in(sources: SourceFiles, file: str) -> Iterator[Setting]:
    """Yield what a file sets, in the order of its lines."""
    module = sources.module(file)
    if module is None or module.tree is None:
        return
    finder = _Finder(module)
    found = [
        (getattr(node, "lineno", 0), name, value, node)
        for node in ast.walk(module.tree)
        for name, value in finder.of(node)
    ]
    found.sort(key=lambda one: (one[0], one[1]))
    for line, name, value, node in found:
        yield Setting(name, value, Place(file, line, finder.function_of(node)))


class _Finder:
    """Looks at the nodes of one file, names resolved by its imports."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._imported: dict[str, str] = {}
        for node in ast.walk(module.tree) if module.tree is not None else ():
            if isinstance(node, ast.Import):
                for one in node.names:
                    if one.asname:
                        self._imported[one.asname] = one.name
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    self._imported[one.asname or one.name] = f"{node.module}.{one.name}"

    def of(self, node: ast.AST) -> Iterator[tuple[str, Any]]:
        """Yield names and values of what a node sets."""
        if isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            yield from self._assignment(node)
        elif isinstance(node, ast.keyword):
            yield from self._keyword(node)
        elif isinstance(node, ast.Attribute):
            yield from self._dtype(node)
        for decorator in getattr(node, "decorator_list", ()):
            known = CALLS.get(self._name(decorator).rpartition(".")[2])
            if known is not None and not isinstance(decorator, ast.Call):
                yield known[0], True

    def function_of(self, node: ast.AST) -> str:
        """Return the name of the function around a node."""
        around = self._module.parents.get(node)
        while around is not None:
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return around.name
            if isinstance(around, ast.Lambda):
                return "<lambda>"
            around = self._module.parents.get(around)
        return "<module>"

    def _is_handling(self, node: ast.AST) -> bool:
        """Tell whether a node stands in an ``except`` clause of its function."""
        around = self._module.parents.get(node)
        while around is not None and not isinstance(around, _SCOPES):
            if isinstance(around, ast.ExceptHandler):
                return True
            around = self._module.parents.get(around)
        return False

    # -- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Iterator[tuple[str, Any]]:
        name = self._name(node.func)
        last = name.rpartition(".")[2]
        known = CALLS.get(name) or CALLS.get(last)
        if known is None and isinstance(node.func, ast.Attribute):
            known = METHODS.get(node.func.attr)
            if known is not None and known[1] is None and (node.args or node.keywords):
                known = None  # `frame.eval("a + b")` is another method of that name
        if known is not None:
            yield known[0], self._value_of(node, known[1])
            if known[0] == "sleep" and self._is_handling(node):
                yield "sleep_after_error", self._value_of(node, known[1])
        if _is_optimizer(name):
            yield "optimizer", last
        for positional, wanted in _arguments_of(name):
            for given, parameter in zip(node.args, positional, strict=False):
                if parameter in wanted and not isinstance(given, ast.Starred):
                    yield parameter, self._literal(given)
        yield from self._dtype_by_name(node, last)
        if name in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
            yield from self._variable(node.args[0], node.args[1])

    def _keyword(self, node: ast.keyword) -> Iterator[tuple[str, Any]]:
        """Yield an argument given by name: a call may span many lines, and it stands on one."""
        call = self._module.parents.get(node)
        if not isinstance(call, ast.Call):
            return
        name = self._name(call.func)
        wanted = [one for _, one in _arguments_of(name)]
        if _is_optimizer(name):
            wanted.append(_OF_OPTIMIZERS)
        if any(node.arg in one for one in wanted):
            yield str(node.arg), self._literal(node.value)

    def _value_of(self, node: ast.Call, argument: Argument | None) -> Any:
        """Return the argument that matters; True for a call that takes none."""
        if argument is None:
            return True
        position, keyword, default = argument
        for one in node.keywords:
            if one.arg == keyword:
                return self._literal(one.value)
        if position < len(node.args) and not any(
            isinstance(one, ast.Starred) for one in node.args[: position + 1]
        ):
            return self._literal(node.args[position])
        return default

    # -- assignments and names -------------------------------------------------------------------

    def _assignment(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign
    ) -> Iterator[tuple[str, Any]]:
        if node.value is None:
            return
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript) and self._name(target.value) == "os.environ":
                yield from self._variable(target.slice, node.value)
            elif isinstance(target, ast.Attribute):
                name = self._name(target)
                if name.startswith("torch.backends."):
                    yield name.removeprefix("torch."), self._literal(node.value)

    def _variable(self, key: ast.expr, value: ast.expr) -> Iterator[tuple[str, Any]]:
        name = self._literal(key)
        if isinstance(name, str) and name.startswith(VARIABLES):
            yield name, self._literal(value)

    def _dtype(self, node: ast.Attribute) -> Iterator[tuple[str, Any]]:
        name = DTYPES.get(node.attr)
        if name is None:
            return
        parent = self._module.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node and node.attr in METHODS:
            return  # `x.double()`: a method, seen as a call
        dotted = self._name(node)
        if dotted.partition(".")[0] in _DTYPES_IN:
            yield name, dotted

    def _dtype_by_name(self, node: ast.Call, last: str) -> Iterator[tuple[str, Any]]:
        """Yield a type that is named by a string: ``dtype="float64"``, ``astype("float64")``."""
        given = [one.value for one in node.keywords if one.arg == "dtype"]
        if last == "astype":
            given += node.args[:1]
        for one in given:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                name = DTYPES.get(one.value)
                if name is not None:
                    yield name, one.value

    def _name(self, node: ast.AST) -> str:
        """Return the dotted name of an expression as imports resolve it; what has none is ``?``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self._imported.get(node.id, node.id))
        else:
            parts.append("?")
        return ".".join(reversed(parts))

    def _literal(self, node: ast.expr) -> Any:
        """Return the value of a literal, else its source text."""
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return shortened(ast.unparse(node))
        if isinstance(value, (bool, int, float, str, type(None))):
            return value
        return shortened(ast.unparse(node))
