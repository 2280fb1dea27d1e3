"""What differs between two configurations is told by name and key, never by value; what is fixed is found."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from auditor.config import Config, loads
from auditor.config.reload import describe, find_fixed

BASE: dict[str, Any] = {
    "data_dir": "data",
    "gateway": {"workers": 2},
    "deployments": [{"name": "a", "base_url": "http://a/v1"}, {"name": "b", "base_url": "http://b/v1"}],
    "routes": [{"model": "m", "deployments": ["a"]}],
}


def config(**changed: Any) -> Config:
    text = yaml.safe_dump(BASE | changed)
    return loads(text, source="biasmeter.yaml", folder=Path("/etc"), environ={}).config


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({}, ()),
        ({"routes": [{"model": "other", "deployments": ["a"]}]}, ()),
        ({"gateway": {"workers": 2, "retries": 5, "spool": {"max_bytes": "1GiB"}}}, ()),
        ({"gateway": {"workers": 3, "listen": "127.0.0.1:1"}}, ("gateway.listen", "gateway.workers")),
        ({"data_dir": "elsewhere"}, ("data_dir",)),
        ({"store": {"url": "postgresql://u:secret@h/d"}}, ("store.url",)),
        ({"auditor": {"listen": "127.0.0.1:1"}}, ("auditor.listen",)),
        ({"auditor": {"gateway": {"url": "http://h/v1", "key": "k"}}}, ("auditor.gateway",)),
    ],
)
def test_what_only_a_restart_changes_is_found(changed: dict[str, Any], keys: tuple[str, ...]) -> None:
    assert find_fixed(config(), config(**changed)) == keys
    assert find_fixed(config(**changed), config()) == keys


def test_deployments_and_routes_are_told_by_name_and_the_rest_by_key() -> None:
    new = config(
        gateway={"workers": 2, "retries": 5, "timeouts": {"idle": 7}},
        seed=3,
        deployments=[
            {"name": "b", "base_url": "http://b/v1", "api_key": "sk-secret"},
            {"name": "c", "base_url": "http://c"},
        ],
        routes=[{"model": "m", "deployments": ["b"]}, {"model": "two words", "deployments": ["b"]}],
    )
    assert describe(config(), new) == (
        "deployments added: c; deployments removed: a; deployments changed: b; "
        'routes added: "two words"; routes changed: m; changed: gateway.timeouts.idle, gateway.retries, seed'
    )


def test_nothing_is_told_where_nothing_has_changed() -> None:
    assert describe(config(), config()) == ""
