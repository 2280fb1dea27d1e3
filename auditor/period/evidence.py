"""The evidence file of a report: which requirement of a framework each part of the report is evidence for.

It points into the report, and copies no number of it. Whether the evidence is enough is for people to judge.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SCHEMA: Final = "biasmeter.evidence/1"
AI_ACT: Final = "EU AI Act (Regulation 2024/1689)"
NIST: Final = "NIST AI RMF 1.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """One requirement, what the product contributes to it, and what it does not.

    ``parts`` are the members of ``report.json`` that hold evidence, ``commands`` print more, ``pages`` describe it.
    """

    framework: str
    clause: str
    subject: str
    shown: str
    not_shown: str
    parts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


REQUIREMENTS: Final = (
    Requirement(
        framework=AI_ACT, clause="Article 9", subject="Risk management system",
        shown="rates of a known risk (endorsed stereotypes) with intervals, before and during use",
        not_shown="other risks, and whether a measure against the risk is adequate",
        parts=("parts",), commands=("biasmeter findings list",),
        pages=("estimates.md", "monitoring.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 10", subject="Data and data governance",
        shown="origin, licence, review and balance of the statements that are asked",
        not_shown="anything about the data that a model was trained on",
        commands=("biasmeter pool",),
        pages=("pool.md", "validity.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 11", subject="Technical documentation",
        shown="methods, assumptions and tests of each published number",
        not_shown="the documentation of the model itself",
        parts=("coders",),
        pages=("estimates.md", "validity.md", "architecture.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 12", subject="Record-keeping",
        shown="stored exchanges with a chain of digests, and a report that can be made again from them",
        not_shown="exchanges that were not sampled",
        parts=("inputs", "facts"), commands=("biasmeter verify",),
        pages=("retention.md", "exchanges.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 13", subject="Transparency to deployers",
        shown="rates with base, coverage, interval and limits, in a form for readers without statistics",
        not_shown="instructions for the use of the model",
        parts=("parts",),
        pages=("report.md", "explanation.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 14", subject="Human oversight",
        shown="labels by people beside those of judges, findings that a person acknowledges by name",
        not_shown="oversight of single decisions of an application",
        commands=("biasmeter findings list", "biasmeter review export"),
        pages=("reviews.md", "monitoring.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 15", subject="Accuracy, robustness and cybersecurity",
        shown="consistency of answers across layers, prompts and time; the threat model of the gateway",
        not_shown="accuracy on the tasks of your application",
        parts=("parts", "exposures"),
        pages=("replay.md", "security.md"),
    ),
    Requirement(
        framework=AI_ACT, clause="Article 72", subject="Post-market monitoring",
        shown="drift against a reference with a stated false-alarm rate, and the smallest change that could be found",
        not_shown="serious incidents outside the measured questions",
        commands=("biasmeter findings list", "biasmeter references list"),
        pages=("monitoring.md",),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.1", subject="Test sets, metrics and tools are documented",
        shown="statement pool, templates, metrics and the version of each",
        not_shown="metrics of other qualities",
        parts=("coders",), commands=("biasmeter pool",),
        pages=("pool.md", "estimates.md"),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.3", subject="Performance is measured for conditions similar to deployment",
        shown="coded traffic of routes, beside probes",
        not_shown="routes whose answers are not stored in full",
        parts=("parts",),
        pages=("probes.md", "gateway.md"),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.4", subject="Functionality and behaviour are monitored in production",
        shown="series, alerts and findings", not_shown="behaviour that no probe and no coded route shows",
        commands=("biasmeter findings list",),
        pages=("monitoring.md", "deploy.md"),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.5", subject="Validity and reliability are demonstrated",
        shown="agreement of judges, anchors with known labels, coverage of intervals in simulations",
        not_shown="validity for groups, languages and topics that are not in the pool",
        parts=("parts", "coders"), commands=("biasmeter judges anchors",),
        pages=("validity.md", "judges.md"),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.7", subject="Security and resilience are evaluated",
        shown="the gateway's threat model, and faults that are injected under load",
        not_shown="security of the model", pages=("security.md", "reliability.md"),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.8", subject="Transparency and accountability risks are examined",
        shown="who accepted a reference or acknowledged a finding, when and why",
        not_shown="decisions outside Biasmeter", commands=("biasmeter findings list", "biasmeter references list"),
        pages=("monitoring.md",),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.11", subject="Fairness and bias are evaluated",
        shown="rates of endorsed stereotypes by deployment, task, category and region, with intervals",
        not_shown="unequal treatment of users, and bias in the answers of an application as a whole",
        parts=("parts", "peers"),
        pages=("estimates.md", "explanation.md"),
    ),
    Requirement(
        framework=NIST, clause="MEASURE 2.13", subject="The effectiveness of the measurement is evaluated",
        shown="coverage, bounds, the smallest detectable change, and the disagreement of judges",
        not_shown="whether the measured quality is the one that matters to you",
        parts=("parts", "exposures"),
        pages=("validity.md", "reviews.md"),
    ),
)  # fmt: skip


def write_evidence(report: bytes) -> bytes:
    """Write ``evidence.json`` of a report, from the bytes of ``report.json``."""
    content: Mapping[str, Any] = json.loads(report)
    items = [
        {
            "framework": requirement.framework,
            "clause": requirement.clause,
            "subject": requirement.subject,
            "shown": requirement.shown,
            "not_shown": requirement.not_shown,
            "evidence": [f"/{part}" for part in requirement.parts if content.get(part)],
            "missing": [f"/{part}" for part in requirement.parts if not content.get(part)],
            "commands": list(requirement.commands),
            "pages": [f"docs/{page}" for page in requirement.pages],
        }
        for requirement in REQUIREMENTS
    ]
    document = {
        "schema": SCHEMA,
        "report": {"sha256": hashlib.sha256(report).hexdigest(), "from": content["from"], "to": content["to"]},
        "biasmeter": content["version"],
        "requirements": items,
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def requirements_table() -> str:
    """Write the requirements as a table of a page in ``docs/``."""
    rows = [_row(requirement) for requirement in REQUIREMENTS]
    head = "| requirement | subject | shown | not shown | in `report.json`, or by command | pages |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows]) + "\n"


def _links(pages: tuple[str, ...]) -> str:
    return ", ".join(f"[{page.removesuffix('.md')}]({page})" for page in pages)


def _row(requirement: Requirement) -> str:
    parts = [*(f"`{part}`" for part in requirement.parts), *(f"`{command}`" for command in requirement.commands)]
    named = f"{requirement.framework.partition(' (')[0]}, {requirement.clause} | {requirement.subject}"
    shown = f"{requirement.shown} | {requirement.not_shown}"
    return f"| {named} | {shown} | {', '.join(parts) or 'no'} | {_links(requirement.pages)} |"
