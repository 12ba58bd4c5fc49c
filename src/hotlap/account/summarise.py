"""Sum a record up into what reports show."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.account.loaders import summarise_loaders
from hotlap.account.machine import summarise_machine
from hotlap.account.missing import Missing
from hotlap.account.plan import plan_summary
from hotlap.account.run_phases import divide, wall
from hotlap.account.standing_out import standing_out
from hotlap.account.steady import count_steps
from hotlap.account.steps import summarise_steps
from hotlap.account.touches import summarise_touches
from hotlap.account.trainers import absence, chain_of, life, stepped, trainers_of
from hotlap.values.phase import RUN_PHASES
from hotlap.values.record import Process, Record
from hotlap.values.summary import Part, ProcessSummary, RunSummary


def summarise(record: Record) -> RunSummary:
    """Return the account of a run.

    Run phases are those of the lowest rank; each trainer has its own besides. Figures of steps
    are of steady state, counts and run phases of the whole run. Works on a run that still goes
    on, up to its last record.
    """
    missing = Missing()
    trainers = trainers_of(record)
    if record.exit_ns is None:
        missing.note(
            "end of the run",
            "the run is still going, or its end was lost; figures reach to its last record",
        )
    summaries = tuple(_trainer(one, trainers, record, missing) for one in trainers)
    machine = summarise_machine(record, trainers, missing)
    phases = _phases(record, trainers, missing)
    steps, source = _horizon(record, trainers, summaries)
    if steps is None:
        missing.note("horizon", _why_no_horizon(record, trainers))
    for words in record.damage:
        missing.note("a part of the record", words)
    return RunSummary(
        id=record.id,
        command=record.command,
        hotlap_version=record.hotlap_version,
        started=record.started,
        finished=record.exit_ns is not None,
        exit_code=record.exit_code,
        wall_ns=wall(record, trainers),
        phases=phases,
        horizon_steps=steps,
        horizon_source=source,
        trainers=summaries,
        machine=machine,
        standing_out=standing_out(summaries, machine, phases),
        not_measured=missing.all(),
        faults=_faults(record),
        absence=absence(record, trainers),
        plan=plan_summary(record, trainers, summaries),
    )


def _trainer(
    process: Process, trainers: Sequence[Process], record: Record, missing: Missing
) -> ProcessSummary:
    steps = count_steps(process)
    begin, end = life(process, trainers, record)
    own = Missing()
    summary = ProcessSummary(
        pid=process.pid,
        host=process.host,
        rank=process.rank,
        local_rank=process.local_rank,
        world_size=process.world_size,
        torch=process.torch,
        device=process.device,
        phases=divide([process], begin, end, Missing()),
        step=summarise_steps(process, steps, own),
        loaders=summarise_loaders(process, own),
        touches=summarise_touches(process, steps.count, steps.wall_ns),
    )
    for what, because in own.all():
        missing.note(what, because)
    return summary


def _phases(record: Record, trainers: Sequence[Process], missing: Missing) -> dict[str, Part]:
    """Return the run phases of the whole run."""
    if not trainers:
        missing.note("run phases", "no process trained")
        return {name: Part(None, None) for name in RUN_PHASES}
    chain = chain_of(trainers)
    beside = [one for one in trainers if one.rank == chain[0].rank and one not in chain]
    if beside:
        missing.note(
            "run phases of all trainers",
            f"{len(beside) + 1} processes trained at the same time; the run's phases are those "
            f"of process {chain[0].pid}",
        )
    return divide(chain, record.spawn_ns, record.exit_ns, missing)


def _horizon(
    record: Record, trainers: Sequence[Process], summaries: Sequence[ProcessSummary]
) -> tuple[int | None, str]:
    """Return the length of the run in steps, and how it is known.

    It is observed when the run came to its end by itself.
    """
    if not trainers or record.exit_code != 0 or record.exit_ns is None:
        return None, "unknown"
    chain = chain_of(trainers)
    if any(process.end_ns is None for process in chain):
        return None, "unknown"
    counts = [own.step.steps for one, own in zip(trainers, summaries, strict=True) if one in chain]
    return (sum(counts), "observed") if sum(counts) else (None, "unknown")


def _why_no_horizon(record: Record, trainers: Sequence[Process]) -> str:
    if not any(stepped(process) for process in trainers):
        return "no step was seen"
    if record.exit_ns is None:
        return "the run has not come to its end"
    return "the run did not come to its end by itself, so its intended length is not known"


def _faults(record: Record) -> tuple[str, ...]:
    return tuple(
        f"process {process.pid}: {fault.site}: {fault.error}"
        for process in record.processes
        for fault in process.faults
    )
