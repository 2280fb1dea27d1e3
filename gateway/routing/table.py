"""Routes of models, and the choice of a deployment. Pure functions."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from random import random
from typing import Generic, TypeVar

from auditor.config import Config, Deployment, Route
from auditor.domain.actions import RouteAction, effective_weights
from gateway.errors import BadRequest, NotFound
from gateway.routing.trials import Trial

ANY = "*"
T = TypeVar("T")


class RoutingTable:
    """The configuration's routes and deployments, by name, as actions on routes change them. Never changed itself.

    ``stopped`` has the arms of trials that were stopped (`auditor.trials.assignment.stop_key`).
    """

    def __init__(
        self, config: Config, actions: tuple[RouteAction, ...] = (), stopped: Collection[str] = frozenset()
    ) -> None:
        self.actions = actions
        self.stopped = frozenset(stopped)
        self.deployments = {deployment.name: deployment for deployment in config.deployments}
        self.routes = {route.model: _acted_on(route, actions) for route in config.routes}
        # Without copies nothing would be known of a trial, and it waits.
        self.trials = {
            route.model: Trial(config, route, trial, self.stopped)
            for route in config.routes
            if (trial := config.trial_of(route)) is not None and self.routes[route.model].sample > 0
        }
        self.timeouts = {deployment.name: config.timeouts_for(deployment) for deployment in config.deployments}

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

    def deployments_of(self, models: Iterable[str]) -> frozenset[str]:
        """Return the names of the deployments that answer any of the models; fallbacks are not followed."""
        routes = (self.routes.get(model) or self.routes.get(ANY) for model in models)
        return frozenset(entry.name for route in routes if route is not None for entry in route.deployments)

    def pinned(self, pin: str) -> Deployment:
        """Return the deployment that a request names; it may be any of the configuration.

        Raises
        ------
        BadRequest
            There is none of that name.
        """
        if pin not in self.deployments:
            known = ", ".join(sorted(self.deployments))
            raise BadRequest(
                f"x-biasmeter-deployment names no deployment of the configuration. Known: {known}.",
                code="unknown_deployment",
                param="x-biasmeter-deployment",
            )
        return self.deployments[pin]


def _acted_on(route: Route, actions: Sequence[RouteAction]) -> Route:
    """Return a route with the weights and the sample that the actions on it leave."""
    route_actions = [action for action in actions if action.route == route.model]
    if not route_actions:
        return route
    weights = effective_weights({entry.name: entry.weight for entry in route.deployments}, route_actions)
    entries = tuple(entry.model_copy(update={"weight": weights[entry.name]}) for entry in route.deployments)
    sample = 0.0 if any(action.kind == "stop_sampling" for action in route_actions) else route.sample
    return route.model_copy(update={"deployments": entries, "sample": sample})


class WeightedChoice(Generic[T]):
    """Chooses one of some deployments: two are drawn by weight, and the one with fewer pending requests is taken.

    Pending requests are seen in proportion to the weight. Where the two are equal the first counts, so that without
    load each deployment gets exactly its share, and one that slows down gets less.

    Parameters
    ----------
    entries
        Deployments, each with its weight: at least one above 0; the others are never chosen.
    """

    __slots__ = ("_entries", "_last", "_sums")

    def __init__(self, entries: Iterable[tuple[T, float]]) -> None:
        # One without weight must not be reached by rounding either.
        self._entries = [entry for entry in entries if entry[1] > 0]
        self._sums = list(accumulate(weight for _, weight in self._entries))
        self._last = len(self._sums) - 1

    def choose(self, pending: Callable[[T], int], draw: Callable[[], float] = random) -> T:
        """Choose a deployment.

        Parameters
        ----------
        pending
            Function that returns how many requests a deployment is answering now.
        draw
            Function that returns numbers in [0, 1).
        """
        entries, sums, last = self._entries, self._sums, self._last
        first, weight = entries[bisect_right(sums, draw() * sums[last], 0, last)]
        if last:
            second, other = entries[bisect_right(sums, draw() * sums[last], 0, last)]
            if second is not first and pending(second) / other < pending(first) / weight:
                return second
        return first
