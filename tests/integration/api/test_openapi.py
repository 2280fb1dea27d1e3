"""The OpenAPI document: it names every operation and filter, and the API does what it says (schemathesis)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from hypothesis import given, settings
from support.lazy_imports import ImportedLater
from support.servers.console import Console, console, later, seed
from support.stores.audited_store import configuration
from support.stores.databases import Databases, seeded_database
from support.stores.postgres import copied_database

from auditor.api.app import _PAGES, OPERATIONS
from auditor.api.openapi import openapi_document

#: Of each operation, in `make test-all`: enough to find an answer that does not have its schema.
EXAMPLES = 5
PROMISES = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"
]  # fmt: skip

DOCUMENT = openapi_document(OPERATIONS)

schemathesis = ImportedLater("schemathesis")
jsonschema = ImportedLater("jsonschema")


@pytest.fixture(scope="module")
def seeded_store(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a seeded database, to be copied."""
    config = configuration(tmp_path_factory.mktemp("seeded"))
    with seeded_database(databases, lambda url: seed(url, config)) as name:
        yield name


@pytest.fixture
def seeded(postgres_server: str, seeded_store: str, tmp_path: Path) -> Iterator[Console]:
    """The API on a loopback address, on a seeded store of the test's own, which may change."""
    with copied_database(postgres_server, seeded_store) as url, console(url, configuration(tmp_path), later) as served:
        yield served


def test_every_operation_of_the_api_is_named() -> None:
    documented = [(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods]
    assert sorted(documented) == sorted((operation.method, operation.path) for operation in OPERATIONS)
    assert [route.path for page in _PAGES for route in page.routes() if route.path.startswith("/api/")] == []


def test_the_api_does_what_its_document_says(seeded: Console, thorough: bool) -> None:
    schemathesis.checks.load_all_checks()
    promises = schemathesis.checks.CHECKS.get_by_names(PROMISES)
    schema = schemathesis.openapi.from_url(seeded.url + "/api/openapi.json")
    operations = [one.ok() for one in schema.get_all_operations()]
    assert len(operations) == len(OPERATIONS) - 1  # all but the document itself
    for operation in operations:

        @settings(max_examples=EXAMPLES if thorough else 2, derandomize=True, database=None, deadline=None)
        @given(case=operation.as_strategy())
        def promise(case: Any) -> None:
            case.call_and_validate(checks=promises, timeout=60)

        promise()


def test_an_unknown_filter_is_refused_everywhere(seeded: Console) -> None:
    for operation in OPERATIONS:
        address = seeded.url + operation.path.replace("{", "").replace("}", "")
        answer = httpx2.request(operation.method, address, params={"colour": "red"})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "colour"), operation.path


#: Values at and beyond the ends of what dates, numbers, ids and texts can be.
HOSTILE = (
    "0001-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "999999w", "1969-12-31", "-1", "0", "1e999",
    "nan", "9" * 5000, "\u0663", "a" * 9000, "'", "%", "\\", "\ud800".encode(errors="surrogatepass"),
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
)  # fmt: skip


def test_no_value_of_a_parameter_is_an_error_of_the_server(seeded: Console, thorough: bool) -> None:
    filters = {
        (path, parameter["name"])
        for path, methods in DOCUMENT["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", ())
        if parameter["in"] == "query"
    }
    pages = {(path.removeprefix("/api"), name) for path, name in filters if path == "/api/answers"}
    with httpx2.Client(base_url=seeded.url, timeout=60) as client:
        for path, name in sorted(filters | pages):
            for value in HOSTILE if thorough else HOSTILE[:2]:
                address = f"{path.replace('{', '').replace('}', '')}?{urlencode({name: value})}"
                assert client.get(address).status_code < 500, address[:300]
        for value in ("0001-01-01", "1969-12-31", "9999-12-31T23:59:59-14:00"):
            for name in ("from", "to", "as_of"):
                answer = client.get("/api/answers", params={name: value})
                assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


def test_what_is_stored_has_the_documents_schema(seeded: Console) -> None:
    """Random ids find nothing, so what they would find is compared here."""
    answers = httpx2.get(seeded.url + "/api/answers").json()["answers"]
    paths = {
        "/api/exchanges/{id}": f"/api/exchanges/{answers[0]['id']}",
        "/api/answers/{id}": f"/api/answers/{answers[0]['id']}",
        "/api/audits/{id}": "/api/audits/p1",
        "/api/audits/{id}/beside/{other}": "/api/audits/p1/beside/p1",
        "/api/deployments/{name}": "/api/deployments/d1",
        "/api/deployments/{name}/beside/{other}": "/api/deployments/d1/beside/d2",
    }
    for path, address in paths.items():
        answer = httpx2.get(seeded.url + address)
        assert answer.status_code == 200, answer.text
        schema = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(answer.json())
