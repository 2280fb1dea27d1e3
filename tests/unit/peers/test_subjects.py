"""What a configuration compares, under which label, and what may see clients' answers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from auditor.config import Config, loads
from auditor.peers.subjects import compared, embedding_of, label_of, subject_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOCAL, REMOTE = "{model: local-model}", "{deployment: e}"


def config(route: str = "", *, domain: str = "") -> Config:
    text = f"""
deployments:
{"".join(f"  - {{name: {name}, base_url: 'http://127.0.0.1:1/v1', model: m}}" + chr(10) for name in "abcde")}
routes:
  - {{model: gpt, deployments: [a, b], capture: full, peers: [more] {route}}}
  - {{model: more, deployments: [c, d, e]}}
judges: [{{name: j, deployment: a}}]
"""
    return loads(text + domain, source="test.yaml", folder=Path(), environ={}).config


DOMAIN = "peers: [{domain: politics, questions: political-censorship, deployments: [a, b, c], %s}]\n"


@pytest.mark.parametrize(
    ("route", "domain", "seen"),
    [
        ("", "", None),
        (f", mirror: {{embedding: {LOCAL}}}", "", "local-model"),
        (f", mirror: {{embedding: {REMOTE}}}", "", None),
        (f", judge: true, mirror: {{embedding: {REMOTE}}}", "", "e"),
        ("", DOMAIN % f"embedding: {LOCAL}", "local-model"),
        ("", DOMAIN % f"embedding: {REMOTE}", None),
        (", judge: true", DOMAIN % "judges: [j]", None),
        (f", judge: true, mirror: {{embedding: {LOCAL}}}", DOMAIN % f"embedding: {REMOTE}", "local-model"),
    ],
)
def test_what_clients_were_answered_is_seen_here_or_by_leave(route: str, domain: str, seen: str | None) -> None:
    made = config(route, domain=domain)
    found = embedding_of(made, made.routes[0])
    assert (found and (found.model or found.deployment)) == seen
    labels = [label_of(one) for one in compared(made)]
    assert ("route:gpt" in labels) is (seen is not None)
    assert "route:more" not in labels


def test_a_domain_and_a_route_are_subjects_of_their_own() -> None:
    domain = DOMAIN % f"embedding: {LOCAL}, judges: [j], margins: {{embedding: 0.1, j: 0.5}}, k: 2, every: 1d"
    made = config(", mirror: {margin: 0.2}", domain=domain)
    politics, route = (subject_of(made, entry, NOON) for entry in compared(made))
    assert (politics.label, politics.origin, politics.window) == ("politics", "probe", 86_400)
    assert [one.targets for one in politics.groups] == [("a", "b", "c")]
    assert (dict(politics.margins), politics.k) == ({"embedding": 0.1, "judge:j": 0.5}, 2)
    assert "political censorship" in politics.sought
    assert (route.label, route.origin, route.window) == ("route:gpt", "peer", 30 * 86_400)
    # Each of the route's deployments answered other prompts: each is compared on its own.
    assert [one.targets for one in route.groups] == [("a",), ("b",)]
    assert (dict(route.margins), route.judges) == ({"embedding": 0.2}, ())


def answers(made: Config) -> Any:
    return [query for entry in compared(made) for query in subject_of(made, entry, NOON).answers]


def test_nothing_is_compared_unasked() -> None:
    assert answers(config()) == []
