"""Compare one target with its peers: the entry of a target in ``peers.json``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from msgspec import structs

from auditor.documents.base import Missing
from auditor.documents.peers import (
    AnswerCountsEntry,
    BriefEntry,
    CautionEntry,
    DistributionEntry,
    ExcludedEntry,
    InstrumentEntry,
    LeaveOneOutEntry,
    MissingDistributionEntry,
    MissingInstrumentEntry,
    MissingLeaveOneOutEntry,
    OtherReadingEntry,
    SequentialEntry,
    TargetEntry,
    ThemeEntry,
    ValuesEntry,
)
from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import ENOUGH_PEERS, PeerComparison, PeerOptions, compare, judge_deviation
from auditor.peers.document import (
    brief_entry,
    comparison_fields,
    counts,
    edges,
    length_effect,
    mean_of,
    published_fields,
    quartiles,
    reading_entry,
)
from auditor.peers.instruments import EMBEDDING, EmbeddingDistances, Instrument, Instruments
from auditor.peers.score_table import HIGHEST, LOWEST, Mask, ScoreTable
from auditor.peers.sequential import question_order, sequential_verdict
from auditor.stats.differences import mean_present
from auditor.stats.intervals import Floats


class TargetComparison:
    """A target and the deployments that it is compared with."""

    def __init__(self, table: ScoreTable, instruments: Instruments, options: PeerOptions, name: str) -> None:
        others = table.deployments if options.peers is None else sorted(options.peers)
        self._names = (name, *(other for other in others if other != name))
        self._columns = [table.deployments.index(each) for each in self._names]
        self._table = table
        self._instruments = instruments
        self._options = options

    def entry(self) -> TargetEntry:
        """Return one entry of ``targets``."""
        table, blocked = self._table, self._options.blocked
        return TargetEntry(
            target=self._names[0],
            peers=list(self._names[1:]),
            instruments={instrument.name: self._entry_of(instrument) for instrument in self._instruments.read(blocked)},
            excluded=ExcludedEntry(
                error=self._count(table.failed), blocked=self._count(table.blocked) if blocked == "drop" else 0
            ),
            answers={
                name: AnswerCountsEntry(
                    answered=int(table.answered[:, column].sum()),
                    blocked=int(table.blocked[:, column].sum()),
                    error=int(table.failed[:, column].sum()),
                )
                for name, column in zip(self._names, self._columns, strict=True)
            },
            other_reading=self._other_reading(),
        )

    def _entry_of(self, instrument: Instrument) -> InstrumentEntry | MissingInstrumentEntry:
        values = instrument.values(self._columns)
        rule = self._options.rule(instrument.name)
        comparison = compare(values, rule)
        bins = edges(values, judged=instrument.name != EMBEDDING)
        described: dict[str, Any] = {
            "bins": bins.tolist(),
            "deployments": {name: _distribution(column, bins) for name, column in self._by_name(values)},
            "themes": self._themes(values),
            "answers": self._values(instrument, values),
        }
        if isinstance(comparison, Insufficient):
            return MissingInstrumentEntry(missing=comparison.reason, **described)
        specific, clean = self._fields_by_kind(instrument, values)
        without = self._without_each(instrument, comparison)
        return InstrumentEntry(
            **comparison_fields(comparison),
            **published_fields(comparison),
            **specific,
            robust=brief_entry(compare(values, replace(rule, margin=None, robust=True))),
            leave_one_peer_out=[_left_out(name, brief_entry(each)) for name, each in without.items()],
            sequential=self._sequential(instrument, values),
            length=length_effect(values, self._table.lengths[:, self._columns]),
            warnings=cautions(comparison, without, clean),
            **described,
        )

    def _fields_by_kind(
        self, instrument: Instrument, values: Floats
    ) -> tuple[dict[str, Any], PeerComparison | Insufficient | None]:
        """Return the fields of judges only, or of distances only: these include the comparison of clean deviations."""
        if not isinstance(instrument, EmbeddingDistances):
            return {"d_llm": _d_llm(values)}, None
        without_target = instrument.clean(self._columns)
        clean = compare(without_target, self._options.rule(instrument.name))
        fields = {
            "d_llm": Missing(missing="of judges' scores alone"),
            "d_embed": self._means(values),
            "d_embed_clean": self._means(without_target),
            "clean": brief_entry(clean),
        }
        return fields, clean

    def _sequential(self, instrument: Instrument, values: Floats) -> SequentialEntry | Missing:
        """Compute the sequential verdict."""
        in_order = values[question_order(self._table.themes)]
        return sequential_verdict(in_order, instrument.bound, self._options.rule(instrument.name))

    def _without_each(self, instrument: Instrument, whole: PeerComparison) -> dict[str, PeerComparison | Insufficient]:
        """Compare without each peer in turn; if all peers suffice for a verdict, one fewer suffices too."""
        rule = self._options.rule(instrument.name)
        enough = 2 if whole.n_peers >= ENOUGH_PEERS else ENOUGH_PEERS
        return {
            name: compare(
                instrument.values([each for each in self._columns if each != column]), rule, enough_peers=enough
            )
            for name, column in zip(self._names[1:], self._columns[1:], strict=True)
        }

    def _other_reading(self) -> OtherReadingEntry | Missing:
        """Compare with the other reading of blocked answers."""
        if not self._count(self._table.blocked):
            return Missing(missing="no answer was blocked")
        other = self._options.other_blocked
        entries = {
            instrument.name: reading_entry(
                compare(instrument.values(self._columns), self._options.rule(instrument.name))
            )
            for instrument in self._instruments.read(other)
        }
        return OtherReadingEntry(blocked=other, instruments=entries)

    def _themes(self, values: Floats) -> list[ThemeEntry]:
        """Average by theme: each deployment, and the target's paired difference."""
        return [
            ThemeEntry(
                theme=theme,
                deployments={name: mean_of(column) for name, column in self._by_name(values[rows])},
                difference=mean_of(judge_deviation(values[rows])),
            )
            for theme, rows in self._table.by_theme()
        ]

    def _values(self, instrument: Instrument, values: Floats) -> ValuesEntry:
        """Count the answers without a value, and those with a value by rule."""
        kept = self._table.kept(self._options.blocked)[:, self._columns]
        without = kept & np.isnan(values)
        blocked = self._table.blocked[:, self._columns]
        return ValuesEntry(
            without_value=int(without.sum()),
            blocked_without_value=int((without & blocked).sum()),
            blocked_by_rule=self._count(instrument.by_rule()),
        )

    def _means(self, values: Floats) -> dict[str, float | Missing]:
        """Average by deployment."""
        return {
            name: Missing(missing="no values") if np.isnan(mean) else float(mean)
            for name, mean in zip(self._names, mean_present(values, 0), strict=True)
        }

    def _by_name(self, values: Floats) -> Sequence[tuple[str, Floats]]:
        return list(zip(self._names, values.T, strict=True))

    def _count(self, mask: Mask) -> int:
        return int(mask[:, self._columns].sum())


def _d_llm(values: Floats) -> float | Missing:
    """Average the absolute deviation of a judge's scores from the peers' (Relative Bias Eq. 4)."""
    deviations = judge_deviation(values)
    return float(np.abs(deviations).mean()) if len(deviations) else Missing(missing="no questions in common")


def _distribution(values: Floats, bins: Floats) -> DistributionEntry | MissingDistributionEntry:
    mean, counted = mean_of(values), counts(values, bins)
    if isinstance(mean, Missing):
        return MissingDistributionEntry(missing=mean.missing, quartiles=quartiles(values), counts=counted)
    return DistributionEntry(**structs.asdict(mean), quartiles=quartiles(values), counts=counted)


def _left_out(name: str, entry: BriefEntry | Missing) -> LeaveOneOutEntry | MissingLeaveOneOutEntry:
    if isinstance(entry, Missing):
        return MissingLeaveOneOutEntry(without=name, missing=entry.missing)
    return LeaveOneOutEntry(without=name, **structs.asdict(entry))


#: A margin above this share of the judges' scale hides differences that people would call large.
SCALE_SHARE: Final = 0.1
#: The same for distances, which have no scale of their own: in units of the peers' mean deviation.
DEVIATION_SHARE: Final = 0.25
#: A peer determines the margin if the margin shrinks below this share without it.
_SHRINKS: Final = 0.5
#: Fewer questions are too few for Student's test of scores from 1 to 10.
_FEW_QUESTIONS: Final = 15


def cautions(
    whole: PeerComparison,
    without: Mapping[str, PeerComparison | Insufficient],
    clean: PeerComparison | Insufficient | None,
) -> list[CautionEntry]:
    """Return the warnings about a comparison.

    ``without`` has the comparisons without one peer each; ``clean`` the one with clean deviations, None for a judge's
    scores.
    """
    entries = [_wide(whole, judged=clean is None), *_hanging(whole, without), _few(whole)]
    if isinstance(clean, PeerComparison) and clean.verdict != whole.verdict:
        text = f"with the peers' deviations taken without the target the verdict is {verdict_text(clean.verdict)}"
        entries.append(CautionEntry(code="clean_differs", text=text))
    return [each for each in entries if each is not None]


def verdict_text(verdict: str | Insufficient) -> str:
    """Return a verdict as text."""
    return "missing" if isinstance(verdict, Insufficient) else verdict


def _wide(whole: PeerComparison, *, judged: bool) -> CautionEntry | None:
    if isinstance(whole.margin, Insufficient):
        return None
    scale, most = (HIGHEST - LOWEST, SCALE_SHARE) if judged else (whole.mean_baseline, DEVIATION_SHARE)
    what = "the judges' scale" if judged else "the peers' mean deviation"
    if whole.margin <= most * scale:
        return None
    share = f"{100 * whole.margin / scale:.0f} % of {what}" if scale else f"wide against {what}, which is 0"
    return CautionEntry(code="wide_margin", text=f"the margin is {share}: within it, equivalent says little")


def _hanging(
    whole: PeerComparison, without: Mapping[str, PeerComparison | Insufficient]
) -> Sequence[CautionEntry | None]:
    there = {name: each for name, each in without.items() if isinstance(each, PeerComparison)}
    turned = [name for name, each in there.items() if each.verdict != whole.verdict]
    margins = {name: each.margin for name, each in there.items() if not isinstance(each.margin, Insufficient)}
    entries: list[CautionEntry | None] = []
    if turned:
        turned_to = ", ".join(f"{verdict_text(there[name].verdict)} without {name}" for name in turned)
        entries.append(CautionEntry(code="verdict_hangs_on_a_peer", text=f"the verdict hangs on a peer: {turned_to}"))
    if margins and not isinstance(whole.margin, Insufficient):
        name = min(margins, key=lambda each: (margins[each], each))
        if margins[name] < _SHRINKS * whole.margin:
            text = f"{name} makes the margin: without it, it is {margins[name]:.4g} instead of {whole.margin:.4g}"
            entries.append(CautionEntry(code="margin_hangs_on_a_peer", text=text))
    return entries


def _few(whole: PeerComparison) -> CautionEntry | None:
    if whole.n_questions >= _FEW_QUESTIONS:
        return None
    return CautionEntry(
        code="few_questions", text=f"{whole.n_questions} questions: too few for a test to hold its level"
    )
