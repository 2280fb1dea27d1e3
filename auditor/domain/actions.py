"""Actions on routes: what a finding may change while it lasts, and the weights that a route then has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

#: What is done: weight moves to peers, copies of clients' requests are no longer kept, or it is only told.
ActionKind = Literal["shift_weight", "stop_sampling", "notify"]

#: The part of a deployment's own weight that always stays, so that it serves when its peers cannot.
KEPT: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteAction:
    """An action on one route. It ends at ``expires_at``, whether or not anybody is there to end it."""

    id: str
    route: str  #: the route's model
    deployment: str  #: the one that the finding is about
    kind: ActionKind
    to: tuple[str, ...] = ()  #: ``shift_weight``: the deployments that get the weight
    share: float = 0.0  #: ``shift_weight``: the part of the route's requests that moves, in [0, 1)
    expires_at: datetime


def shift_weights(weights: Mapping[str, float], action: RouteAction) -> dict[str, float]:
    """Move weight from the action's deployment to its peers, in proportion to their weights.

    Peers that all have weight 0 get equal parts. The sum stays, and the deployment keeps at least ``KEPT`` of its own
    weight. Nothing moves if the route has none of the peers.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> action = RouteAction(id="a", route="r", deployment="x", kind="shift_weight", to=("y", "z"), share=0.5,
    ...                      expires_at=datetime(2026, 3, 1, tzinfo=UTC))
    >>> shift_weights({"x": 1.0, "y": 0.0, "z": 0.0}, action)
    {'x': 0.5, 'y': 0.25, 'z': 0.25}
    """
    peers = [name for name in action.to if name in weights and name != action.deployment]
    current = weights.get(action.deployment, 0.0)
    moved = min(action.share * sum(weights.values()), current * (1 - KEPT))
    if not peers or moved <= 0:
        return dict(weights)
    theirs = sum(weights[name] for name in peers)
    parts = {name: weights[name] / theirs if theirs > 0 else 1 / len(peers) for name in peers}
    changed = {
        action.deployment: current - moved,
        **{name: weights[name] + moved * part for name, part in parts.items()},
    }
    return {**weights, **changed}


def effective_weights(weights: Mapping[str, float], actions: Iterable[RouteAction]) -> dict[str, float]:
    """Return the weights of a route under actions on it, which are applied in their order."""
    effective = dict(weights)
    for action in actions:
        if action.kind == "shift_weight":
            effective = shift_weights(effective, action)
    return effective
