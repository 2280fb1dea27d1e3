"""Define JSON Schemas of what the API answers, for its OpenAPI document."""

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHEN: Final[Schema] = {"type": "string", "format": "date-time"}
DAY: Final[Schema] = {"type": "string", "format": "date"}
ID: Final[Schema] = {"type": "string", "format": "uuid"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
YES_NO: Final[Schema] = {"type": "boolean"}


def nullable(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def array(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def record(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> Schema:
    """Return the schema of an object; it may have further members."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": sorted(required)}


def component(name: str) -> Schema:
    """Return a reference to one of ``COMPONENTS``."""
    return {"$ref": f"#/components/schemas/{name}"}


COMPONENTS: Final[Mapping[str, Schema]] = {
    "Error": record(error=record(message=TEXT, type=TEXT, param=nullable(TEXT), code=TEXT)),
    "ExchangeSummary": record(id=ID, at=WHEN, origin=TEXT, route=TEXT, deployment=TEXT, status=COUNT, complete=YES_NO),
    "Exchange": record(
        {
            "parent": nullable(ID),
            "request": nullable(TEXT),
            "response": nullable(TEXT),
            "usage": nullable({"type": "object"}),
        },
        id=ID,
        at=WHEN,
        origin=TEXT,
        deployment=TEXT,
        status=COUNT,
        inclusion=NUMBER,
        codings=array(component("Coding")),
        labels=array(component("Label")),
    ),
    "Coding": record(
        coder=TEXT,
        rubric=TEXT,
        sel=nullable(TEXT),
        elab=nullable(TEXT),
        uncoded=nullable(TEXT),
        votes=array(component("Vote")),
    ),
    "Vote": record({"rationale": nullable(TEXT)}, judge=TEXT, label=nullable(TEXT), reason=nullable(TEXT)),
    "Label": record(
        {"note": TEXT},
        id=COUNT,
        exchange=ID,
        layer=TEXT,
        view=TEXT,
        label=TEXT,
        reviewer=TEXT,
        rubric=TEXT,
        at=WHEN,
        superseded=YES_NO,
    ),
    "Answer": record(
        {"at": nullable(WHEN), "response": nullable(TEXT)},
        id=ID,
        deployment=TEXT,
        origin=TEXT,
        statement=nullable(TEXT),
        sel=nullable(TEXT),
        elab=nullable(TEXT),
        votes=array(component("Vote")),
    ),
    "Estimate": record(
        {"deployment": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER, "missing": TEXT, "layer": TEXT},
        origin=TEXT,
        rubric=TEXT,
        condition=TEXT,
        window=TEXT,
        metric=TEXT,
        n=COUNT,
        flags=array(TEXT),
        since=WHEN,
        as_of=WHEN,
        coder=TEXT,
        seed=COUNT,
    ),
    "Deployment": record(
        name=TEXT,
        configured=YES_NO,
        planned=COUNT,
        answered=COUNT,
        origins={"type": "object"},
        estimates=array(component("Estimate")),
        reasons=array(TEXT),
        next=nullable(TEXT),
    ),
    "Finding": record(id=TEXT, deployment=TEXT, metric=TEXT, level=TEXT, state=TEXT, evidence={"type": "object"}),
    "Action": record(
        {"to": array(TEXT), "share": NUMBER, "ended": WHEN, "because": TEXT},
        id=TEXT,
        finding=TEXT,
        route=TEXT,
        deployment=TEXT,
        level=TEXT,
        action=TEXT,
        dry_run=YES_NO,
        began=WHEN,
        evidence_day=DAY,
        expires=WHEN,
    ),
    "Reference": record(id=TEXT, deployment=TEXT, since=DAY, accepted_at=WHEN, in_force=YES_NO),
    "Key": record(
        id=TEXT,
        name=TEXT,
        models=array(TEXT),
        rights=array(TEXT),
        role=nullable(TEXT),
        rpm=nullable(COUNT),
        tpm=nullable(COUNT),
        budget=nullable(NUMBER),
        spent_usd=nullable(NUMBER),
        created_at=WHEN,
        expires_at=nullable(WHEN),
        revoked=YES_NO,
    ),
    "Audit": record(
        {"created_at": WHEN},
        plan=TEXT,
        name=TEXT,
        design=TEXT,
        planned=COUNT,
        answered=COUNT,
        deployments=array({"type": "object"}),
        run=nullable({"type": "object"}),
    ),
    "Replay": record(
        id=TEXT,
        select=TEXT,
        formats=array(TEXT),
        to=nullable(TEXT),
        created_at=WHEN,
        planned=COUNT,
        answered=COUNT,
        concluded_at=nullable(WHEN),
        measures=COUNT,
        command=TEXT,
    ),
    "Step": record({"command": nullable(TEXT), "optional": YES_NO}, name=TEXT, done=YES_NO, text=TEXT),
}
