"""The model that a call to a deployment asks for, though a pin chooses the deployment: one that the gateway routes."""

import pytest

from auditor.access import pinned_model
from auditor.config import Config
from auditor.errors import UsageError


def config_of(routes: dict[str, list[str]], model: str | None = "own") -> Config:
    url, models = "http://127.0.0.1:1", {"d1": model, "d2": "other"}
    return Config.model_validate(
        {
            "deployments": [{"name": name, "model": each, "base_url": url} for name, each in models.items()],
            "routes": [{"model": name, "deployments": names} for name, names in routes.items()],
        }
    )


@pytest.mark.parametrize(
    ("routes", "model"),
    [
        ({"*": ["d1"], "desk": ["d1"]}, "desk"),
        ({"own": ["d2"], "desk": ["d1"]}, "desk"),
        ({"other": ["d2"], "*": ["d2"]}, "own"),
        ({"other": ["d2"], "own": ["d2"]}, "own"),
        ({"other": ["d2"], "desk": ["d2"]}, "other"),
    ],
    ids=["a route of its own", "before its model", "the rest", "another's route of its model", "any route"],
)
def test_a_model_with_a_route(routes: dict[str, list[str]], model: str) -> None:
    config = config_of(routes)
    assert pinned_model(config, config.deployments[0]) == model


def test_a_deployment_without_a_model_needs_a_route_of_its_own() -> None:
    named = config_of({"desk": ["d1"]}, model=None)
    assert pinned_model(named, named.deployments[0]) == "desk"
    unnamed = config_of({"*": ["d1"], "other": ["d2"]}, model=None)
    with pytest.raises(UsageError, match="'d1' names no model to ask for"):
        pinned_model(unnamed, unnamed.deployments[0])
