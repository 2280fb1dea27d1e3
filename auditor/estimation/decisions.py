"""Compare favourable decisions between groups: rates, ratios to the highest rate, intersections, small groups left out.

The rules are data (``decision_presets.yaml``, or a file of the same form).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import UNSET

from auditor.config.yaml_source import load_mapping
from auditor.documents.base import Missing
from auditor.documents.decisions import (
    DecisionGroupEntry,
    DecisionRateEntry,
    DecisionRuleEntry,
    DecisionsDocument,
    DecisionTableEntry,
    ImpactRatioEntry,
)
from auditor.errors import InputError, UsageError
from auditor.stats.rate_ratios import GroupCounts, RateRatio, ratios_to_highest

#: Words for a favourable and an unfavourable decision, in lower case.
_YES: Final = frozenset({"yes", "true", "1", "selected", "approve", "approved", "accept", "accepted", "hire", "pass"})
_NO: Final = frozenset({"no", "false", "0", "rejected", "reject", "deny", "denied", "decline", "declined", "fail"})
_PRESETS: Final = "decision_presets.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionOptions:
    """How decisions are read."""

    rule: DecisionRuleEntry
    decision: str = "decision"  #: field with yes or no
    score: str | None = None  #: field with a number, in place of a decision
    favourable: str | None = None  #: the value that is favourable, where it is none of the known words
    cluster: str | None = None  #: field of decisions that are not independent, such as the person


@dataclass(slots=True)
class _Decided:
    """The readable decisions."""

    favourable: list[bool] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    groups: list[tuple[str | None, ...]] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    unread: int = 0


def load_rule(name: str) -> DecisionRuleEntry:
    """Return a preset by its name, or the rule in a YAML file that has the same keys.

    Raises
    ------
    UsageError
        There is neither a preset nor a file of this name, or the file is not a rule.
    """
    presets = msgspec.yaml.decode((files("auditor.estimation") / _PRESETS).read_bytes())
    fields = presets.get(name)
    if fields is None:
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"--preset {name}: neither a file nor one of {', '.join(sorted(presets))}")
        try:
            return msgspec.convert({"name": path.stem, **load_mapping(path)}, DecisionRuleEntry, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(f"{name}: is not a rule: {error}") from None
    return msgspec.convert({"name": name, **fields}, DecisionRuleEntry)


def compare_decisions(rows: Iterable[Mapping[str, Any]], options: DecisionOptions) -> DecisionsDocument:
    """Compare decisions between groups.

    Parameters
    ----------
    rows
        One for each decision: the fields of the rule, and a decision or a score.

    Raises
    ------
    InputError
        No row has a decision; no row has a value of one of the fields; a decision has an unknown word.
    """
    decided = _read(rows, options)
    rule = options.rule
    median: float | None = None
    if options.score is not None:
        median = float(np.median(decided.scores))
        decided.favourable = [score > median for score in decided.scores]
    tables = [_table(decided, rule, [place], [name]) for place, name in enumerate(rule.fields)]
    if rule.intersections and len(rule.fields) > 1:
        tables.append(_table(decided, rule, range(len(rule.fields)), rule.fields))
    return DecisionsDocument(
        schema="biasmeter.decisions/1",
        version=version("biasmeter"),
        rule=rule,
        kind="decision" if median is None else "score",
        median=UNSET if median is None else median,
        cluster=options.cluster,
        n=len(decided.favourable),
        n_unread=decided.unread,
        tables=tables,
    )


def _read(rows: Iterable[Mapping[str, Any]], options: DecisionOptions) -> _Decided:
    decided = _Decided()
    names = [
        {value.casefold(): value for value in options.rule.categories.get(name, ())} for name in options.rule.fields
    ]
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        if options.score is not None:
            score = _score(row.get(options.score), number, options.score)
            if score is None:
                decided.unread += 1
                continue
            decided.scores.append(score)
        else:
            favourable = _favourable(row.get(options.decision), number, options)
            if favourable is None:
                decided.unread += 1
                continue
            decided.favourable.append(favourable)
        seen.update(name for name in options.rule.fields if row.get(name) is not None and row[name] != "")
        decided.groups.append(
            tuple(_category(row.get(name), known) for name, known in zip(options.rule.fields, names, strict=True))
        )
        key = None if options.cluster is None else row.get(options.cluster)
        decided.clusters.append(f"r{number}" if key is None or key == "" else f"v{key}")
    if not decided.groups:
        raise InputError(
            f"no row has a {'score' if options.score else 'decision'}: {options.score or options.decision}"
        )
    for name in options.rule.fields:
        if name not in seen:
            raise InputError(f"no row has a field {name!r}, which the rule {options.rule.name} compares; see --group")
    return decided


def _favourable(decision: object, number: int, options: DecisionOptions) -> bool | None:
    """Return whether a decision is favourable; None for no decision."""
    if decision is None or decision == "":
        return None
    word = str(decision).strip().casefold()
    if options.favourable is not None:
        return word == options.favourable.strip().casefold()
    if word in _YES or word in _NO:
        return word in _YES
    raise InputError(
        f"row {number}: {options.decision} {_short(decision)} is neither yes nor no; name the good one: --favourable"
    )


def _short(value: object) -> str:
    return repr(value if isinstance(value, int | float) else str(value)[:60])


def _score(value: object, number: int, name: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        score = float(str(value))
    except ValueError:
        score = float("nan")
    if not np.isfinite(score):
        raise InputError(f"row {number}: {name} {_short(value)} is not a number")
    return score


def _category(raw: object, known: Mapping[str, str]) -> str | None:
    """Return the category of a value; None if it has none."""
    if raw is None or isinstance(raw, list | dict) or not (value := str(raw).strip()):
        return None
    return known.get(value.casefold()) if known else value


def _table(
    decided: _Decided, rule: DecisionRuleEntry, places: Sequence[int], fields: Sequence[str]
) -> DecisionTableEntry:
    sums: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    unknown = 0
    for favourable, group, cluster in zip(decided.favourable, decided.groups, decided.clusters, strict=True):
        values = [value for place in places if (value := group[place]) is not None]
        if len(values) < len(places):
            unknown += 1
            continue
        each = sums[tuple(values)][cluster]
        each[0] += favourable
        each[1] += 1
    counts = {
        values: GroupCounts(
            y=np.array([y for y, _ in by_cluster.values()]), n=np.array([n for _, n in by_cluster.values()])
        )
        for values, by_cluster in sorted(sums.items())
    }
    total = len(decided.favourable)
    kept = {values: group for values, group in counts.items() if group.n.sum() >= rule.exclude_below * total}
    ratios: dict[tuple[str, ...], RateRatio | None] = {}
    if len(kept) > 1:
        ratios = dict(zip(kept, ratios_to_highest(list(kept.values())), strict=True))
    highest = max(kept, key=lambda values: kept[values].rate) if any(ratios.values()) else None
    return DecisionTableEntry(
        fields=list(fields),
        n=total - unknown,
        n_unknown=unknown,
        highest=Missing(missing=_no_ratio(kept)) if highest is None else list(highest),
        categories=[
            DecisionGroupEntry(
                values=list(values),
                n=int(group.n.sum()),
                favourable=int(group.y.sum()),
                rate=_rate(group),
                impact_ratio=_ratio(ratios.get(values), rule, _excluded(values, kept, rule) or _no_ratio(kept)),
                excluded=_excluded(values, kept, rule) or UNSET,
            )
            for values, group in counts.items()
        ],
    )


def _excluded(values: tuple[str, ...], kept: Collection[tuple[str, ...]], rule: DecisionRuleEntry) -> str:
    return "" if values in kept else f"fewer than {100 * rule.exclude_below:g} % of all decisions"


def _no_ratio(kept: Mapping[tuple[str, ...], GroupCounts]) -> str:
    if len(kept) < 2:
        return "fewer than two groups are compared"
    if not any(group.y.any() for group in kept.values()):
        return "no group has a favourable decision"
    return "all decisions of a group belong to one cluster"


def _rate(group: GroupCounts) -> DecisionRateEntry:
    interval = group.interval(0.95)
    return DecisionRateEntry(
        value=group.rate,
        interval=Missing(missing="all decisions belong to one cluster")
        if interval is None
        else (interval.low, interval.high),
    )


def _ratio(ratio: RateRatio | None, rule: DecisionRuleEntry, reason: str) -> ImpactRatioEntry | Missing:
    if ratio is None:
        return Missing(missing=reason)
    low, high = ratio.interval.low, ratio.interval.high
    if rule.threshold is None:
        return ImpactRatioEntry(value=ratio.value, interval=(low, high))
    finding = "below" if high < rule.threshold else "not_below" if low >= rule.threshold else "unclear"
    return ImpactRatioEntry(
        value=ratio.value, interval=(low, high), under_threshold=ratio.value < rule.threshold, finding=finding
    )
