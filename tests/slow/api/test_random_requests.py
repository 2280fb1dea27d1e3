"""The API under random requests, as its document allows them and as it does not: the same ones in every run."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from support.lazy_imports import ImportedLater
from support.servers.console import console, later, seed
from support.stores.audited_store import configuration

#: Of each operation and mode: about a minute in all.
EXAMPLES = 20
PROMISES = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"
]  # fmt: skip

schemathesis = ImportedLater("schemathesis")


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_random_request_is_an_error_of_the_server(migrated_url: str, tmp_path: Path, mode: str) -> None:
    config = configuration(tmp_path)
    seed(migrated_url, config)
    schemathesis.checks.load_all_checks()
    promises = schemathesis.checks.CHECKS.get_by_names(PROMISES)
    generation = schemathesis.GenerationMode(mode)
    with console(migrated_url, config, later) as site:
        schema = schemathesis.openapi.from_url(site.url + "/api/openapi.json")
        for operation in (found.ok() for found in schema.get_all_operations()):

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                suppress_health_check=[HealthCheck.filter_too_much],
            )
            @given(case=operation.as_strategy(generation_mode=generation))
            def promise(case: Any) -> None:
                case.call_and_validate(checks=promises, timeout=60)

            # Some operations take nothing that could be wrong.
            with suppress(Unsatisfiable):
                promise()
