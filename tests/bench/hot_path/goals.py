"""What the hot path must cost at the most, beside others in the same run, and what it should."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.hot_path.figures import Figure, Outcome, ratio, together
from bench.hot_path.own_gateway import NAME, OVER_TLS, UNCAPTURED
from bench.hot_path.proxies import TLS_NGINX
from bench.hot_path.run import Results
from bench.hot_path.scenarios import FURTHER, STEADY, STREAMS, UNARY

from auditor.domain.estimate import Insufficient


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """One bound; ``aim`` is a closer one that is hoped for. ``at_least``: both are to be exceeded."""

    what: str
    must: float | None
    aim: float | None = None
    at_least: bool = False

    def verdict(self, outcome: Outcome) -> str:
        """Whether a figure keeps the bounds; a disturbed one does not decide."""
        if isinstance(outcome, Insufficient):
            return "not measured"
        if self.must is not None and not self._holds(outcome.value, self.must):
            said = "missed"
        elif self.aim is not None and not self._holds(outcome.value, self.aim):
            said = "met, not the aim" if self.must is not None else "aim missed"
        else:
            said = "met"
        return f"{said} (disturbed)" if outcome.disturbed else said

    def _holds(self, value: float, bound: float) -> bool:
        return value >= bound if self.at_least else value <= bound


def judged(results: Results) -> Iterator[tuple[Goal, Outcome]]:
    """Give each goal with what was found."""
    rounds = results.rounds
    yield Goal(what="CPU per request, beside nginx", must=3, aim=2), ratio(rounds, UNARY.name, NAME, "nginx")
    for scenario in FURTHER:
        own, other = (OVER_TLS, TLS_NGINX) if scenario.tls else (NAME, "nginx")
        yield Goal(what=f"the same, {scenario.title}", must=3, aim=2), ratio(rounds, scenario.name, own, other)
    yield (
        Goal(what="CPU per request, none captured, beside nginx", must=2, aim=1.5),
        ratio(rounds, UNARY.name, UNCAPTURED, "nginx"),
    )
    yield (
        Goal(what="CPU per request of worker, parent and shipper, beside nginx", must=4.5, aim=3),
        together(rounds, results.shipped, UNARY.name, "nginx"),
    )
    yield (
        Goal(what="CPU per request, beside nginx, at the same load", must=None, aim=3),
        ratio(rounds, STEADY.name, NAME, "nginx"),
    )
    yield Goal(what="CPU per event, beside nginx", must=2, aim=1.3), ratio(rounds, STREAMS.name, NAME, "nginx")
    yield (
        Goal(what="CPU per event, none captured, beside nginx", must=1.5, aim=1.15),
        ratio(rounds, STREAMS.name, UNCAPTURED, "nginx"),
    )
    yield (
        Goal(what="CPU per request, LiteLLM's beside ours", must=150, aim=200, at_least=True),
        ratio(rounds, UNARY.name, "litellm", NAME),
    )
    for router, must, aim in (("sglang-router", 0.8, 0.6), ("vllm-router", 1.1, 0.8)):
        yield (
            Goal(what=f"CPU per request, beside {router}", must=must, aim=aim),
            ratio(rounds, UNARY.name, NAME, router),
        )
    yield (
        Goal(what="CPU per event, beside sglang-router", must=None, aim=1),
        ratio(rounds, STREAMS.name, NAME, "sglang-router"),
    )
    for scenario, unit in ((UNARY, "request"), (STREAMS, "event")):
        yield (
            Goal(what=f"CPU per {unit}, all captured beside none", must=1.2),
            ratio(rounds, scenario.name, NAME, UNCAPTURED),
        )
    yield Goal(what="KB per open stream", must=40, aim=32), _memory(results)


def _memory(results: Results) -> Outcome:
    if NAME not in results.memory:
        return Insufficient(reason="not_measured")
    found = results.memory[NAME] / 1000
    return Figure(value=found, low=found, high=found, rounds=1, disturbed=False)
