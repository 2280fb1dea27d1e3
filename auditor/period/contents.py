"""Make the report over a period: an analysis for each origin and coder, and what the report was made from.

The document names the period, the moment up to which codings count (``as_of``), the coders with their versions, the
seed, and a digest of each day's counts. The same inputs give the same bytes, and a report that cannot be made again
names the day that differs. The comparisons of peers are made elsewhere (``auditor.period.peers``).
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import groupby
from typing import Any, Final

import orjson
from msgspec import UNSET, to_builtins

from auditor.counting.stored import Row, tallies_of, votes_of
from auditor.counting.tallies import GROUP_FIELDS
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.comparison import GroupKeyEntry
from auditor.domain.exchange import Origin
from auditor.estimation.analysis import Options, analyse
from auditor.period.document import (
    CoderInputs,
    DayDigest,
    ExposedGroup,
    ExposureReplay,
    LabelsDigest,
    PartEntry,
    PeerInputs,
    PeersEntry,
    QuotedDigest,
    ReplayInputs,
    ReportCoderEntry,
    ReportDocument,
)
from auditor.quotations.stored import Quotations
from auditor.reviews.corrections import ReviewSample, corrections
from auditor.store.exposures import ExposureRow
from auditor.store.period import Period
from auditor.trials.comparison import TrialCounts, compare_arms

#: Options of the analyses inside.
N_BOOT: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """Options of a report besides its period. They are written to the document and used for its reproduction."""

    seed: int
    by: tuple[str, ...] = ()  #: fields by which everything is also grouped
    quotes: bool = True  #: whether answers to probes may be quoted as case studies
    vendors: Mapping[str, str] = field(default_factory=dict)  #: vendors by deployment, where configured


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """The counts of one coder's codings of the period."""

    coder: str
    description: Mapping[str, Any]
    rows: Sequence[Row]
    ballots: Sequence[Row]
    samples: Sequence[ReviewSample] = ()  #: draws that people have labelled, the newest first
    quotations: Quotations = field(default_factory=Quotations)
    trials: Sequence[TrialCounts] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """The comparison of one domain's peers, or of one route's mirrored prompts, and what it used."""

    entry: PeersEntry
    used: PeerInputs


def make_report(
    period: Period,
    counted: Sequence[Counted],
    terms: Terms,
    compared: Sequence[Compared] = (),
    exposures: Sequence[ExposureRow] = (),
) -> ReportDocument:
    """Make the document of ``report.json``. Coders without codings in the period are left out."""
    used = [each for each in counted if each.rows]
    inputs: list[CoderInputs | PeerInputs | ReplayInputs] = [
        *(_coder_inputs(each) for each in used),
        *(each.used for each in compared),
        *exposure_inputs(exposures),
    ]
    return ReportDocument(
        schema="biasmeter.report/1",
        version=version("biasmeter"),
        from_=period.since.isoformat(),
        to=period.until.isoformat(),
        as_of=period.as_of.isoformat(),
        seed=terms.seed,
        n_boot=N_BOOT,
        by=terms.by,
        quotes=terms.quotes,
        vendors=terms.vendors,
        coders=[ReportCoderEntry(id=each.coder, description=each.description) for each in used],
        inputs=inputs,
        facts=_sha256(orjson.dumps(to_builtins(inputs), option=orjson.OPT_SORT_KEYS)),
        parts=[part for each in used for part in _parts(each, terms)],
        peers=[each.entry for each in compared],
        exposures=exposure_entries(exposures),
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parts(counted: Counted, terms: Terms) -> Iterator[PartEntry]:
    audit = counted.description.get("audit")
    for origin in sorted({row["origin"] for row in counted.rows}):
        rows = [row for row in counted.rows if row["origin"] == origin]
        samples = [sample for sample in counted.samples if sample.origin == origin]
        yield PartEntry(
            origin=origin,
            rubric=counted.description["rubric"],
            audit=None if audit is None else audit["name"],
            coder=counted.coder,
            uncoded=_uncoded(rows),
            analysis=_analysis(counted, origin, rows, terms),
            reviews=corrections(samples, seed=terms.seed, n_boot=N_BOOT) if samples else UNSET,
            trials=[compare_arms(each, seed=terms.seed) for each in counted.trials] or UNSET,
        )


def _analysis(counted: Counted, origin: str, rows: Sequence[Row], terms: Terms) -> AnalysisDocument | None:
    planned = counted.description.get("audit") is None
    by = ("deployment", *(terms.by or ("task",))) if planned else ("deployment",)
    extra = [name for name in by if name not in GROUP_FIELDS]
    votes = votes_of([row for row in counted.ballots if row["origin"] == origin])
    tallies = tallies_of(rows, votes, extra=extra)
    if origin == Origin.PROBE:
        tallies = replace(tallies, cases=counted.quotations.cases, swings=counted.quotations.swings)
    options = Options(by=by, seed=terms.seed, n_boot=N_BOOT, vendors=terms.vendors)
    return analyse(tallies, options) if tallies.groups else None


def _uncoded(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Count exchanges without a coding, by deployment and reason."""
    out: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["uncoded"] is not None:
            reasons = out.setdefault(row["deployment"], {})
            reasons[row["uncoded"]] = reasons.get(row["uncoded"], 0) + row["n"]
    return out


def _coder_inputs(counted: Counted) -> CoderInputs:
    """Digest each day's counts, people's labels and the quoted answers."""
    by_day: dict[str, list[bytes]] = {}
    number: Counter[str] = Counter()
    for row in counted.rows:
        by_day.setdefault(row["day"], []).append(orjson.dumps(dict(row), option=orjson.OPT_SORT_KEYS))
        number[row["day"]] += row["n"]
    labels = [
        [sample.draw, sample.unlabelled, row["cluster"], row["elab"], row["opinions"], row["draw_inclusion"]]
        for sample in counted.samples
        for row in sample.labelled
    ]
    quoted = [
        QuotedDigest(exchange=key, sha256=_sha256(answer.encode()))
        for key, answer in sorted(counted.quotations.texts.items())
    ]
    return CoderInputs(
        coder=counted.coder,
        days=[
            DayDigest(day=day, n=number[day], sha256=_sha256(b"\n".join(sorted(lines))))
            for day, lines in sorted(by_day.items())
        ],
        labels=LabelsDigest(n=len(labels), sha256=_sha256(orjson.dumps(labels))) if labels else UNSET,
        quoted=quoted or UNSET,
    )


def missing_inputs(report: ReportDocument, again: ReportDocument) -> Iterator[str]:
    """Name the inputs of a report, peers apart, that are gone or have changed."""
    by_coder = {each.coder: each for each in _of_coders(again)}
    for each in _of_coders(report):
        now = by_coder.get(each.coder, CoderInputs(coder=each.coder, days=[]))
        have = {day.day: day for day in now.days}
        if each.labels != now.labels:
            yield f"people's labels of what {each.coder} read are not those that were counted"
        for day in each.days:
            left = have.get(day.day)
            if left is None:
                yield f"the {day.n} codings of {day.day} by {each.coder} are gone"
            elif left.n < day.n:
                yield f"of the {day.n} codings of {day.day} by {each.coder}, {left.n} are left"
            elif left.sha256 != day.sha256:
                yield f"the codings of {day.day} by {each.coder} are not those that were counted"
        for answer in each.quoted or ():
            if answer not in (now.quoted or ()):
                yield f"the answer of exchange {answer.exchange}, which is quoted, is not kept any more"
    yield from missing_exposures(report, again)


def _of_coders(report: ReportDocument) -> list[CoderInputs]:
    return [each for each in report.inputs if isinstance(each, CoderInputs)]


def exposure_entries(rows: Iterable[ExposureRow]) -> list[ExposureReplay]:
    """Return each replay with its groups, the oldest first; measures as ``comparison.json`` has them."""
    return [
        ExposureReplay(
            replay=replay,
            concluded_at=replay_rows[0].concluded_at.isoformat(),
            select=replay_rows[0].selection,
            groups=[
                ExposedGroup(
                    by=GroupKeyEntry(deployment=deployment, origin=origin, route=route, task=task),
                    rubric=rubric,
                    claim=claim,
                    exposure={row.metric: row.entry for row in group},
                )
                for (deployment, origin, route, task, rubric, claim), group in groupby(replay_rows, _group)
            ],
        )
        for replay, replay_rows in _replays(rows)
    ]


def _replays(rows: Iterable[ExposureRow]) -> Iterator[tuple[str, list[ExposureRow]]]:
    # All rows of one replay have the same time, so the order of the store keeps them together.
    return ((replay, list(replay_rows)) for replay, replay_rows in groupby(rows, lambda row: row.replay_id))


def _group(row: ExposureRow) -> tuple[str, str, str | None, str | None, str, str | None]:
    return row.deployment, row.origin, row.route, row.task, row.rubric, row.claim


def exposure_inputs(rows: Iterable[ExposureRow]) -> list[ReplayInputs]:
    """Digest the results of each replay."""
    return [
        ReplayInputs(replay=replay, n=len(replay_rows), sha256=hashlib.sha256(orjson.dumps(replay_rows)).hexdigest())
        for replay, replay_rows in _replays(rows)
    ]


def missing_exposures(report: ReportDocument, again: ReportDocument) -> Iterator[str]:
    """Name the replays of a report whose results have changed or are gone."""
    have = _inputs(again)
    for replay, used in _inputs(report).items():
        if have.get(replay) != used:
            yield f"the result of replay {replay} has changed or is gone"


def _inputs(report: ReportDocument) -> dict[str, ReplayInputs]:
    return {each.replay: each for each in report.inputs if isinstance(each, ReplayInputs)}
