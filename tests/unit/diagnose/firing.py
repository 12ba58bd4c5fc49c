"""Facts made by hand that fire each rule, by its code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotlap.values.facts import Facts, Setting, WhatIf, WorkerPoint
from hotlap.values.summary import Part
from hotlap.values.trial import ThreadEntry
from unit.diagnose.made import (
    HEALTHY,
    HEALTHY_STEP,
    SECOND,
    entry,
    facts,
    line,
    loader,
    operator,
    place,
    process,
    retained,
    run,
)

WAITING = {"data_wait": 0.6, "forward": 0.15, "backward": 0.2}
MODEL = (
    entry("forward", 30, 0.15, "forward", leaf="torch.nn.modules.linear.Linear.forward"),
    entry("backward", 12, 0.20, leaf="torch.autograd.graph._engine_run_backward"),
)


def waiting(*profile: Any, workers: int = 0, **more: Any) -> Facts:
    """Return facts of a training that waits for data 60 % of its time."""
    summary = run(WAITING, loaders=(loader(workers),))
    return facts(summary, *profile, *MODEL, **more)


def getitem(state: str = "working", text: str = "np.sort(x)", share: float = 0.55) -> Any:
    return entry("data_wait", 40, share, "Photos.__getitem__", state=state, expression=text)


def curve(*rates: float) -> tuple[WorkerPoint, ...]:
    return tuple(WorkerPoint(k, rate, rate * 0.97, rate * 1.03) for k, rate in enumerate(rates))


def stream_of(cpu_ns: int) -> Facts:
    """Return facts of two workers at a stream. cpu_ns: of each for a batch of 32."""
    plain = loader(2)
    workers = replace(plain, iterable=True, split={**plain.split, "cpu": Part(cpu_ns, 1.0)})
    return facts(
        run(WAITING, loaders=(workers,)),
        entry("data_wait", 40, 0.5, "Rows.parse", role="worker", expression="json.loads(line)"),
        *MODEL,
        curve=curve(1000.0, 900.0, 950.0),
    )


def steps_of(*parts: tuple[str, float]) -> dict[str, float]:
    return dict(parts)


BUFFERS = "torch.nn.parallel.distributed.DistributedDataParallel._distributed_broadcast_coalesced"
SLOW = WhatIf("loader_workers", 2, 1.6, 1.5, 1.7, acted=True)
HEAVY = tuple(range(10, 0, -1))

PENALTY = facts(
    run({"forward": 0.08, "backward": 0.6, "optimizer": 0.05}),
    entry("forward", 30, 0.07, "forward", leaf="torch.nn.modules.linear.Linear.forward"),
    entry("other", 40, 0.2, "penalty", expression="c @ c.t()", callers=(place(11),)),
    entry("backward", 12, 0.6, leaf="torch.autograd.graph._engine_run_backward"),
    entry("optimizer", 13, 0.05, leaf="torch.optim.adam.Adam.step"),
    operators=(
        operator(40, "aten::mm", 1, 9e6, phase="other"),
        operator(12, "aten::mm", 2, 9e6, phase="backward", forward=40),
        operator(12, "aten::mm", 2, 1e6, phase="backward", forward=30),
    ),
)
"""A penalty beside the model, with nine tenths of the backward pass."""

THROUGH = line(40, "penalty = sum(p.pow(2).sum() for p in model.parameters())")

STREAM = stream_of(64_000_000)
"""Two workers at a stream, each of which takes 2 ms for a sample that takes 1 ms alone."""

FIRES: dict[str, Facts] = {
    "HL101": waiting(getitem()),
    "HL102": waiting(getitem("blocked", "time.sleep(0.01)")),
    "HL103": waiting(getitem(), what_ifs=(SLOW,)),
    "HL104": facts(
        run(WAITING, loaders=(loader(8, {"runqueue": 0.5}),)),
        *MODEL,
        what_ifs=(WhatIf("loader_workers", 2, 1.4, 1.3, 1.5, acted=True),),
    ),
    "HL106": waiting(
        entry("data_wait", 50, 0.5, "collate", expression="torch.tensor(rows)"),
    ),
    "HL107": facts(
        run(WAITING, loaders=(loader(2, {"ipc": 0.5}),)),
        entry("data_wait", 10, 0.5, leaf="multiprocessing.queues.Queue.get"),
        *MODEL,
    ),
    "HL108": waiting(
        getitem(),
        sample_ns={"p50": 1_000_000, "p99": 90_000_000, "max": 99_000_000, "mean": 4_000_000},
    ),
    "HL109": waiting(entry("epoch_edge", 60, 0.2, "OwnSampler.__iter__", expression="sorted(w)")),
    "HL110": facts(
        run(WAITING, phases={"epoch_edge": 0.3}, loaders=(loader(2),)),
        entry("epoch_edge", 10, 0.3, leaf="multiprocessing.popen_fork.Popen._launch"),
        *MODEL,
    ),
    "HL112": facts(
        run(WAITING, loaders=(loader(2),)),
        *MODEL,
        what_ifs=(WhatIf("worker_threads", 1, 1.5, 1.4, 1.6, acted=True),),
    ),
    "HL113": waiting(
        entry("data_wait", 41, 0.55, "Rows.__getitem__"), sample_ns={"p50": 4_000, "mean": 5_000}
    ),
    "HL117": STREAM,
    "HL405": facts(
        run(HEALTHY_STEP, phases={"evaluation": 0.3}),
        *HEALTHY,
        entry(
            "evaluation", 70, 0.3, "judge", expression="log.info(text)", leaf="logging.Logger.info"
        ),
        defaults={"log_handlers": ("tea", 12)},
    ),
    "HL301": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        defaults={"anomaly": True},
        settings=(Setting("detect_anomaly", True, place(3)),),
        what_ifs=(WhatIf("anomaly_mode", False, 2.0, 1.9, 2.1, acted=True),),
    ),
    "HL302": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        operators=(operator(30, "aten::addmm", 4, 1e7, dtype="double"),),
    ),
    "HL303": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        what_ifs=(WhatIf("intra_op_threads", 2, 1.5, 1.4, 1.6, acted=True),),
    ),
    "HL304": facts(
        run(HEALTHY_STEP),
        entry("forward", 33, 0.3, "forward", callers=(place(11),)),
        source={33: line(33, "h = torch.tanh(x[t] + h)", (32,), "forward")},
        operators=(operator(33, "aten::tanh", 300, 3e6), operator(33, "aten::add", 300, 2e6)),
    ),
    "HL305": facts(
        run({"optimizer": 0.4, "forward": 0.3, "backward": 0.3}),
        *HEALTHY,
        what_ifs=(WhatIf("fused_optimizer", True, 1.4, 1.3, 1.5, acted=True),),
    ),
    "HL306": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        operators=(operator(30, "aten::addmm", 4, 1e7, dtype="bfloat16"),),
    ),
    "HL307": facts(
        run(HEALTHY_STEP, phases={"compile": 0.4}),
        entry("compile", 11, 0.4, over_time=(3,) * 12),
    ),
    "HL308": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        what_ifs=(WhatIf("flush_denormal", True, 1.8, 1.7, 1.9, acted=True),),
    ),
    "HL309": facts(
        run(HEALTHY_STEP),
        entry("forward", 35, 0.3, "forward", expression="np.linalg.inv(a)"),
    ),
    "HL312": facts(
        run(HEALTHY_STEP),
        entry("forward", 30, 0.2, "Net.forward", callers=(place(10),)),
        entry("forward", 31, 0.2, "Net.forward", callers=(place(15),)),
        entry("backward", 16, 0.3),
        source={10: line(10, "out = model(x)"), 15: line(15, "again = model(x)")},
    ),
    "HL313": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        defaults={"trainable_elements": 1000, "unheld_elements": 900},
    ),
    "HL314": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        defaults={"padded_width": 128.0, "padded_longest": 40.0, "padded_mean": 20.0},
    ),
    "HL315": facts(
        run({"optimizer": 0.6, "forward": 0.1, "backward": 0.2}),
        entry("optimizer", 13, 0.6, leaf="torch.optim.adam.Adam.step"),
        defaults={"trainable_elements": 1000, "unheld_elements": 0, "table_elements": 950},
    ),
    "HL114": facts(
        run(WAITING, loaders=(loader(0),)),
        getitem(text="np.array(self.table[i])"),
        *MODEL,
        defaults={"scattered_arrays": [["table", [2000, 12000], True]]},
    ),
    "HL115": facts(
        run(HEALTHY_STEP, phases={"evaluation": 0.3}, loaders=(loader(0, line=5),)),
        entry("evaluation", 50, 0.25, "read", callers=(place(5, "main"), place(90, "main"))),
        *HEALTHY,
    ),
    "HL116": facts(
        run(WAITING, loaders=(loader(0),)),
        entry("data_wait", 40, 0.5, "load", callers=(place(60, "Photos.__getitem__"),)),
        *MODEL,
        defaults={"function_caches": [["train.py", 38, "load", 90, 1200, 64, 64]]},
    ),
    "HL326": facts(
        run(HEALTHY_STEP),
        entry("forward", 35, 0.3, "forward", expression="self.attn(h, h, h)"),
        *HEALTHY,
        operators=(
            operator(35, "aten::bmm", 4, 3e6),
            operator(35, "aten::_softmax", 2, 3e6),
        ),
        what_ifs=(WhatIf("attention_weights", False, 1.8, 1.7, 1.9, acted=True),),
    ),
    "HL327": facts(
        run(HEALTHY_STEP),
        *HEALTHY,
        defaults={
            "discarded_share": 0.4,
            "discarded": ["train.py", 88, "main", 50_000_000, 30_000_000],
        },
    ),
    "HL328": facts(
        run(HEALTHY_STEP),
        entry("forward", 35, 0.3, "forward", expression="self.head(hidden)"),
        *HEALTHY,
        operators=(
            operator(35, "aten::addmm", 4, 8e6),
            operator(30, "aten::addmm", 4, 4e6),
        ),
        defaults={"unused_rows": [["train.py", 35, "forward", 800, 720, 0.9, 3]]},
    ),
    "HL317": facts(
        run({"forward": 0.3, "backward": 0.6}),
        entry("backward", 12, 0.6, leaf="torch.autograd.graph._engine_run_backward"),
        operators=(
            operator(30, "aten::addmm", 4, 4e6),
            operator(12, "aten::addmm", 4, 4e6, phase="backward"),
            operator(12, "aten::mm", 8, 8e6, phase="backward"),
        ),
        settings=(Setting("gradient_checkpointing", True, place(7)),),
    ),
    "HL318": PENALTY,
    "HL320": facts(
        run({"forward": 0.05, "backward": 0.85}),
        entry("forward", 30, 0.04, "forward", callers=(place(11),)),
        entry("backward", 43, 0.2, "slopes", callers=(place(11),)),
        entry("backward", 12, 0.6, leaf="torch.autograd.graph._engine_run_backward"),
        entry("optimizer", 13, 0.03, leaf="torch.optim.adam.Adam.step"),
        source={43: line(43, "grad(u[k], x, create_graph=True)", (42,), "slopes")},
        counts={"backwards_per_step": 51.0, "forwards_per_step": 4.0},
    ),
    "HL321": facts(
        run(HEALTHY_STEP),
        *HEALTHY[2:],
        entry("forward", 94, 0.15, "main", expression="update_bn(loader, average)"),
        entry("data_wait", 94, 0.02, "main", expression="update_bn(loader, average)"),
        entry("forward", 30, 0.25, "forward", callers=(place(11),)),
    ),
    "HL319": facts(
        run({"forward": 0.35, "backward": 0.6}),
        entry(
            "forward",
            33,
            0.3,
            "forward",
            leaf="torch.nn.utils.parametrizations._Orthogonal.forward",
            callers=(place(11),),
        ),
        entry("backward", 12, 0.6, leaf="torch.autograd.graph._engine_run_backward"),
        source={33: line(33, "state = self.turn(state)", (32,), "forward")},
    ),
    "HL316": retained(backwards=16.0),
    "HL401": facts(
        run(HEALTHY_STEP),
        entry("logging", 18, 0.2, expression="print(loss)", state="blocked"),
    ),
    "HL402": facts(run(HEALTHY_STEP), entry("other", 19, 0.3, expression="copy.deepcopy(state)")),
    "HL403": facts(run(HEALTHY_STEP), *HEALTHY, counts={"gc_ns": 20e9, "collections": 1000}),
    "HL322": replace(PENALTY, source={"train.py:40": THROUGH}),
    "HL324": facts(
        run({"forward": 0.4, "backward": 0.5}),
        entry("forward", 30, 0.2, leaf="torch.utils.flop_counter.FlopCounterMode._count_flops"),
        entry("forward", 31, 0.2, leaf="torch._ops.OpOverload.__call__"),
        entry("backward", 12, 0.5, leaf="torch._ops.OpOverload.__call__"),
    ),
    "HL325": facts(
        run({"forward": 0.4, "backward": 0.5}),
        *(
            entry(phase, number, share, "closure", callers=(place(caller, "learn"),))
            for phase, number, share in (("forward", 40, 0.2), ("backward", 63, 0.25))
            for caller in (66, 67)
        ),
        entry("optimizer", 67, 0.05, "learn", leaf="torch.optim.sgd.SGD.step"),
    ),
    "HL404": facts(
        run({"forward": 0.6, "backward": 0.3}),
        entry("forward", 30, 0.6, "forward", state="blocked"),
        entry("backward", 12, 0.3, state="blocked"),
        threads=(ThreadEntry("monitor", "tool.poll", place(4, "poll"), 6 * SECOND, 10 * SECOND),),
    ),
    "HL501": facts(
        run(
            {},
            trainers=(
                process({"backward": 0.6, "forward": 0.2}, rank=0),
                process({"backward": 0.2, "forward": 0.6}, rank=1),
            ),
        ),
        *HEALTHY,
    ),
    "HL502": facts(
        run(
            {},
            trainers=tuple(process({"backward": 0.7, "forward": 0.2}, rank=k) for k in (0, 1)),
        ),
        entry("backward", 12, 0.7, state="blocked"),
        counts={"backwards_per_step": 4.0},
    ),
    "HL503": facts(
        run({}, trainers=tuple(process({"communication": 0.5}, rank=k) for k in (0, 1))),
        entry("communication", 16, 0.5, state="blocked", expression="dist.all_reduce(loss)"),
    ),
    "HL504": facts(
        run({}, trainers=tuple(process({"communication": 0.5}, rank=k) for k in (0, 1))),
        entry("communication", 16, 0.5, state="blocked", expression="model(x)", leaf=BUFFERS),
    ),
    "HL601": facts(
        run(HEALTHY_STEP),
        entry("other", 22, 0.4, expression="sum(history)", over_time=HEAVY[::-1]),
        entry("backward", 12, 0.4, over_time=HEAVY),
        step_series=tuple(1_000_000 + 10_000 * i + (i % 7) * 20_000 for i in range(400)),
    ),
    "HL602": facts(
        run(HEALTHY_STEP, phases={"evaluation": 0.3}),
        entry("evaluation", 70, 0.3, "evaluate", callers=(place(9),)),
        settings=(Setting("optimizer", "Adam", place(3)),),
    ),
    "HL701": facts(
        run(HEALTHY_STEP, phases={"checkpoint": 0.3}),
        entry("checkpoint", 17, 0.3, expression="torch.save(model.state_dict(), path)"),
    ),
    "HL702": facts(
        run(HEALTHY_STEP, phases={"evaluation": 0.5}),
        entry("evaluation", 70, 0.5, "evaluate", callers=(place(9),)),
    ),
    "HL703": facts(
        run(HEALTHY_STEP, phases={"start_up": 0.4}),
        entry("start_up", 80, 0.3, "build", expression="hashlib.sha256(data)"),
    ),
    "HL705": facts(
        run(HEALTHY_STEP, phases={"shut_down": 0.3}),
        entry("shut_down", 90, 0.3, "report", expression="json.dumps(rows)"),
    ),
    "HL901": facts(run(HEALTHY_STEP), entry("other", 19, 0.3, expression="strange(thing)")),
}
