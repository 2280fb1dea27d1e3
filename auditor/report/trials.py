"""Show the arms of routes' trials: rates, differences to the control, tokens, and which arms were stopped."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET

from auditor.report.tables import (
    TableCell,
    TableRow,
    bounded,
    count,
    estimate_cell,
    metric_head,
    table,
    text_cell,
    word_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import points
from auditor.trials.document import TOKENS, ArmStopEntry, TrialArmEntry, TrialEntry

#: Measures that the page shows; the others are in report.json.
_SHOWN: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_SIZE_HEADS: Final = ("arm", "requests", "users or conversations", "left as they were", "stopped")
_TOKENS: Final = {"prompt": "tokens of the request", "completion": "tokens of the answer"}


def section(trials: Sequence[TrialEntry]) -> PageSection | None:
    """Return the section on trials; None if there was none in the period."""
    if not trials:
        return None
    values = {"trials": [_trial(trial) for trial in trials]}
    return PageSection(name="trials", title="Mitigation: arms of a trial", values=values)


def _trial(trial: TrialEntry) -> dict[str, Any]:
    control, *others = trial.arms
    heads = ("measure", control.arm, *(head for arm in others for head in (arm.arm, f"{arm.arm} minus control")))
    return {
        "route": text_cell(trial.route),
        "name": text_cell(trial.trial),
        "n_unassigned": count(trial.n_unassigned),
        "tables": [
            table("Requests", _SIZE_HEADS, [TableRow(name=arm.arm, cells=_size_cells(arm)) for arm in trial.arms]),
            table("Rates by arm, with 95 % intervals", heads, _rows(control, others)),
        ],
    }


def _size_cells(arm: TrialArmEntry) -> list[TableCell]:
    untouched = ", ".join(f"{n:,} {reason}" for reason, n in arm.untouched.items())
    stops = [] if arm.stops is UNSET else [_stop_text(stop) for stop in arm.stops]
    return [
        count(arm.n),
        count(arm.n_units),
        word_cell(untouched or "0"),
        word_cell("; ".join(stops) or "no", kind="text quote"),
    ]


def _stop_text(stop: ArmStopEntry) -> str:
    dry = "in a dry run, " if stop.dry_run else ""
    return f"{dry}{stop.at[:16].replace('T', ' ')} UTC by {stop.by}: {stop.because}"


def _rows(control: TrialArmEntry, others: Sequence[TrialArmEntry]) -> Iterator[TableRow]:
    for name in _SHOWN:
        cells = [estimate_cell(control.metrics[name], name)]
        for arm in others:
            cells += [estimate_cell(arm.metrics[name], name), bounded(arm.differences[name], points)]
        yield TableRow(name=metric_head(name), cells=cells)
    for kind in TOKENS:
        cells = [bounded(control.tokens[kind], _tokens)]
        for arm in others:
            cells += [bounded(arm.tokens[kind], _tokens), bounded(arm.token_differences[kind], _more_tokens)]
        yield TableRow(name=_TOKENS[kind], cells=cells)


def _tokens(value: float) -> str:
    return f"{value:.1f}"


def _more_tokens(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\u2212")
