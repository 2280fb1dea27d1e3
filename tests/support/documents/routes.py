"""Routes for the configuration of a test."""

from collections.abc import Iterable
from typing import Any


def add_route(
    configuration: dict[str, Any],
    model: str,
    url: str,
    *,
    answer: str | None = None,
    fallbacks: Iterable[str] = (),
    **deployment: Any,
) -> None:
    """Add a route to a deployment of its own, so that what it goes through closes no other's circuit.

    Parameters
    ----------
    model
        What clients ask for; the deployment's name too.
    answer
        What the deployment is asked for: of the scripted upstream, an answer's name. Otherwise what clients ask for.
    """
    named = {"model": answer} if answer else {}
    configuration["deployments"].append({"name": model, "base_url": url, "api_key": "sk-upstream"} | named | deployment)
    route = {"model": model, "deployments": [model], "fallbacks": list(fallbacks), "capture": "full"}
    configuration["routes"].append(route)
