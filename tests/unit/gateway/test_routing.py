"""Routes and deployments: who answers what, in which share, and what a name that does not exist is told."""

import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.config import Config, Deployment, Route, WeightedDeployment
from gateway.errors import BadRequest, NotFound
from gateway.routing.table import RoutingTable, WeightedChoice

A, B, C = (Deployment(name=name, base_url=f"http://{name}.example/v1") for name in "abc")


def table(*routes: Route) -> RoutingTable:
    return RoutingTable(Config(deployments=(A, B, C), routes=routes))


def route(model: str, **weights: float) -> Route:
    return Route(
        model=model, deployments=tuple(WeightedDeployment(name=name, weight=weight) for name, weight in weights.items())
    )


def test_a_model_has_its_route_and_the_rest_has_the_star() -> None:
    made = table(route("gpt", a=1), route("*", b=1))
    assert made.route("gpt").model == "gpt"
    assert [made.route(other).model for other in ("gpt-4", "GPT", "", "*", "claude")] == ["*"] * 5


def test_without_a_star_an_unknown_model_is_told_so() -> None:
    made = table(route("gpt", a=1))
    with pytest.raises(NotFound) as refused:
        made.route("gpt-5\n" + "x" * 1000)
    error = refused.value
    assert (error.http_status, error.code, error.param) == (404, "model_not_found", "model")
    assert len(str(error)) < 300
    assert "\n" not in str(error)


def nobody(_: str) -> int:
    return 0


@pytest.mark.parametrize(
    "weights", [{"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 1, "b": 0}]
)
def test_without_load_each_deployment_gets_its_share(weights: dict[str, float]) -> None:
    random = Random(7)
    n = 20_000
    drawn = [WeightedChoice(weights.items()).choose(nobody, random.random) for _ in range(n)]
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(drawn.count(name) - n * share) <= 4.5 * math.sqrt(n * share * (1 - share))


def test_of_two_that_are_drawn_the_less_loaded_one_is_taken() -> None:
    loads = {"a": 3, "b": 0}
    draws = iter([0.1, 0.9])  # a, then b
    assert WeightedChoice({"a": 1, "b": 1}.items()).choose(loads.__getitem__, lambda: next(draws)) == "b"
    draws = iter([0.9, 0.1])  # b, then a
    assert WeightedChoice({"a": 1, "b": 1}.items()).choose(loads.__getitem__, lambda: next(draws)) == "b"


def test_load_is_seen_in_proportion_to_the_weight() -> None:
    draws = iter([0.1, 0.9])
    assert WeightedChoice({"a": 3, "b": 1}.items()).choose({"a": 5, "b": 2}.__getitem__, lambda: next(draws)) == "a"


def test_one_that_answers_slowly_gets_less_than_its_share() -> None:
    """Two equal deployments, one four times as slow: requests come one a tick, and stay for 4 or 16 ticks."""
    random = Random(3)
    pending: dict[str, list[int]] = {"quick": [], "slow": []}

    def load(name: str) -> int:
        return len(pending[name])

    chosen = []
    for tick in range(5_000):
        pending = {name: [end for end in ends if end > tick] for name, ends in pending.items()}
        chosen.append(WeightedChoice({"quick": 1, "slow": 1}.items()).choose(load, random.random))
        pending[chosen[-1]].append(tick + (16 if chosen[-1] == "slow" else 4))
    assert 0.55 < chosen.count("quick") / len(chosen) < 0.8


@given(
    st.lists(st.floats(0, 1e6), min_size=3, max_size=3).filter(any),
    st.floats(0, 1, exclude_max=True),
    st.lists(st.integers(0, 100), min_size=3, max_size=3),
)
@example([0.3, 0.7, 0.0], math.nextafter(1.0, 0.0), [0, 0, 0])
def test_whatever_is_drawn_a_deployment_with_a_weight_answers(
    weights: list[float], drawn: float, loads: list[int]
) -> None:
    name = WeightedChoice(zip("abc", weights, strict=True)).choose(
        dict(zip("abc", loads, strict=True)).__getitem__, lambda: drawn
    )
    assert weights["abc".index(name)] > 0


def test_a_pin_may_name_any_deployment() -> None:
    assert table(route("gpt", a=1)).pinned("c").name == "c"


@pytest.mark.parametrize("pin", ["", "d", "A", "a "])
def test_a_pin_that_names_none_says_which_there_are(pin: str) -> None:
    made = table(route("gpt", a=1))
    with pytest.raises(BadRequest) as refused:
        made.pinned(pin)
    assert refused.value.param == "x-biasmeter-deployment"
    assert "a, b, c" in str(refused.value)
