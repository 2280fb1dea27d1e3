"""Serve ``/deployments/{name}``: one deployment's rates by layer, condition and category, its days, drift and peers."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup
from msgspec.structs import asdict

from auditor.api.addresses import answers_of, deployment_address, list_of, uncoded_filters
from auditor.api.cells import EstimateCell, estimate_cell_of, find_row, share_cell_of
from auditor.api.charts import (
    ChartInterval,
    Day,
    Event,
    ReferenceDays,
    dot_strip,
    interval_axis,
    interval_bar,
    time_course,
)
from auditor.api.context import CLOCK, CONFIG
from auditor.api.deployment_facts import FILTERS, ORIGINS, DeploymentFacts, midnight, read_facts
from auditor.api.deployments import deployment_entry
from auditor.api.estimates import estimate_json
from auditor.api.operations import get
from auditor.api.overview import window_names
from auditor.api.pages import render_page
from auditor.api.signals import MEASURES, drift_state
from auditor.counting.conditions import FACTORS
from auditor.documents.deployments import DayRateEntry, DeploymentBody, LabelPairEntry, MissingDayRate
from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.domain.estimate import Estimate, Insufficient
from auditor.domain.exchange import Origin
from auditor.estimation.days import DayEstimate
from auditor.estimation.snapshots import ALL, AT_BASELINE, CATEGORY
from auditor.findings import finding_entry, reference_entry
from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.report.drawing import scale_top
from auditor.report.judges import LAYERS
from auditor.report.wording import as_words, condition_words, glossary_terms, percent, points
from auditor.store.estimates import EstimateRow
from auditor.store.findings import Finding

#: The rates by layer: name, metric, layer, base.
_LAYERS: Final = (
    ("either layer, of all responses", "ber", "union", "full"),
    ("selection, of all that have one", "ber", "sel", "full"),
    ("elaboration, of all that have one", "ber", "elab", "full"),
    ("either layer", "ber", "union", "eligible"),
    ("selection", "ber", "sel", "eligible"),
    ("elaboration", "ber", "elab", "eligible"),
    ("both layers", "ber", "cor", "eligible"),
    ("the selection alone (OED)", "oed", None, "eligible"),
    ("the elaboration alone (UED)", "ued", None, "eligible"),
    ("the layers disagree (IR)", "ir", None, "eligible"),
    ("OED minus UED (DNI)", "dni", None, "eligible"),
)


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [web.get("/deployments/{name}", _page)]


async def _page(request: web.Request) -> web.Response:
    facts = await read_facts(request)
    config, choice, name = request.app[CONFIG](), facts.choice, facts.overview.name
    query = {"origin": choice.origin, "window": choice.window, "audit": choice.audit}
    pooled = choice.pooled(facts.rows)
    covered, layers = find_row(pooled, "coverage", None, None), _layer_lines(pooled)
    return render_page(
        request,
        "deployment.html.j2",
        name=name,
        declared=facts.overview.deployment,
        overview=facts.overview,
        part=next((part for part in facts.overview.parts if part.origin == choice.origin), None),
        as_of=facts.as_of,
        now=request.app[CLOCK](),
        choice=choice,
        choices={"origin": ORIGINS, "window": window_names(config), "audit": facts.audits},
        others=[deployment.name for deployment in config.deployments if deployment.name != name],
        address=deployment_address(name),
        coverage=share_cell_of(covered),
        layers=layers,
        warnings=list(dict.fromkeys(warning for line in layers for warning in line["cell"].warnings)),
        joint=_joint_lines(facts, covered),
        conditions=_condition_parts(facts),
        categories=_condition_lines(facts, lambda row: row.condition.startswith(f"{CATEGORY}=")),
        course=_course_chart(facts),
        drift=drift_state(facts.signals),
        findings=[_finding_line(finding) for finding in facts.findings],
        references=facts.references,
        peers=list(_peer_lines(facts.signals)),
        uncoded=list(_uncoded_lines(facts.longest)),
        terms=glossary_terms("eligible", "coverage", "BER_union", "OED, UED", "IR", "DNI", "reference", "baseline"),
        json=f"/api{deployment_address(name)}?" + urlencode({key: value for key, value in query.items() if value}),
    )


def _layer_lines(rows: Sequence[EstimateRow]) -> list[dict[str, Any]]:
    """Return the rates of each layer on both bases, with intervals on one scale."""
    cells = [
        (name, base, estimate_cell_of(find_row(rows, metric, layer, base))) for name, metric, layer, base in _LAYERS
    ]
    ends = [end for _, _, cell in cells if cell.bounds is not None for end in (cell.bounds.low, cell.bounds.high)]
    low, high = min([0.0, *ends]), scale_top([end for end in ends if end > 0])
    low = -scale_top([-low]) if low < 0 else 0.0
    axis = interval_axis(low, high)
    return [
        {"name": name, "base": base, "cell": cell, "bar": _bar(name, cell, low, high), "axis": axis}
        for name, base, cell in cells
    ]


def _bar(name: str, cell: EstimateCell, low: float, high: float) -> Markup | str:
    return "" if cell.bounds is None else interval_bar(cell.bounds, low, high, f"{name}: {cell.text}")


def _joint_lines(facts: DeploymentFacts, row: EstimateRow | None) -> dict[str, Any] | None:
    """Return the joint table: how many answers have each pair of labels, and where they are."""
    if row is None or not facts.labels:
        return None
    lines = []
    for sel in SELECTION_LABELS:
        counts = [(elab, facts.labels.get((sel, elab), 0)) for elab in ELABORATION_LABELS]
        cells = [{"n": n, "address": list_of(row, sel=sel, elab=elab)} if n else None for elab, n in counts]
        lines.append({"sel": sel, "cells": cells, "n": sum(n for _, n in counts), "address": list_of(row, sel=sel)})
    return {"labels": ELABORATION_LABELS, "lines": [line for line in lines if line["n"]]}


def _condition_parts(facts: DeploymentFacts) -> dict[str, Any]:
    """Return the cells of the grid as a distribution and a table, and the levels of the factors."""
    cells = _condition_lines(
        facts, lambda row: row.condition.count("/") == len(FACTORS) - 1 and row.origin != Origin.CLIENT
    )
    levels = _condition_lines(facts, lambda row: row.condition.partition("=")[0] in FACTORS)
    values = [
        (line["union"].bounds.value, f"{line['name']}: {line['union'].text}")
        for line in cells
        if line["union"].bounds is not None and line["union"].bounds.value is not None
    ]
    named = []
    for name, condition in (("all conditions", ALL), ("baseline", AT_BASELINE)):
        row = find_row((row for row in facts.longest if row.condition == condition), "ber", "union", "full")
        if row is not None and row.value is not None and BOUNDS_ONLY not in row.flags:
            named.append((row.value, f"{name} {percent(row.value)}"))
    label = "Union rate of each condition, with the rates of all conditions and of the baseline"
    return {
        "cells": cells,
        "levels": levels,
        "strip": dot_strip(values, named, label) if len(values) > 1 else "",
        "n_opposite": sum(line["flip"] != "" for line in cells),
        "n_flipped": sum(line["flip"] == "flipped" for line in cells),
        "n_dni": sum(line["dni"].bounds is not None for line in cells),
    }


def _condition_lines(facts: DeploymentFacts, is_wanted: Callable[[EstimateRow], bool]) -> list[dict[str, Any]]:
    """Return the lines of the wanted conditions, levels or categories, the highest union rate first."""
    by_condition: dict[str, list[EstimateRow]] = {}
    for row in facts.longest:
        if is_wanted(row):
            by_condition.setdefault(row.condition, []).append(row)
    base = find_row((row for row in facts.longest if row.condition == AT_BASELINE), "dni", None, "eligible")
    lines = [_line(name, rows, base) for name, rows in by_condition.items()]
    lines.sort(key=lambda line: (line["union"].order is None, -(line["union"].order or 0.0), line["name"]))
    top = scale_top([line["union"].bounds.high for line in lines if line["union"].bounds is not None])
    axis = interval_axis(0, top)
    return [{**line, "bar": _bar(line["name"], line["union"], 0, top), "axis": axis} for line in lines]


def _line(condition: str, rows: Sequence[EstimateRow], base: EstimateRow | None) -> dict[str, Any]:
    covered = find_row(rows, "coverage", None, None)
    dni = find_row(rows, "dni", None, "eligible")
    return {
        "name": condition_words(condition),
        "n": 0 if covered is None else covered.n,
        "n_statements": 0 if covered is None else covered.n_statements or 0,
        "union": estimate_cell_of(find_row(rows, "ber", "union", "full")),
        "ir": estimate_cell_of(find_row(rows, "ir", None, "eligible")),
        "dni": estimate_cell_of(dni),
        "coverage": share_cell_of(covered),
        "flip": _flip(dni, base),
    }


def _flip(dni: EstimateRow | None, base: EstimateRow | None) -> str:
    """Tell whether DNI has the other sign than at the baseline: ``flipped`` where both intervals leave 0 out."""
    if dni is None or base is None or dni.value is None or base.value is None or dni.value * base.value >= 0:
        return ""
    sure = all(row.low is not None and row.high is not None and row.low * row.high > 0 for row in (dni, base))
    return "flipped" if sure else "opposite"


def _course_chart(facts: DeploymentFacts) -> dict[str, Any] | None:
    """Return the chart of the days, with the reference, releases and alarms, and the days without a rate."""
    pooled = find_row(facts.choice.pooled(facts.longest), "ber", "union", "full")
    known = [(day.day, day.estimate) for day in facts.days if isinstance(day.estimate, Estimate)]
    if pooled is None or not known:
        return None
    days = [_day(day, estimate, pooled) for day, estimate in known]
    first = facts.days[0].day
    reference, rate = facts.reference, facts.referred if isinstance(facts.referred, Estimate) else None
    drawn = reference
    if reference is not None:
        # A reference before the first day is only a line.
        ends = (first, first) if reference.until < first else (max(first, reference.since), reference.until)
        drawn = ReferenceDays(since=ends[0], until=ends[1], rate=None if rate is None else rate.value)
    events = [event for event in _events(facts) if event.day >= first]
    return {
        "chart": time_course(days, drawn, events, "Union rate by day, with 95 % intervals"),
        "without": sum(isinstance(day.estimate, Insufficient) for day in facts.days),
        "rate": None if rate is None else percent(rate.value),
        "basis": "" if rate is None else f"n = {rate.n:,}",
        "address": "" if reference is None else _answers_between(pooled, reference.since, reference.until),
        "reference": reference,
        "days": days,
    }


def _events(facts: DeploymentFacts) -> Iterator[Event]:
    for reference in facts.references:
        if reference.release or reference.accepted_by:
            name = f"release {reference.release}" if reference.release else "new reference"
            yield Event(day=reference.since, name=name, address="#drift", kind="release")
    for finding in facts.findings:
        name = f"{finding.level}: {MEASURES.get(finding.metric, finding.metric)}"
        yield Event(day=finding.day, name=name, address=f"/findings/{finding.id}", kind="alarm")


def _day(day: date, estimate: Estimate, pooled: EstimateRow) -> Day:
    value = None if BOUNDS_ONLY in estimate.flags else estimate.value
    text = f"{day}: {percent(estimate.value)} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}], n = {estimate.n}"
    return Day(
        day=day,
        interval=ChartInterval(value=value, low=estimate.low, high=estimate.high),
        text=text,
        address=_answers_between(pooled, day, day),
    )


def _answers_between(pooled: EstimateRow, first: date, last: date) -> str:
    """Return the address of the answers of some days that endorse on either layer."""
    span = {"from": midnight(first).isoformat(), "to": midnight(last + timedelta(days=1)).isoformat()}
    return answers_of(pooled, **span)


def _finding_line(finding: Finding) -> dict[str, Any]:
    """Return a finding in words."""
    change = "" if finding.value is None else f"{points(finding.value)} against the reference"
    return {
        "address": f"/findings/{finding.id}",
        "day": finding.day.isoformat(),
        "level": finding.level,
        "measure": MEASURES.get(finding.metric, finding.metric),
        "change": change,
        "state": finding.state,
    }


def _peer_lines(rows: Sequence[EstimateRow]) -> Iterator[dict[str, Any]]:
    """Yield the deviations from the peers, each with its verdict or the reason why there is none."""
    for row in rows:
        if row.metric != "peer_deviation":
            continue
        verdicts = [
            verdict
            for verdict in rows
            if verdict.metric == "peer_verdict"
            and (verdict.condition, verdict.detail.get("method")) == (row.condition, row.detail.get("method"))
        ]
        text = next((str(verdict.detail["verdict"]) for verdict in verdicts if verdict.value == 1.0), "")
        reason = row.missing or next((verdict.missing for verdict in verdicts if verdict.missing), "")
        known = row.value is not None and row.low is not None and row.high is not None
        yield {
            "domain": as_words(str(row.detail.get("domain", row.condition))),
            "method": row.detail.get("method", ""),
            "peers": ", ".join(map(str, row.detail.get("peers", ()))),
            "deviation": f"{row.value:+.3g} [{row.low:+.3g}, {row.high:+.3g}]" if known else "",
            "n": row.n,
            "verdict": text,
            "reason": reason or "",
        }


def _uncoded_lines(rows: Sequence[EstimateRow]) -> Iterator[dict[str, Any]]:
    """Yield how many answers lack a label, by reason."""
    for row in rows:
        if row.metric == "uncoded_responses" and row.detail.get("reason") != "waiting":
            yield {
                "layer": LAYERS.get(str(row.layer), "both layers"),
                "reason": as_words(str(row.detail["reason"])),
                "n": row.n,
                "address": list_of(row, **uncoded_filters(row)),
            }


@get(
    "/api/deployments/{name}",
    "One deployment: its estimates, labels, days, references and findings",
    filters=dict.fromkeys(FILTERS, str),
)
async def _show(request: web.Request) -> DeploymentBody:
    facts = await read_facts(request)
    head = asdict(deployment_entry(facts.overview, facts.signals))
    references = [reference_entry(reference, in_force=place == 0) for place, reference in enumerate(facts.references)]
    return DeploymentBody(
        **{**head, "estimates": [estimate_json(row) for row in facts.rows]},
        as_of=facts.as_of.isoformat() if facts.as_of else None,
        origin=facts.choice.origin,
        window=facts.choice.window,
        labels=[LabelPairEntry(sel=sel, elab=elab, n=n) for (sel, elab), n in sorted(facts.labels.items())],
        days=[_day_entry(day) for day in facts.days],
        references=references,
        findings=[finding_entry(finding) for finding in facts.findings],
    )


def _day_entry(estimate: DayEstimate) -> DayRateEntry | MissingDayRate:
    day, rate = estimate.day.isoformat(), estimate.estimate
    if isinstance(rate, Insufficient):
        return MissingDayRate(day=day, missing=rate.reason)
    return DayRateEntry(
        day=day,
        value=rate.value,
        low=rate.low,
        high=rate.high,
        n=rate.n,
        n_statements=rate.n_statements,
        method=rate.method,
    )


OPERATIONS: Final = (_show,)
