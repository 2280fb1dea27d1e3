"""Show whether another task, role, tone or perspective lowers both layers, and what that costs in tokens.

BiAxisAudit section VI; Tables XIV and XV, appendix F-C.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from auditor.counting.conditions import FACTORS
from auditor.counting.joint import FREE_TASKS
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import (
    ChangedRates,
    EffectEntry,
    MitigationEntry,
    MitigationLevel,
    TradeoffEntry,
    TradeoffOption,
)
from auditor.report.canvas import ELAB, PANEL, ROW, SEL, Colour, Look, Plot, TextLook
from auditor.report.document import known, reason, single_factor_levels
from auditor.report.drawing import (
    RATES,
    change_scale,
    change_text,
    cut_name,
    draw_interval,
    gutter_width,
    join_panels,
    marker_key,
    number_marks,
    open_rows,
    panel_title,
    rate_scale,
    scale_top,
    write_beside,
    write_reason,
)
from auditor.report.levels import LAYERS, deployment_table, test_table
from auditor.report.svg import round_ticks, shorten
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    decimal,
    estimate_cell,
    metric_head,
    no_value,
    number,
    share,
    table,
    text_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import DASH, TIMES, as_words, estimate_text, join_words, percent, points, yes_no

#: The style of each verdict.
_KINDS: Final = {"amplifying": "alarm", "layer-rerouting": "alarm", "co-reducing": "good"}
#: The warning of each verdict.
_WARNINGS: Final = {
    "amplifying": "endorsement rises on a layer and falls on none",
    "layer-rerouting": "the selection falls or is absent and the elaboration does not fall, or DNI changes sign",
}
_LINE: Final = 42.0
_HEIGHT: Final = 300.0
_LAYERS: Final = (("selection", SEL, -0.2), ("elaboration", ELAB, 0.16))
_DOT: Final = 7.0
_ON: Final = Look(colour=Colour.ACCENT, shape="circle", size=_DOT)
_OFF: Final = Look(colour=Colour.SOFT, shape="circle", size=4.6, edge=1, is_hollow=True)
_RECIPE: Final = Look(colour=Colour.SEL, shape="diamond", size=12, edge=1, is_hollow=True)


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on mitigation; None if no factor was varied alone."""
    factors = [factor for factor in FACTORS if len(single_factor_levels(part, factor)) > 1]
    if not factors:
        return None
    effects, tradeoffs = known(part.mitigation, MitigationEntry), known(part.tradeoff, TradeoffEntry)
    pooled = [entry for entry in tradeoffs if not entry.by]
    values = {
        "factors": [_factor(part, factor, [each for each in effects if each.factor == factor]) for factor in factors],
        "missing": "" if effects else reason(part.mitigation),
        "panels": mitigation_panels([entry for entry in effects if not entry.by]),
        "pareto": pareto_panels(pooled),
        "tradeoffs": [_tradeoff_tables(entry) for entry in pooled],
        "tradeoff_missing": "" if tradeoffs else reason(part.tradeoff),
        "avoid": _warnings(part, effects, pooled),
    }
    return PageSection(name="mitigation", title="Mitigation: which prompts lower both layers?", values=values)


def _factor(part: AnalysisDocument, factor: str, effects: Sequence[MitigationEntry]) -> dict[str, Any]:
    pooled = next((entry for entry in effects if not entry.by), None)
    layers = LAYERS if factor == "task" else ("ber_sel_full",)
    return {
        "name": factor,
        "tests": test_table(part, factor, pooled),
        "by_deployment": [deployment_table(part, factor, metric) for metric in layers],
        "verdicts": None if pooled is None else _verdict_table(pooled),
        "each": _each_table([entry for entry in effects if entry.by], factor),
    }


def _verdict_table(entry: MitigationEntry) -> ReportTable | None:
    """Make the table of the effects of each level on the responses coded on both layers."""
    rows = [TableRow(name=level.level, cells=change_cells(level)) for level in entry.levels]
    heads = ["level", "statements", "BER sel", "BER elab", "IR", "DNI before", "DNI after", "by points", "by intervals"]
    caption = f"Change against {entry.baseline}, responses coded on both layers"
    return table(caption, heads, rows, source="section VI")


def change_cells(entry: ChangedRates) -> list[TableCell]:
    """Print the size of a comparison with the reference level, the changes of the measures, and both verdicts."""
    changes, verdicts = _changes(entry.effect), (entry.published, entry.verdict)
    return [count(entry.n_statements), *changes, *(_verdict(verdict) for verdict in verdicts)]


def _changes(effect: EffectEntry | Missing) -> list[TableCell]:
    if isinstance(effect, Missing):
        return [no_value(effect.missing)] * 5
    each = (effect.sel, effect.elab, effect.ir, effect.dni_before, effect.dni_after)
    return [bounded(change, points) for change in each]


def _verdict(verdict: str | Missing) -> TableCell:
    cell = text_cell(verdict)
    return cell.marked(_KINDS[cell.text]) if cell.text in _KINDS else cell


def _each_table(entries: Sequence[MitigationEntry], factor: str) -> ReportTable | None:
    """Make the table of the verdicts by intervals, with a row per deployment."""
    names = list(dict.fromkeys(level.level for entry in entries for level in entry.levels))
    rows = []
    for entry in entries:
        changes = {level.level: _change(level) for level in entry.levels}
        cells = [changes.get(name, no_value("not asked")) for name in names]
        rows.append(TableRow(name=str(entry.by["deployment"]), cells=cells))
    return table(f"Verdict by intervals, by {factor} and deployment", ["deployment", *names], rows)


def _change(level: MitigationLevel) -> TableCell:
    sel, elab, *_ = _changes(level.effect)
    return _verdict(level.verdict).above(sel, "sel {}").above(elab, "elab {}")


def _warnings(
    part: AnalysisDocument, effects: Sequence[MitigationEntry], tradeoffs: Sequence[TradeoffEntry]
) -> list[str]:
    """Return warnings: from the verdicts by intervals, from the trade-off, and for tasks without a selection."""
    levels = [(f"{e.factor} {level.level}", level.verdict) for e in effects if not e.by for level in e.levels]
    out = []
    for verdict, warning in _WARNINGS.items():
        if named := [name for name, level_verdict in levels if level_verdict == verdict]:
            out.append(f"{join_words(named)}: {warning}")
    for entry in (entry for entry in tradeoffs if entry.outcome == "ber_sel_full"):
        worst = max(entry.options, key=lambda option: option.rate)
        out.append(f"{worst.name}: the highest selection rate of all conditions")
    tasks = single_factor_levels(part, "task")
    if len(tasks) > 1 and (free := [task for task in tasks if task in FREE_TASKS]):
        out.append(f"{join_words(free)}, where a definite answer is needed: a free response has no selection")
    return out


def mitigation_panels(mitigation: Sequence[MitigationEntry]) -> Markup | None:
    """Draw the changes of both layers with their intervals, a panel a factor, and each verdict in words.

    Parameters
    ----------
    mitigation
        The document's entries of one rubric: the pooled ones, or those of some deployments.
    """
    drawn = [entry for entry in mitigation if entry.levels]
    effects = known((level.effect for entry in drawn for level in entry.levels), EffectEntry)
    if not effects:
        return None
    reach = scale_top(abs(end) for each in effects for of in (each.sel, each.elab) for end in (of.low, of.high))
    return join_panels(_panel(entry, reach) for entry in drawn)


def _panel(entry: MitigationEntry, reach: float) -> Markup:
    names = [level.level for level in entry.levels]
    title = f"{entry.factor.capitalize()}, against {entry.baseline}"
    title += "".join(f": {value}" for value in entry.by.values())
    left, key = max(gutter_width(names), 124), [(look, name) for name, look, _ in _LAYERS]
    plot = open_rows(title, names, _LINE, left=left, right=56, key=key, dy=-9)
    change_scale(plot, reach, wanted=4)
    for y, level in enumerate(entry.levels):
        _level(plot, y, level)
    return plot.svg(f"{title}: change of both layers by level, and the verdict")


def _level(plot: Plot, y: int, level: MitigationLevel) -> None:
    verdict, effect = level.verdict, level.effect
    words = DASH if isinstance(verdict, Missing) else verdict
    _, middle = plot.at(0, y)
    why = verdict.missing if isinstance(verdict, Missing) else ""
    plot.write(plot.left - 8, middle + 8, words, TextLook(anchor="end", colour=Colour.SOFT), why)
    if isinstance(effect, Missing):
        write_reason(plot, y, "", effect)
        return
    for (name, look, dy), change in zip(_LAYERS, (effect.sel, effect.elab), strict=True):
        draw_interval(plot, y + dy, change, look)
        hover = f"{level.level}: {name} {estimate_text('dni', change)}"
        write_beside(plot, y + dy, change_text(change), hover=hover)


def _tradeoff_tables(entry: TradeoffEntry) -> dict[str, Any]:
    """Return the tables of one outcome's trade-off over all deployments."""
    return {
        "options": _option_table(entry),
        "recipes": _recipe_table(entry),
        "left_out": join_words(entry.left_out),
    }


def _option_table(entry: TradeoffEntry) -> ReportTable | None:
    rows = [
        TableRow(
            name=option.name,
            cells=[
                share(option.rate),
                share(option.reduction),
                estimate_cell(option.dni, "dni", sized=True),
                decimal(option.tokens, 1),
                _times(option),
                text_cell(option.on_frontier, yes_no),
                share(option.frontier_share),
            ],
            kind="best" if option.on_frontier else "",
        )
        for option in sorted(entry.options, key=lambda option: (option.rate, option.tokens))
    ]
    heads = ["condition", metric_head(entry.outcome), "reduction", metric_head("dni"), "tokens", "cost"]
    heads += ["on frontier", "share of replicates"]
    return table("Rate against completion tokens, lowest rate first", heads, rows, source="Table XIV")


def _times(option: TradeoffOption) -> TableCell:
    return number(option.cost, f"{{:.1f}}{TIMES}".format)


def _recipe_table(entry: TradeoffEntry) -> ReportTable | None:
    """Make the table of the recipes, each with the rate and the cost of its condition."""
    options = {option.name: [share(option.rate), _times(option)] for option in entry.options}
    rows = [
        TableRow(
            name=as_words(recipe.use),
            cells=[
                text_cell(recipe.name),
                *options.get(recipe.name, [no_value("not weighed")] * 2),
                share(recipe.support),
            ],
        )
        for recipe in entry.recipes
    ]
    heads = ["use", "condition", metric_head(entry.outcome), "cost", "chosen in replicates"]
    return table("Recipes by use", heads, rows, source="Table XV")


def pareto_panels(tradeoff: Sequence[TradeoffEntry]) -> Markup | None:
    """Draw rate against completion tokens with the frontier, a plane and its list an outcome.

    Parameters
    ----------
    tradeoff
        The document's entries of one rubric.
    """
    drawn = [entry for entry in tradeoff if entry.options]
    return join_panels(panel for entry in drawn for panel in (_plane(entry), _list(entry))) if drawn else None


def _frontier(entry: TradeoffEntry) -> list[TradeoffOption]:
    return sorted((option for option in entry.options if option.on_frontier), key=lambda option: option.tokens)


def _plane(entry: TradeoffEntry) -> Markup:
    options, frontier = entry.options, _frontier(entry)
    plot = Plot(PANEL, _HEIGHT, left=56, right=16, top=58, bottom=46)
    panel_title(plot, f"{_outcome(entry)}: rate and tokens")
    marker_key(plot, [(_ON, "on the frontier"), (_OFF, "not on it"), (replace(_RECIPE, size=9), "recipe")])
    _token_scale(plot, [option.tokens for option in options])
    rate_scale(plot, scale_top(option.rate for option in options), along="y")
    # Each rate holds until the next option of the frontier.
    steps = [(tokens, option.rate) for option, after in pairwise(frontier) for tokens in (option.tokens, after.tokens)]
    steps += [(option.tokens, option.rate) for option in frontier[-1:]]
    plot.line([tokens for tokens, _ in steps], [rate for _, rate in steps], Look(colour=Colour.ACCENT, width=1))
    for option in options:
        hover = f"{option.name}: {percent(option.rate)} at {option.tokens:.0f} tokens"
        plot.mark(option.tokens, option.rate, _ON if option.on_frontier else _OFF, hover)
        if _uses(entry, option):
            plot.mark(option.tokens, option.rate, _RECIPE)
    number_marks(plot, [(option.tokens, option.rate, _DOT) for option in frontier])
    return plot.svg(f"{_outcome(entry)}: rate by completion tokens, with the Pareto frontier")


def _token_scale(plot: Plot, tokens: Sequence[float]) -> None:
    margin = 0.08 * (max(tokens) - min(tokens)) or 1.0
    ends = max(0.0, min(tokens) - margin), max(tokens) + margin
    ticks = round_ticks(*ends, 4)
    plot.set_x(*ends)
    plot.ticks_x(ticks, [f"{tick:g}" for tick in ticks])
    plot.label_x("completion tokens of a response")


def _list(entry: TradeoffEntry) -> Markup:
    """List the frontier: condition, tokens, rate, its share of the replicates, and what it is chosen for."""
    frontier = [(option, _uses(entry, option)) for option in _frontier(entry)]
    columns = (PANEL - 220, PANEL - 110, PANEL)
    height = 30 + sum(_depth(uses) for _, uses in frontier)
    plot = Plot(PANEL, height)
    panel_title(plot, "On the frontier")
    for x, name in zip(columns, ("tokens", "rate", "resampled"), strict=True):
        plot.write(x, 8, name, TextLook(anchor="end", colour=Colour.SOFT))
    y = 33.0
    for place, (option, uses) in enumerate(frontier, start=1):
        shown, full = cut_name(option.name, PANEL - 300)
        plot.write(14, y, str(place), TextLook(anchor="end", is_bold=True))
        plot.write(22, y, shown, hover=full)
        values = f"{option.tokens:.0f}", percent(option.rate), percent(option.frontier_share, 0)
        for x, value in zip(columns, values, strict=True):
            plot.write(x, y, value, TextLook(anchor="end"))
        plot.write(22, y + 17, shorten(uses, PANEL - 22), TextLook(colour=Colour.SEL))
        y += _depth(uses)
    return plot.svg(f"{_outcome(entry)}: the conditions on the Pareto frontier")


def _uses(entry: TradeoffEntry, option: TradeoffOption) -> str:
    """Return the uses that a condition is the recipe for."""
    return ", ".join(as_words(recipe.use) for recipe in entry.recipes if recipe.name == option.name)


def _depth(uses: str) -> float:
    """Return the height of an option's lines."""
    return ROW + 17 if uses else ROW


def _outcome(entry: TradeoffEntry) -> str:
    return RATES.get(entry.outcome, entry.outcome).capitalize()
