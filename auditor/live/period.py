"""The report over a period: one analysis for each origin and coder, and what has to be there to make it again.

The document names the period, the moment up to which codings count (``as_of``), the coders with their versions, the
seed, and a digest of each day's counts: the same inputs give the same bytes, and other inputs are told by day. What
comparing peers comes to is handed in (``auditor.peers.period``).
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Final

import orjson

from auditor.analysis.document import Json
from auditor.analysis.run import Options, analyse
from auditor.analysis.tallies import PROFILE_FIELDS
from auditor.domain.exchange import Origin
from auditor.live.corrections import ReviewSample, corrections_json
from auditor.live.exposures import exposure_entries, exposure_inputs, missing_exposures
from auditor.live.quotations import Quotations
from auditor.live.tallies import Row, tallies_of, votes_of
from auditor.store.exposures import ExposureRow
from auditor.store.period import Period

SCHEMA: Final = "tiltmeter.report/1"
#: Options of the analyses inside.
N_BOOT: Final = 2000

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What was asked of a report beside its period; they stand in the document, and hold when it is made again."""

    seed: int
    by: tuple[str, ...] = ()  #: fields of the statements that everything is also given by
    quotes: bool = True  #: whether answers to probes may be quoted as case studies
    vendors: Mapping[str, str] = field(default_factory=dict)  #: by deployment, as far as the configuration says


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """What one coder's codings of the period come to."""

    coder: str
    description: Mapping[str, Any]
    rows: Sequence[Row]
    ballots: Sequence[Row]
    samples: Sequence[ReviewSample] = ()  #: that people have labelled, the newest first
    quotations: Quotations = field(default_factory=Quotations)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """What comparing the peers of one domain, or of one route's mirrored prompts, comes to."""

    entry: Mapping[str, Json]  #: of the document
    used: Mapping[str, Json]  #: digests of answers, vectors and scores


def make_report(
    period: Period,
    counted: Sequence[Counted],
    terms: Terms,
    compared: Sequence[Compared] = (),
    exposures: Sequence[ExposureRow] = (),
) -> dict[str, Json]:
    """Make the document of ``report.json``. Coders that have read nothing of the period are left out."""
    used = [each for each in counted if each.rows]
    inputs: list[Mapping[str, Json]] = [
        *({"coder": each.coder, "days": _days(each.rows)} | _labels(each) | _quoted(each) for each in used),
        *(each.used for each in compared),
        *exposure_inputs(exposures),
    ]
    return {
        "schema": SCHEMA,
        "version": version("tiltmeter"),
        "from": period.since.isoformat(),
        "to": period.until.isoformat(),
        "as_of": period.as_of.isoformat(),
        "seed": terms.seed,
        "n_boot": N_BOOT,
        "by": list(terms.by),
        "quotes": terms.quotes,
        "vendors": dict(terms.vendors),
        "coders": [{"id": each.coder, "description": each.description} for each in used],
        "inputs": inputs,
        "facts": hashlib.sha256(orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        "parts": [part for each in used for part in _parts(each, terms)],
        "peers": [each.entry for each in compared],
        "exposures": exposure_entries(exposures),
    }


def _parts(counted: Counted, terms: Terms) -> Iterator[dict[str, Json]]:
    audit = counted.description.get("audit")
    for origin in sorted({row["origin"] for row in counted.rows}):
        rows = [row for row in counted.rows if row["origin"] == origin]
        samples = [sample for sample in counted.samples if sample.origin == origin]
        reviews = {"reviews": corrections_json(samples, seed=terms.seed, n_boot=N_BOOT)} if samples else {}
        yield {
            "origin": origin,
            "rubric": counted.description["rubric"],
            "audit": None if audit is None else audit["name"],
            "coder": counted.coder,
            "uncoded": _uncoded(rows),
            "analysis": _analysis(counted, origin, rows, terms),
        } | reviews


def _analysis(counted: Counted, origin: str, rows: Sequence[Row], terms: Terms) -> dict[str, Json] | None:
    planned = counted.description.get("audit") is None
    by = ("deployment", *(terms.by or ("task",))) if planned else ("deployment",)
    extra = [name for name in by if name not in PROFILE_FIELDS]
    votes = votes_of([row for row in counted.ballots if row["origin"] == origin])
    tallies = tallies_of(rows, votes, extra=extra)
    if origin == Origin.PROBE:
        tallies = replace(tallies, cases=counted.quotations.cases, swings=counted.quotations.swings)
    options = Options(by=by, seed=terms.seed, n_boot=N_BOOT, vendors=terms.vendors)
    return analyse(tallies, options) if tallies.profiles else None


def _uncoded(rows: Iterable[Row]) -> dict[str, Json]:
    """Count exchanges without a coding, by deployment and reason."""
    out: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["uncoded"] is not None:
            reasons = out.setdefault(row["deployment"], {})
            reasons[row["uncoded"]] = reasons.get(row["uncoded"], 0) + row["n"]
    return {deployment: dict(reasons) for deployment, reasons in out.items()}


def _days(rows: Iterable[Row]) -> list[Json]:
    """Digest each day's counts."""
    by_day: dict[str, list[bytes]] = {}
    number: dict[str, int] = {}
    for row in rows:
        by_day.setdefault(row["day"], []).append(orjson.dumps(dict(row), option=orjson.OPT_SORT_KEYS))
        number[row["day"]] = number.get(row["day"], 0) + row["n"]
    return [
        {"day": day, "n": number[day], "sha256": hashlib.sha256(b"\n".join(sorted(lines))).hexdigest()}
        for day, lines in sorted(by_day.items())
    ]


def _labels(counted: Counted) -> dict[str, Json]:
    """Digest what people have said, where they have."""
    rows = [
        [sample.draw, sample.unlabelled, row["cluster"], row["elab"], row["opinions"], row["inclusion"]]
        for sample in counted.samples
        for row in sample.labelled
    ]
    return {"labels": {"n": len(rows), "sha256": hashlib.sha256(orjson.dumps(rows)).hexdigest()}} if rows else {}


def _quoted(counted: Counted) -> dict[str, Json]:
    """Digest the answers that are quoted."""
    rows: list[Json] = [
        {"exchange": key, "sha256": hashlib.sha256(answer.encode()).hexdigest()}
        for key, answer in sorted(counted.quotations.texts.items())
    ]
    return {"quoted": rows} if rows else {}


def missing_inputs(report: Document, again: Document) -> Iterator[str]:
    """Name what a report was made from, peers apart, that is not there any more, or is not as it was."""
    found = _of_coders(again)
    have = {(each["coder"], day["day"]): day for each in found for day in each["days"]}
    labels = {each["coder"]: each.get("labels") for each in found}
    quoted = {each["coder"]: each.get("quoted", ()) for each in found}
    for each in _of_coders(report):
        if each.get("labels") != labels.get(each["coder"]):
            yield f"people's labels of what {each['coder']} read are not those that were counted"
        for day in each["days"]:
            left = have.get((each["coder"], day["day"]))
            if left is None:
                yield f"the {day['n']} codings of {day['day']} by {each['coder']} are gone"
            elif left["n"] < day["n"]:
                yield f"of the {day['n']} codings of {day['day']} by {each['coder']}, {left['n']} are left"
            elif left["sha256"] != day["sha256"]:
                yield f"the codings of {day['day']} by {each['coder']} are not those that were counted"
        for answer in each.get("quoted", ()):
            if answer not in quoted.get(each["coder"], ()):
                yield f"the answer of exchange {answer['exchange']}, which is quoted, is not kept any more"
    yield from missing_exposures(report, again)


def _of_coders(report: Document) -> list[Document]:
    return [each for each in report["inputs"] if "coder" in each]
