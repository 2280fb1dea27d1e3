"""Render the page of ``comparison.json``. Nothing is computed here."""

from collections.abc import Mapping
from typing import Any

from jinja2 import ChoiceLoader, PackageLoader

from auditor.documents.base import Missing
from auditor.documents.comparison import (
    ArmPairEntry,
    ComparisonDocument,
    ComparisonGroupEntry,
    ExposureEntry,
    RepetitionEntry,
)
from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.report.document import known, with_places
from auditor.report.exposures import origin_text
from auditor.report.templates import environment
from auditor.report.wording import FLAGS, as_words, percent
from replay.page.arms import (
    coverage_table,
    exposure_panels,
    exposure_table,
    factor_table,
    remedy_table,
    score_table,
    side_names,
)
from replay.page.pairs import flip_table, pair_table, split_pairs, test_table


def render(comparison: ComparisonDocument) -> bytes:
    """Render the page; the same document gives the same bytes."""
    loader = ChoiceLoader([PackageLoader("replay", "page"), PackageLoader("auditor.report", "page")])
    page = environment(loader).get_template("comparison.html.j2")
    document = with_places(comparison)
    return page.render(
        document=document,
        groups=[_group(group) for group in document.groups],
        flag_texts=_flag_texts(document),
        counts=counts_text,
    ).encode("utf-8")


def _group(group: ComparisonGroupEntry) -> dict[str, Any]:
    from_start, rest = split_pairs(group)
    return {
        "entry": group,
        "title": group_title(group),
        "summary": _summary(group),
        "is_client": group.by.origin == "client",
        "panels": exposure_panels(group),
        "repeated": any(side.repeats for side in group.sides),
        "ranges": len(known(group.exposure.values(), ExposureEntry)),
        "within": sum(is_within_noise(exposure) for exposure in group.exposure.values()),
        "exposure": exposure_table(group),
        "scores": score_table(group),
        "coverage": coverage_table(group),
        "factors": factor_table(group),
        "remedies": remedy_table(group),
        "pairs": pair_table(from_start, f"Differences from {from_start.start}"),
        "other_pairs": pair_table(rest, "Differences between the other formats"),
        "tests": test_table(from_start),
        "other_tests": test_table(rest),
        "flips": flip_table(from_start, f"Labels that changed from {from_start.start}"),
        "other_flips": flip_table(rest, "Labels that changed between the other formats"),
        "labels": [(name, _matrices(pair)) for name, pair in from_start.named()],
    }


def _summary(group: ComparisonGroupEntry) -> str:
    """Write in one sentence how far the rate of endorsement moves with the format."""
    exposure = group.exposure["ber_union_full"]
    if isinstance(exposure, Missing):
        return f"no range of the rate of endorsement, because {exposure.missing}."
    names, spread = side_names(group), exposure.range
    ends = [f"{percent(end.value)} ({names.get(end.side, end.side)})" for end in (exposure.lowest, exposure.highest)]
    width = f"{100 * spread.value:.1f} points [{100 * spread.low:.1f}, {100 * spread.high:.1f}]"
    shown = "" if spread.low > 0 else "; the data do not show that the formats differ"
    return f"the rate of endorsement goes from {ends[0]} to {ends[1]}, a range of {width}{shown}."


def group_title(group: ComparisonGroupEntry) -> str:
    """Return the title of a group of the document."""
    by = group.by
    route = f" of {by.route}" if by.route else ""
    task = f", first asked as {by.task}" if by.task else ""
    return f"{by.deployment}: {origin_text(by)}{route}{task}"


def is_within_noise(exposure: ExposureEntry | Missing) -> bool:
    """Return whether a range is not significantly wider than the change on repetition."""
    repetition = exposure.repetition if isinstance(exposure, ExposureEntry) else exposure
    return isinstance(repetition, RepetitionEntry) and not repetition.beyond


def _matrices(pair: ArmPairEntry) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Make the tables of label changes: for each layer the labels that occur, with one row for each."""
    out = {}
    layers = {
        "selection": (SELECTION_LABELS, pair.flips.selection.labels),
        "elaboration": (ELABORATION_LABELS, pair.flips.elaboration.labels),
    }
    for layer, (labels, counts) in layers.items():
        seen = {label for flip in counts for label in flip.split(">")}
        shown = [label for label in labels if label in seen]
        out[layer] = shown, [[_count(counts.get(f"{first}>{second}", 0)) for second in shown] for first in shown]
    return out


def _count(n: int) -> str:
    return f"{n:,}" if n else "·"


def _flag_texts(document: ComparisonDocument) -> Mapping[str, str]:
    flags: set[str] = set()
    for group in document.groups:
        changes = (each for pair in group.pairs for each in pair.metrics.values())
        scores = (each for side in group.sides for each in side.scores.values())
        for entry in (*group.exposure.values(), *changes, *scores):
            flags.update(() if isinstance(entry, Missing) else entry.flags)
    return {flag: text for flag, text in FLAGS.items() if flag in flags}


def counts_text(counts: Mapping[str, int]) -> str:
    """Format counts by reason, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{as_words(reason)} {count:,}" for reason, count in ordered)
