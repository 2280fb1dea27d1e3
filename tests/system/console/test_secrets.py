"""No secret of a configuration is on a page, in an answer of the API, in an error or a log, or printed by a command."""

import json
import logging
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import httpx2
import pytest
import yaml
from pydantic import BaseModel, SecretStr
from support.servers import commands
from support.servers.console import console, later
from support.servers.ports import free_port

from auditor.api.app import _PAGES, OPERATIONS
from auditor.config import Config, load
from auditor.errors import ConfigError

MARK = "MARKED-5e1f0c7a"

#: Every secret of a configuration, by the path of its field; the test that walks the model keeps it complete.
SECRETS: dict[tuple[str, ...], str] = {
    ("store", "url"): f"postgresql://someone:{MARK}@127.0.0.1:1/nowhere",
    ("auditor", "gateway", "key"): f"sk-{MARK}",
    ("deployments", "api_key"): f"sk-{MARK}",
    ("deployments", "headers"): f"Bearer {MARK}",
    ("monitor", "webhook", "url"): f"https://hooks.example/{MARK}",
    ("monitor", "webhook", "secret"): f"hush-{MARK}",
    ("otel", "headers"): f"Bearer {MARK}",
}


def settings() -> dict[str, Any]:
    """A configuration with a mark in every secret."""
    secrets = SECRETS
    return {
        "data_dir": "data",
        "store": {"url": secrets["store", "url"]},
        "gateway": {"listen": f"127.0.0.1:{free_port()}"},
        "auditor": {"gateway": {"url": "http://127.0.0.1:1/v1", "key": secrets["auditor", "gateway", "key"]}},
        "deployments": [
            {
                "name": "d1",
                "base_url": "http://127.0.0.1:1/v1",
                "model": "m",
                "api_key": secrets["deployments", "api_key"],
                "headers": {"x-token": secrets["deployments", "headers"]},
            }
        ],
        "judges": [{"name": "north", "deployment": "d1"}],
        "routes": [{"model": "*", "deployments": ["d1"]}],
        "monitor": {
            "webhook": {"url": secrets["monitor", "webhook", "url"], "secret": secrets["monitor", "webhook", "secret"]}
        },
        "otel": {"endpoint": "http://127.0.0.1:1", "headers": {"authorization": secrets["otel", "headers"]}},
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "biasmeter.yaml"
    file.write_text(yaml.safe_dump(settings()))
    return file


def secret_fields(section: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields of a section, and below, that hold a secret."""
    for name, field in section.model_fields.items():
        for kind in inner_types(field.annotation):
            if kind is SecretStr:
                yield (name,)
            elif isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from ((name, *rest) for rest in secret_fields(kind))


def inner_types(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in {types.UnionType, Union, tuple, dict}:
        for argument in get_args(annotation):
            yield from inner_types(argument)
    else:
        yield get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation


def test_every_secret_is_marked() -> None:
    assert set(secret_fields(Config)) == set(SECRETS)


def test_no_page_no_answer_and_no_log_shows_a_secret(
    migrated_url: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = load(path, {})
    pages = {route.path for page in _PAGES for route in page.routes() if route.method == "GET"}
    paths = pages | {operation.path for operation in OPERATIONS if operation.method == "GET"}
    shown = repr(config) + str(config) + config.model_dump_json() + json.dumps(config.model_dump(mode="json"))
    with console(migrated_url, config, later) as site:
        for address in sorted(paths):
            answer = httpx2.get(site.url + address.replace("{", "").replace("}", ""), timeout=60)
            shown += answer.text + str(answer.headers)
        assert "authorization" in httpx2.get(site.url + "/api/health").text
    assert MARK not in shown + caplog.text


@pytest.mark.parametrize(
    "command",
    [
        ("check",), ("check", "--json"), ("audit", "plan"), ("key", "list"), ("report", "-o", "report"), ("verify",),
        ("migrate",), ("auditor",), ("export-coded", "-o", "rows.csv"), ("replay", "--select", "all"),
    ],
)  # fmt: skip
def test_no_command_prints_a_secret(path: Path, command: tuple[str, ...]) -> None:
    done = commands.run((*command, "-c", str(path)), environment={"HOME": "/h"}, folder=path.parent, timeout=60)
    assert done.returncode in {0, 1, 2}
    assert "Traceback" not in done.stderr
    assert MARK not in done.stdout + done.stderr


@pytest.mark.parametrize("field", SECRETS, ids=".".join)
def test_no_error_shows_a_secret(path: Path, field: tuple[str, ...]) -> None:
    """A secret that cannot be used is named by its key."""
    content = path.read_text()
    wrong = {("store", "url"): f"postgresql://someone:{MARK}/x@127.0.0.1/d", ("monitor", "webhook", "url"): MARK}
    path.write_text(content.replace(SECRETS[field], wrong.get(field, f"\u0101 {MARK}")))
    with pytest.raises(ConfigError) as refused:
        load(path, {})
    assert field[-1] in str(refused.value)
    assert MARK not in str(refused.value)
