"""`penstock explain JOB`: every number behind a decision, as the formula with its values in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from penstock.interfaces.cli.output import console, make_table, show_json
from penstock.interfaces.cli.tools import HERE, Output, OutputKind, Profile, Project, tools_of
from penstock.interfaces.states import count_threads, describe_action, format_clock, format_count
from penstock.model.decisions import Decision, Evidence, JobProposal
from penstock.model.errors import MissingError, SpecError
from penstock.model.status import RunHeader
from penstock.model.units import format_rate, format_seconds


def explain(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    job: Annotated[str, typer.Argument(help="The job's name.")],
    run: Annotated[
        str | None, typer.Option("--run", help="A run's id; the newest when none is given.")
    ] = None,
    decision: Annotated[
        str | None, typer.Option("--decision", help="A decision's id; the newest about the job.")
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only a decision that changed the job.")] = False,
    newest: Annotated[
        bool, typer.Option("--newest", help="The newest round, also when it changed nothing.")
    ] = False,
    project: Project = HERE,
    profile: Profile = None,
    output: Output = OutputKind.TABLE,
) -> None:
    """Print the numbers behind a job's size.

    It shows the newest decision that changed the job, as the formula with its values in it, and what the newest round
    says now; the newest round alone where nothing changed yet.

    Example: penstock explain count
    """
    if changed and newest:
        raise SpecError("--newest", True, "stands beside --changed", "keep one of the two")
    history = tools_of(ctx).services.runs(project, profile).history(run)
    now = _find(history.decisions, history.header, job, decision, changed)
    found, proposal = now
    if not (changed or newest or decision) and not _acts_on(found, job):
        found, proposal = _newest_change(history.decisions, job) or now
    if output is OutputKind.JSON:
        show_json({"run": history.header.run, "decision": _without_proposals(found), "proposal": proposal})
        return
    if found is not now[0]:
        clock = format_clock(now[0].at - history.header.started_at)
        typer.echo(f"now, at {clock}: {count_threads(now[1].threads)}. {now[1].reason}\n")
    typer.echo(
        f"{job} in run {history.header.run} ({history.header.pipeline}), {found.strategy}: {found.verdict}"
    )
    typer.echo(f"decision {found.id} at {format_clock(found.at - history.header.started_at)}: {found.reason}")
    typer.echo(f"\n{proposal.reason}\n\n{proposal.formula}\n")
    console().print(make_table(describe_evidence(proposal), ("number", "value", "means")))
    if proposal.evidence.stages:
        typer.echo("")
        console().print(
            make_table(
                _stages(proposal.evidence), ("stage", "useful", "at_most", "largest_piece", "per_task")
            )
        )
    for action in found.actions:
        if getattr(action, "job", job) == job:
            typer.echo(f"\ndone: {describe_action(action)}")
    for text in found.skipped:
        typer.echo(f"passed over: {text}")


def _acts_on(decision: Decision, job: str) -> bool:
    return any(getattr(action, "job", None) == job for action in decision.actions)


def _newest_change(decisions: Sequence[Decision], job: str) -> tuple[Decision, JobProposal] | None:
    """The newest decision that changed the job, with what it said of it."""
    for each in reversed(decisions):
        proposal = next((p for p in each.proposals if p.job == job), None)
        if proposal is not None and _acts_on(each, job):
            return each, proposal
    return None


def _find(
    decisions: tuple[Decision, ...], header: RunHeader, job: str, wanted: str | None, changed: bool
) -> tuple[Decision, JobProposal]:
    """The decision that is asked for, and what it says of the job."""
    if job not in header.jobs:
        raise MissingError(
            f"Run {header.run} has no job {job!r} (there are: {', '.join(header.jobs)}); name one of these."
        )
    for each in reversed(decisions):
        proposal = next((p for p in each.proposals if p.job == job), None)
        if proposal is None or (wanted is not None and each.id != wanted):
            continue
        if changed and not _acts_on(each, job):
            continue
        return each, proposal
    if wanted is not None:
        raise MissingError(
            f"Run {header.run} has no decision {wanted!r} about {job!r}; leave --decision out for the newest."
        )
    what = "changed" if changed else "was decided about"
    raise MissingError(
        f"Nothing {what} {job!r} in run {header.run} yet; decisions begin when its first window is full."
    )


def describe_evidence(proposal: JobProposal) -> list[dict[str, str]]:
    """Each number with its unit and what it means."""
    held = proposal.evidence
    rows = [
        ("threads now", str(proposal.threads), "p"),
        (
            "threads proposed",
            str(proposal.proposed),
            "inside the job's own limits, before the slots are shared"
            + ("" if proposal.limit == "none" else f"; limit: {proposal.limit}"),
        ),
        ("threads steady", str(proposal.steady), "without the backlog's share: where it returns"),
        ("target rate", _rate(held.target_rate), "records that must be taken in, from demand"),
        (
            "backlog",
            format_count(held.backlog_records),
            "B: records not yet committed",
        ),
        ("backlog rate", _rate(held.backlog_rate), "B / t: its share of demand"),
        ("true rate", _rate(held.true_rate), "records per second of useful time, of one thread"),
        ("observed rate", _rate(held.observed_rate), "records per second of elapsed time"),
        ("overhead", _seconds(held.overhead_seconds), "h: the part of a batch that no thread shortens"),
        ("objective", _seconds(held.objective_seconds), "L: the longest that a batch may take"),
        ("predicted batch", _seconds(held.predicted_batch_seconds), "D(p) at the proposed size"),
        (
            "target correction",
            f"{held.target_correction:g}",
            "factor of the target-ratio rule; 1 when not applied",
        ),
        ("rates' age", _seconds(held.window_age_seconds), "0 when measured in this window"),
    ]
    rows += [
        (f"selectivity to {t}", "-" if math.isnan(s) else f"{s:.4g}", "records out per record in")
        for t, s in held.selectivity.items()
    ]
    return [{"number": name, "value": value, "means": means} for name, value, means in rows]


def _stages(held: Evidence) -> list[dict[str, str]]:
    return [
        {
            "stage": str(stage.ordinal),
            "useful": _seconds(stage.useful_seconds),
            "at_most": "threads" if stage.ceiling is None else f"{stage.ceiling} Spark tasks",
            "largest_piece": _seconds(stage.unit_seconds),
            "per_task": _seconds(stage.task_seconds),
        }
        for stage in held.stages
    ]


def _without_proposals(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "at": decision.at,
        "strategy": decision.strategy,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "actions": [
            {"kind": type(a).__name__, **{n: getattr(a, n) for n in a.__slots__}} for a in decision.actions
        ],
        "skipped": decision.skipped,
    }


def _rate(value: float) -> str:
    return format_rate(value)


def _seconds(value: float) -> str:
    return "-" if math.isnan(value) else format_seconds(value)
