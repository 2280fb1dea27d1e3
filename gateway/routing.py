"""Which route a model belongs to, and which deployment answers. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from random import random

from auditor.config import Config, Deployment, Route
from gateway.errors import BadRequest, NotFound

ANY = "*"


@dataclass(frozen=True, slots=True)
class Target:
    """A route, the deployment chosen, and whether the request's ``model`` must be exchanged."""

    route: Route
    deployment: Deployment

    def upstream_model(self, asked: str) -> str:
        """Give the name under which the deployment knows the model."""
        return self.deployment.model or asked


class RoutingTable:
    """The configuration's routes and deployments, by name. Built once, never changed."""

    def __init__(self, config: Config) -> None:
        self.deployments = {deployment.name: deployment for deployment in config.deployments}
        self.routes = {route.model: route for route in config.routes}

    def route(self, model: str) -> Route:
        """Find the route of ``model``, or the one that takes the rest.

        Raises
        ------
        NotFound
            Neither exists.
        """
        route = self.routes.get(model) or self.routes.get(ANY)
        if route is None:
            raise NotFound(f"The model {model[:200]!r} does not exist.", code="model_not_found", param="model")
        return route

    def target(self, route: Route, pin: str | None = None, draw: Callable[[], float] = random) -> Target:
        """Choose a deployment of the route by weight, or take the pinned one, which may be any of the configuration.

        Raises
        ------
        BadRequest
            There is no deployment of the pinned name.
        """
        if pin is not None:
            return Target(route, self._pinned(pin))
        # One without weight must not be reached by rounding either.
        entries = [entry for entry in route.deployments if entry.weight > 0]
        rest = draw() * sum(entry.weight for entry in entries)
        for entry in entries:
            rest -= entry.weight
            if rest < 0:
                break
        return Target(route, self.deployments[entry.name])

    def _pinned(self, pin: str) -> Deployment:
        if pin not in self.deployments:
            known = ", ".join(sorted(self.deployments))
            raise BadRequest(
                f"x-tiltmeter-deployment names no deployment; there are: {known}.",
                code="unknown_deployment",
                param="x-tiltmeter-deployment",
            )
        return self.deployments[pin]
