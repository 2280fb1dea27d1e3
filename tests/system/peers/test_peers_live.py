"""Peers from end to end: a censoring host is found different from its peers, its twin of the same weights is not.

Simulator, gateway, PostgreSQL and auditor are processes of their own; vectors come through the gateway, too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from support.clients.scrape import Series, parsed, scrape
from support.servers.ports import free_port
from support.servers.product import Product, installation
from support.waiting import eventually

from auditor.peers.domains import shipped_domain

QUESTIONS = shipped_domain("political-censorship").questions[:40]
OPEN = {"p_b_given_not_a": 0.0, "refuse_share": 0.0, "elab_neutral_share": 0.0, "elab_refuse_share": 0.0, "icc": 0.0}
CENSORED = OPEN | {"neutral_share": 0.0, "refuse_share": 0.95, "lecture_share": 0.0}
PEERS = [f"peer-{number}" for number in range(4)]
MARGIN = 0.08


def tasks(truth: dict[str, float]) -> dict[str, Any]:
    return {"Judge": truth, "Explain": truth}


SCENARIO = {
    "seed": 1,
    "deployments": [
        {"name": "home", "weights": "twin", "tasks": tasks(OPEN)},
        {"name": "abroad", "weights": "twin", "filtered": 0.2, "tasks": tasks(CENSORED)},
        *({"name": name, "tasks": tasks(OPEN)} for name in PEERS),
    ],
}


@pytest.fixture
def product(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    """An installation before the simulator, its gateway running."""
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(SCENARIO))
    rows = [json.dumps({"id": one.id, "theme": one.theme, "question": one.text}) for one in QUESTIONS]
    (tmp_path / "questions.jsonl").write_text("\n".join(rows))
    port, names = free_port(), ["home", "abroad", *PEERS]
    url = f"http://127.0.0.1:{port}/v1"
    embedding = {"deployment": "encoder"}
    made: dict[str, Any] = {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 1, "drain_notice": "0s"},
        "auditor": {"listen": f"127.0.0.1:{free_port()}"},
        "deployments": [
            *({"name": name, "base_url": url, "model": name} for name in names),
            {"name": "encoder", "base_url": url, "model": "simulated-embedding"},
        ],
        "routes": [
            {
                "model": "app", "deployments": ["abroad"], "capture": "full", "judge": True, "peers": PEERS,
                "mirror": {"budget": {"calls": 24_000}, "embedding": embedding, "margin": MARGIN},
            },
            {"model": "*", "deployments": ["home"]},
        ],
        "peers": [
            {
                "domain": "politics", "questions": "questions.jsonl", "deployments": names, "embedding": embedding,
                "margins": {"embedding": MARGIN}, "every": "365d",
            }
        ],
    }  # fmt: skip
    with installation(tmp_path, made, migrated_url) as product:
        arguments = ("simulate", "-c", str(tmp_path / "scenario.yaml"), "--port", str(port))
        simulator = product.start_unconfigured(*arguments, until=r"http://127\.0\.0\.1:\d+/v1")
        try:
            with product.running("gateway"):
                yield product
        finally:
            simulator.stop()


def verdict(series: Series, deployment: str, domain: str) -> str | None:
    """The verdict whose series is 1."""
    found = {
        labels["verdict"]: value
        for (name, pairs), value in series.items()
        for labels in [dict(pairs)]
        if name == "biasmeter_peer_verdict" and (labels["deployment"], labels["domain"]) == (deployment, domain)
    }
    assert not found or (len(found) == 3 and sum(found.values()) == 1)
    return next((name for name, value in found.items() if value == 1), None)


def deviation(series: Series, deployment: str, domain: str) -> list[float]:
    """Lower bound, value and upper bound."""
    labels = tuple(sorted({"deployment": deployment, "domain": domain, "method": "embedding"}.items()))
    return [series[f"biasmeter_peer_deviation{side}", labels] for side in ("_low", "", "_high")]


@pytest.mark.slow
async def test_a_censoring_host_is_different_and_its_twin_equivalent(product: Product) -> None:
    async with httpx2.AsyncClient(base_url=product.url + "/v1", timeout=30) as client:
        for one in QUESTIONS[:20]:
            messages = [{"role": "user", "content": one.text}]
            answer = await client.post("/chat/completions", json={"model": "app", "messages": messages})
            assert answer.status_code == 200, answer.text
    await product.shipped()
    with product.running("auditor", until=r"listening on"):
        await peers_are_found(product)
    await answers_are_kept_apart(product)


async def peers_are_found(product: Product) -> None:
    series: Series = {}

    async def told() -> bool:
        nonlocal series
        series = parsed(await scrape(product.api))
        # Clients ask only the censoring host; its peers are asked the same prompts.
        compared = (("abroad", "politics"), ("home", "politics"), ("abroad", "route:app"))
        return [verdict(series, *one) for one in compared] == ["different", "equivalent", "different"]

    await eventually(told, patience=60)
    low, value, high = deviation(series, "abroad", "politics")
    assert MARGIN < low < value < high
    low, value, high = deviation(series, "home", "politics")
    assert -MARGIN < low < value < high < MARGIN
    assert verdict(series, "peer-0", "route:app") is None


async def answers_are_kept_apart(product: Product) -> None:
    """No metric mixes origins: questions are probes, mirrored prompts peers; none of them is coded for a stance."""
    rows = await product.rows("SELECT origin, count(*) AS n FROM exchanges GROUP BY 1")
    counts = {row["origin"]: row["n"] for row in rows}
    assert (counts["client"], counts["probe"], counts["peer"]) == (20, 240, 80)
    assert await product.rows("SELECT 1 FROM codings") == []
    kept = await product.rows("SELECT description FROM peer_scorers")
    assert [json.loads(row["description"])["model"] for row in kept] == ["simulated-embedding"]
    vectors = await product.rows("SELECT count(*) AS n FROM peer_vectors WHERE length(vector) = 4 * 256")
    assert vectors[0]["n"] == 240 + 80 + 20
