"""Describe the API as an OpenAPI document, served at ``/api/openapi.json``."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiohttp import web

from auditor.api.operations import Operation, get
from auditor.documents.service import ErrorBody
from auditor.schemas import SchemaMaker

_COMPONENTS: Final = "#/components/schemas/"


def openapi_operation(operations: Iterable[Operation]) -> Operation:
    """Return the operation that serves the document of other operations, and of itself."""

    @get("/api/openapi.json", "This document")
    async def show(_: web.Request) -> Mapping[str, Any]:
        return document

    document = openapi_document([show, *operations])
    return show


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the document of some operations."""
    maker = SchemaMaker({}, _COMPONENTS)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation, maker)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Biasmeter: the auditor's API", "version": "1"},
        "security": [{"key": []}, {"session": []}, {}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(maker.defs.items())),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "biasmeter_session"},
            },
        },
    }


def _describe(operation: Operation, maker: SchemaMaker) -> dict[str, Any]:
    placed = [
        {"name": name, "in": "path", "required": True, "schema": maker.schema(str)}
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    placed += [
        {"name": name, "in": "query", "required": False, "schema": maker.schema(kind)}
        for name, kind in operation.filters.items()
    ]
    answered = {"description": operation.summary, "content": _json(operation.answer, maker)}
    refused = {"description": "Why it was refused or failed", "content": _json(ErrorBody, maker)}
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{re.sub(r'[^a-z]+', '_', operation.path)}",
        "summary": operation.summary,
        "description": f"Needs the role {operation.role}.",
        "parameters": placed,
        "responses": {**dict.fromkeys(map(str, operation.statuses), answered), "4XX": refused, "503": refused},
    }
    if operation.takes is not None:
        described["requestBody"] = {"required": True, "content": _json(operation.takes, maker)}
    return described


def _json(kind: Any, maker: SchemaMaker) -> dict[str, Any]:
    return {"application/json": {"schema": maker.schema(kind)}}
