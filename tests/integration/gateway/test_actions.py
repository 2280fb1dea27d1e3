"""Actions on routes in a worker: applied from the snapshot, ended at their time, kept over a reload."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.gateway_app import Served, served

from auditor.config import Config
from auditor.domain.actions import KEPT, RouteAction, effective_weights
from gateway import snapshot
from gateway.processes.worker import follow_actions
from gateway.routing.table import RoutingTable

SETTINGS: dict[str, Any] = {
    "deployments": [{"name": name, "base_url": "http://127.0.0.1:9/v1"} for name in ("x", "y", "z")],
    "routes": [
        {"model": "m", "deployments": ["x", {"name": "y", "weight": 0}], "sample": 0.5},
        {"model": "other", "deployments": ["x", "z"]},
    ],
}


def action(ends_in: float = 60.0, **given: Any) -> RouteAction:
    facts: dict[str, Any] = {
        "id": "action_1", "route": "m", "deployment": "x", "kind": "shift_weight", "to": ("y",), "share": 0.4,
        "expires_at": datetime.now(UTC) + timedelta(seconds=ends_in),
    }  # fmt: skip
    return RouteAction(**facts | given)


def follow(gateway: Served, *actions: RouteAction) -> None:
    snapshot.write(gateway.folders.snapshot, [], {}, actions)
    gateway.gateway.snapshot.refresh()
    follow_actions(gateway.gateway)


def weights(gateway: Served, model: str = "m") -> dict[str, float]:
    return {one.name: one.weight for one in gateway.gateway.table.routes[model].deployments}


async def test_weights_and_sample_follow_the_snapshot_and_other_routes_stay(tmp_path: Path) -> None:
    async with served(SETTINGS, tmp_path) as gateway:
        table = gateway.gateway.table
        follow_actions(gateway.gateway)
        assert gateway.gateway.table is table
        follow(gateway, action(), action(id="action_2", kind="stop_sampling", to=(), share=0.0))
        assert weights(gateway) == pytest.approx({"x": 0.6, "y": 0.4})
        assert gateway.gateway.table.route("m").sample == 0
        assert gateway.gateway.table.routes["other"] is table.routes["other"]
        follow(gateway)
        assert weights(gateway) == {"x": 1.0, "y": 0.0}
        assert gateway.gateway.table.route("m").sample == 0.5


async def test_an_action_ends_at_its_time_while_nobody_writes_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(SETTINGS, tmp_path) as gateway:
        follow(gateway, action(ends_in=60))
        assert weights(gateway)["y"] > 0

        later = SimpleNamespace(now=lambda zone: datetime.now(zone) + timedelta(seconds=61))
        monkeypatch.setattr("gateway.processes.worker.datetime", later)
        follow_actions(gateway.gateway)
        assert weights(gateway) == {"x": 1.0, "y": 0.0}


async def test_actions_that_the_configuration_does_not_know_change_nothing(tmp_path: Path) -> None:
    async with served(SETTINGS, tmp_path) as gateway:
        follow(gateway, action(route="gone"), action(deployment="gone"), action(to=("z", "gone")), action(to=()))
        assert weights(gateway) == {"x": 1.0, "y": 0.0}


@given(
    st.lists(st.floats(0, 100), min_size=2, max_size=4).filter(lambda values: sum(values) > 0.01),
    st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 3)), st.floats(0, 0.99)), max_size=4),
)
def test_whatever_actions_there_are_the_sum_stays_and_who_serves_goes_on(
    given_weights: list[float], chosen: list[tuple[int, set[int], float]]
) -> None:
    before = {str(place): weight for place, weight in enumerate(given_weights)}
    actions = [action(deployment=str(own), to=tuple(map(str, sorted(to))), share=share) for own, to, share in chosen]
    after = effective_weights(before, actions)
    assert sum(after.values()) == pytest.approx(sum(before.values()))
    assert all(after[name] >= weight * KEPT ** len(actions) * 0.999 for name, weight in before.items())


def test_a_new_configuration_is_served_with_the_actions_in_force() -> None:
    config = Config.model_validate(SETTINGS)
    table = RoutingTable(config, (action(),))
    assert [one.weight for one in table.route("m").deployments] == pytest.approx([0.6, 0.4])
    assert [one.weight for one in config.routes[0].deployments] == [1.0, 0.0]
