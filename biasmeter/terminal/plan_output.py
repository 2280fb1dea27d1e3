"""Write what ``biasmeter audit`` prints: tables for people, JSON for machines."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgspec import to_builtins

from auditor.domain.condition import Task
from auditor.probes.estimate import LATENCY, SPEED, TYPICAL, PlanEstimate, assumed_stats, cost_entry
from auditor.probes.plan import Planned
from auditor.probes.run import RunResult
from auditor.probes.template_precision import MOST, TEMPLATE_LOGIT_SD, TemplatePrecision
from auditor.probes.timed import describe
from auditor.store.overview import PlanStatus
from biasmeter.terminal.spending import dollars
from biasmeter.terminal.tables import table_lines


def plan_text(planned: Planned, estimates: Sequence[PlanEstimate], precision: TemplatePrecision | None) -> str:
    """Return the lines that estimate a plan."""
    settings: Any = planned.plan.settings
    size = f"{_count(settings['statements'], 'statement')}, {_count(len(settings['conditions']), 'condition')}"
    size += f", {_count(len(settings['templates']), 'template')}, {_count(settings['draws'], 'draw')}"
    size += f": {_count(planned.instances, 'call')} a deployment"
    rows = [_plan_row(one) for one in estimates]
    if len(estimates) > 1:
        rows.append(_total_row(estimates))
    head = ("deployment", "calls", "tokens in", "tokens out", "cost", "time", "at once", "smallest shift", "± one pass")
    notes = [f"{one.deployment}: {name} unknown, {why}" for one in estimates for name, why in one.unknown.items()]
    return "\n".join(
        (
            f"plan {planned.plan.id}",
            f"{size}; nothing has been sent",
            "",
            *_table(head, rows),
            "",
            "Tokens in: every question, counted at 4 characters a token. Tokens out and time:",
            *_basis(estimates),
            "Smallest shift: of the rate over all conditions between two passes of this plan, paired by statement;",
            f"in brackets, in the condition with the fewest answers. {_assumed()}",
            "± one pass: half the 95 % interval after one pass, for statements like these.",
            "",
            *([] if precision is None else _template_lines(planned, precision)),
            *notes,
        )
    )


def plan_json(planned: Planned, estimates: Sequence[PlanEstimate], precision: TemplatePrecision | None) -> str:
    """Write the same for machines; what is unknown is absent, with its reason in ``unknown``."""
    settings: Any = planned.plan.settings
    priced = [one.usd for one in estimates if one.usd is not None]
    total: dict[str, Any] = {
        "calls": sum(one.calls for one in estimates),
        "prompt_tokens": sum(one.usage.prompt for one in estimates),
        "completion_tokens": sum(one.usage.completion for one in estimates),
        "seconds": round(max(one.seconds for one in estimates), 1),
    }
    if len(priced) == len(estimates):
        total["usd"] = sum(priced)
    return json.dumps(
        {
            "plan": planned.plan.id,
            "design": planned.plan.design,
            "seed": planned.plan.seed,
            **settings,
            "instances": planned.instances,
            "assumed": asdict(TYPICAL),
            "deployments": to_builtins([cost_entry(estimate) for estimate in estimates]),
            "total": total,
            **({} if precision is None else {"template_precision": _template_fields(precision)}),
        }
    )


def _template_fields(precision: TemplatePrecision) -> dict[str, Any]:
    return {
        "components": asdict(precision.spread),
        "half_widths": {str(templates): width for templates, width in precision.half_widths.items()},
        "needed": {f"{claim:g}": needed for claim, needed in precision.needed.items() if needed is not None},
    }


def _template_lines(planned: Planned, precision: TemplatePrecision) -> list[str]:
    """Describe how many templates the difference of two conditions needs."""
    rows = [
        ("templates for each condition", *map(str, precision.half_widths)),
        ("± difference of two conditions", *map(_points, precision.half_widths.values())),
    ]
    claims = [
        f"{100 * claim:g} pp: {f'more than {MOST}' if needed is None else needed}"
        for claim, needed in precision.needed.items()
    ]
    spread = precision.spread
    if spread.source:
        source = f"The SD of templates is {_points(math.sqrt(spread.template))}, as in {spread.source}."
    else:
        source = f"Assumed: an SD of templates of {TEMPLATE_LOGIT_SD:g} on the logit scale, which is "
        source += f"{_points(math.sqrt(spread.template))} here; --components takes it from an analysis."
    single = sum(len({one.template_id.removesuffix("r") for one in cell.templates}) == 1 for cell in planned.cells)
    lines = [
        *table_lines(rows, right=range(1, len(rows[0]))),
        f"Templates: half the 95 % interval over all templates, not only those asked. {source}",
        f"Templates that are needed to tell a difference from 0: {', '.join(claims)}.",
    ]
    if single:
        lines.append(
            f"{_count(single, 'condition')} of this plan: one template. What is found there holds for this template."
        )
    return lines


def run_text(planned: Planned, ended: Sequence[RunResult]) -> str:
    """Return the lines that report a run."""
    return "\n".join((f"plan {planned.plan.id}", *(f"  {one.deployment}: {describe(one)}" for one in ended)))


def run_json(planned: Planned, ended: Sequence[RunResult]) -> str:
    """Write the same for machines."""
    return json.dumps({"plan": planned.plan.id, "deployments": [_ended_fields(one) for one in ended]})


def status_text(found: Sequence[PlanStatus]) -> str:
    """Write how far plans are."""
    if not found:
        return "no plans yet; estimate one with: biasmeter audit plan"
    head = ("plan", "deployment", "planned", "answered", "failed", "remaining", "coded", "made")
    rows = [
        (
            one.plan_id,
            one.deployment,
            *(f"{count:,}" for count in (one.planned, one.answered, one.failed, one.remaining, one.coded)),
            f"{one.created_at:%Y-%m-%d %H:%M}",
        )
        for one in found
    ]
    return "\n".join(_table(head, rows))


def status_json(found: Sequence[PlanStatus]) -> str:
    """Write the same for machines."""
    rows = [
        {**asdict(one), "created_at": one.created_at.isoformat(), "remaining": one.remaining, "plan": one.plan_id}
        for one in found
    ]
    for row in rows:
        del row["plan_id"]
    return json.dumps({"plans": rows})


def _plan_row(one: PlanEstimate) -> tuple[str, ...]:
    return (
        one.deployment,
        f"{one.calls:,}",
        f"{one.usage.prompt:,}",
        f"{one.usage.completion:,}",
        "unknown" if one.usd is None else dollars(one.usd),
        _duration(one.seconds),
        str(one.in_flight),
        f"{_points(one.smallest_shift)} ({_points(one.smallest_shift_condition)})",
        _points(one.half_width),
    )


def _total_row(estimates: Sequence[PlanEstimate]) -> tuple[str, ...]:
    known = [one.usd for one in estimates if one.usd is not None]
    cost = dollars(sum(known)) if known else "unknown"
    if known and len(known) < len(estimates):
        cost += " + unknown"
    return (
        "total",
        f"{sum(one.calls for one in estimates):,}",
        f"{sum(one.usage.prompt for one in estimates):,}",
        f"{sum(one.usage.completion for one in estimates):,}",
        cost,
        _duration(max(one.seconds for one in estimates)),
        "",
        "",
        "",
    )


def _ended_fields(one: RunResult) -> dict[str, Any]:
    fields = {
        "deployment": one.deployment,
        "planned": one.planned,
        "answered": one.answered,
        "answered_before": one.before,
        "remaining": one.remaining,
        "sent": one.sent,
        "failed": dict(one.failed),
        "stopped": one.stopped,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _basis(estimates: Sequence[PlanEstimate]) -> list[str]:
    """Describe which estimates rest on earlier answers."""
    notes = []
    known = [f"{one.deployment} ({100 * one.observed:.0f} % of its calls)" for one in estimates if one.observed]
    if known:
        notes.append(f"as earlier answers to such questions: {', '.join(known)};")
    if any(one.observed < 1 for one in estimates):
        kinds = {"a choice with its reason": (Task.BJ, True), "a bare one": (Task.BJ, False), "Rate": (Task.RATE, True)}
        kinds["Explain and Judge"] = (Task.EXPLAIN, True)
        tokens = ", ".join(f"{assumed_stats(kind).completion_tokens:g} for {name}" for name, kind in kinds.items())
        notes.append(f"assumed: {tokens}; {LATENCY:g} s and {SPEED:g} tokens a second.")
    return notes


def _assumed() -> str:
    one = TYPICAL
    return f"Assumed: rate {one.rate:g}, ICC {one.icc:g}, alpha {one.alpha:g} two-sided, power {one.power:g}."


def _points(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f} pp"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: words to the left, numbers to the right."""
    number = [
        at for at in range(len(head)) if all(row[at][:1].isdigit() or row[at] in {"", "-", "unknown"} for row in rows)
    ]
    return list(table_lines([head, *rows], right=number))
