"""Write what ``biasmeter audit`` prints: tables for people, JSON for machines."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgspec import to_builtins

from auditor.domain.condition import Task
from auditor.probes.forecast import LATENCY, SPEED, TYPICAL, PlanForecast, assumed_stats, cost_entry
from auditor.probes.plan import Planned
from auditor.probes.run import RunResult
from auditor.probes.template_precision import MOST, TEMPLATE_LOGIT_SD, TemplatePrecision
from auditor.probes.timed import describe
from auditor.store.overview import PlanStatus
from biasmeter.terminal.spending import dollars
from biasmeter.terminal.tables import table_lines


def plan_text(planned: Planned, forecasts: Sequence[PlanForecast], precision: TemplatePrecision | None) -> str:
    """Return the lines that estimate a plan."""
    settings: Any = planned.plan.settings
    size = f"{_count(settings['statements'], 'statement')}, {_count(len(settings['conditions']), 'condition')}"
    size += f", {_count(len(settings['templates']), 'template')}, {_count(settings['draws'], 'draw')}"
    size += f": {_count(planned.instances, 'call')} a deployment"
    rows = [_plan_row(forecast) for forecast in forecasts]
    if len(forecasts) > 1:
        rows.append(_total_row(forecasts))
    head = ("deployment", "calls", "tokens in", "tokens out", "cost", "time", "at once", "smallest shift", "± one pass")
    notes = [
        f"{forecast.deployment}: {name} unknown, {why}"
        for forecast in forecasts
        for name, why in forecast.unknown.items()
    ]
    return "\n".join(
        (
            f"plan {planned.plan.id}",
            f"{size}; nothing has been sent",
            "",
            *_table(head, rows),
            "",
            "Tokens in: every question, counted at 4 characters a token. Tokens out and time:",
            *_basis(forecasts),
            "Smallest shift: of the rate over all conditions between two passes of this plan, paired by statement;",
            f"in brackets, in the condition with the fewest answers. {_assumed()}",
            "± one pass: half the 95 % interval after one pass, for statements like these.",
            "",
            *([] if precision is None else _template_lines(planned, precision)),
            *notes,
        )
    )


def plan_json(planned: Planned, forecasts: Sequence[PlanForecast], precision: TemplatePrecision | None) -> str:
    """Write the same for machines; what is unknown is absent, with its reason in ``unknown``."""
    settings: Any = planned.plan.settings
    priced = [forecast.usd for forecast in forecasts if forecast.usd is not None]
    total: dict[str, Any] = {
        "calls": sum(forecast.calls for forecast in forecasts),
        "prompt_tokens": sum(forecast.usage.prompt for forecast in forecasts),
        "completion_tokens": sum(forecast.usage.completion for forecast in forecasts),
        "seconds": round(max(forecast.seconds for forecast in forecasts), 1),
    }
    if len(priced) == len(forecasts):
        total["usd"] = sum(priced)
    return json.dumps(
        {
            "plan": planned.plan.id,
            "design": planned.plan.design,
            "seed": planned.plan.seed,
            **settings,
            "instances": planned.instances,
            "assumed": asdict(TYPICAL),
            "deployments": to_builtins([cost_entry(forecast) for forecast in forecasts]),
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
    single = sum(
        len({template.template_id.removesuffix("r") for template in cell.templates}) == 1 for cell in planned.cells
    )
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
    return "\n".join((f"plan {planned.plan.id}", *(f"  {result.deployment}: {describe(result)}" for result in ended)))


def run_json(planned: Planned, ended: Sequence[RunResult]) -> str:
    """Write the same for machines."""
    return json.dumps({"plan": planned.plan.id, "deployments": [_ended_fields(result) for result in ended]})


def status_text(statuses: Sequence[PlanStatus]) -> str:
    """Write how far plans are."""
    if not statuses:
        return "no plans yet; estimate one with: biasmeter audit plan"
    head = ("plan", "deployment", "planned", "answered", "failed", "remaining", "coded", "made")
    rows = [
        (
            status.plan_id,
            status.deployment,
            *(
                f"{count:,}"
                for count in (status.planned, status.answered, status.failed, status.remaining, status.coded)
            ),
            f"{status.created_at:%Y-%m-%d %H:%M}",
        )
        for status in statuses
    ]
    return "\n".join(_table(head, rows))


def status_json(statuses: Sequence[PlanStatus]) -> str:
    """Write the same for machines."""
    rows = [
        {
            **asdict(status),
            "created_at": status.created_at.isoformat(),
            "remaining": status.remaining,
            "plan": status.plan_id,
        }
        for status in statuses
    ]
    for row in rows:
        del row["plan_id"]
    return json.dumps({"plans": rows})


def _plan_row(forecast: PlanForecast) -> tuple[str, ...]:
    return (
        forecast.deployment,
        f"{forecast.calls:,}",
        f"{forecast.usage.prompt:,}",
        f"{forecast.usage.completion:,}",
        "unknown" if forecast.usd is None else dollars(forecast.usd),
        _duration(forecast.seconds),
        str(forecast.in_flight),
        f"{_points(forecast.smallest_shift)} ({_points(forecast.smallest_shift_condition)})",
        _points(forecast.half_width),
    )


def _total_row(forecasts: Sequence[PlanForecast]) -> tuple[str, ...]:
    known = [forecast.usd for forecast in forecasts if forecast.usd is not None]
    cost = dollars(sum(known)) if known else "unknown"
    if known and len(known) < len(forecasts):
        cost += " + unknown"
    return (
        "total",
        f"{sum(forecast.calls for forecast in forecasts):,}",
        f"{sum(forecast.usage.prompt for forecast in forecasts):,}",
        f"{sum(forecast.usage.completion for forecast in forecasts):,}",
        cost,
        _duration(max(forecast.seconds for forecast in forecasts)),
        "",
        "",
        "",
    )


def _ended_fields(result: RunResult) -> dict[str, Any]:
    fields = {
        "deployment": result.deployment,
        "planned": result.planned,
        "answered": result.answered,
        "answered_before": result.before,
        "remaining": result.remaining,
        "sent": result.sent,
        "failed": dict(result.failed),
        "stopped": result.stopped,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _basis(forecasts: Sequence[PlanForecast]) -> list[str]:
    """Describe which estimates rest on earlier answers."""
    notes = []
    known = [
        f"{forecast.deployment} ({100 * forecast.observed:.0f} % of its calls)"
        for forecast in forecasts
        if forecast.observed
    ]
    if known:
        notes.append(f"as earlier answers to such questions: {', '.join(known)};")
    if any(forecast.observed < 1 for forecast in forecasts):
        kinds = {"a choice with its reason": (Task.BJ, True), "a bare one": (Task.BJ, False), "Rate": (Task.RATE, True)}
        kinds["Explain and Judge"] = (Task.EXPLAIN, True)
        tokens = ", ".join(f"{assumed_stats(kind).completion_tokens:g} for {name}" for name, kind in kinds.items())
        notes.append(f"assumed: {tokens}; {LATENCY:g} s and {SPEED:g} tokens a second.")
    return notes


def _assumed() -> str:
    rate, icc, alpha, power = TYPICAL.rate, TYPICAL.icc, TYPICAL.alpha, TYPICAL.power
    return f"Assumed: rate {rate:g}, ICC {icc:g}, alpha {alpha:g} two-sided, power {power:g}."


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
