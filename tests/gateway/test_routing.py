"""Routes and deployments: who answers what, in which share, and what a name that does not exist is told."""

import math
from itertools import count
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.config import Config, Deployment, Route, WeightedDeployment
from gateway.errors import BadRequest, NotFound
from gateway.routing import RoutingTable

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


@pytest.mark.parametrize(
    "weights", [{"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 1, "b": 0}]
)
def test_each_deployment_gets_its_share(weights: dict[str, float]) -> None:
    made = table(route("gpt", **weights))
    chosen = made.route("gpt")
    random = Random(7)
    n = 20_000
    drawn = [made.target(chosen, draw=random.random).deployment.name for _ in range(n)]
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(drawn.count(name) - n * share) <= 4.5 * math.sqrt(n * share * (1 - share))


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3).filter(any), st.floats(0, 1, exclude_max=True))
@example([0.3, 0.7, 0.0], math.nextafter(1.0, 0.0))
def test_whatever_is_drawn_a_deployment_with_a_weight_answers(weights: list[float], drawn: float) -> None:
    made = table(route("gpt", **dict(zip("abc", weights, strict=True))))
    name = made.target(made.route("gpt"), draw=lambda: drawn).deployment.name
    assert weights["abc".index(name)] > 0


def test_the_ends_of_the_draw() -> None:
    made = table(route("gpt", a=0, b=2, c=0))
    for drawn in (0.0, 0.5, math.nextafter(1.0, 0.0)):
        assert made.target(made.route("gpt"), draw=lambda drawn=drawn: drawn).deployment.name == "b"


def test_a_pin_may_name_any_deployment_and_draws_nothing() -> None:
    made = table(route("gpt", a=1))
    draws = count()
    target = made.target(made.route("gpt"), "c", draw=lambda: next(draws))
    assert (target.route.model, target.deployment.name) == ("gpt", "c")
    assert next(draws) == 0


@pytest.mark.parametrize("pin", ["", "d", "A", "a "])
def test_a_pin_that_names_none_says_which_there_are(pin: str) -> None:
    made = table(route("gpt", a=1))
    with pytest.raises(BadRequest) as refused:
        made.target(made.route("gpt"), pin)
    assert refused.value.param == "x-tiltmeter-deployment"
    assert "a, b, c" in str(refused.value)


@pytest.mark.parametrize(("model", "asked", "sent"), [("gpt-4o", "gpt", "gpt-4o"), (None, "gpt", "gpt")])
def test_an_alias_is_sent_under_the_deployment_s_name(model: str | None, asked: str, sent: str) -> None:
    deployment = A.model_copy(update={"model": model})
    made = RoutingTable(Config(deployments=(deployment,), routes=(route("*", a=1),)))
    assert made.target(made.route(asked)).upstream_model(asked) == sent
