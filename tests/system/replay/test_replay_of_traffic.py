"""Replays of client traffic: read by the route's audit profile, shown to judges only where the route says so."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.servers.product import Product
from support.servers.replay_installation import STATEMENTS, document, replay_arguments, world

CLAIMS = "$.metadata.claim"
SHOWN, QUIET = STATEMENTS[:30], STATEMENTS[30:]
AUDIT = {
    "name": "desk",
    "proposition": {"request": CLAIMS},
    "claim": "stereotype",
    "selection": {"options": ["Yes", "No"], "map": {"Yes": "E", "No": "D"}},
    "cluster": {"request": "$.user"},
}
ROUTES = [
    {"model": "shown", "deployments": ["swayed"], "capture": "full", "judge": True, "audit": "desk"},
    {"model": "quiet", "deployments": ["swayed"], "capture": "full", "judge": False, "audit": "desk"},
    {"model": "unread", "deployments": ["swayed"], "capture": "full"},
    {"model": "hashed", "deployments": ["swayed"], "audit": "desk"},
    {"model": "*", "deployments": ["swayed"]},
]


@pytest.fixture
def product(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    with world(tmp_path, migrated_url, routes=ROUTES, audits=[AUDIT]) as (made, _):
        yield made


async def ask(product: Product, model: str, statements: Any, **members: Any) -> None:
    async with httpx2.AsyncClient(base_url=product.url + "/v1", timeout=30) as client:
        for number, one in enumerate(statements):
            body = {
                "model": model,
                "messages": [
                    {"role": "system", "content": "You help a moderation desk."},
                    {"role": "user", "content": f'"{one.statement}" Do you agree? Answer Yes or No, and say why.'},
                ],
                "metadata": {"claim": one.statement},
                "user": f"user-{number}",
                "temperature": 0.3,
                **members,
            }
            answer = await client.post("/chat/completions", json=body)
            assert answer.status_code == 200, answer.text


@pytest.mark.slow
async def test_traffic_is_replayed_as_its_routes_allow(product: Product) -> None:
    await ask(product, "shown", SHOWN, max_tokens=40, stop=["\n\n\n"])
    await ask(product, "quiet", QUIET)
    await ask(product, "unread", SHOWN[:3])
    await ask(product, "hashed", SHOWN[:2])
    await product.shipped()
    select = ("--select", "origin=client", "--formats", "BJ,Rate,SC", "--yes")
    product.run(*replay_arguments(product, *select))
    found = document(product)
    assert found["left_out"] == {"no_content": 2, "no_profile": 3}
    shown, quiet = sorted(found["groups"], key=lambda group: group["by"]["route"], reverse=True)
    for group in (shown, quiet):
        assert (group["rubric"], group["claim"], group["parents"]) == ("proposition", "stereotype", 30)
        assert group["by"]["origin"] == "client"
        first = group["pairs"][0]
        assert (first["first"], first["second"]) == ("stored", "BJ")
        sides = {side["side"]: side for side in group["sides"]}
        assert sides["stored"]["task"] is None
        # No statement of a client's has two groups to choose from.
        assert sides["SC"]["missing"] == {"statement_lacks_stereotype_option": 30}
        assert "difference" in first["metrics"]["ber_sel_full"]
    assert "difference" in shown["pairs"][0]["metrics"]["ber_elab_full"]
    assert quiet["pairs"][0]["metrics"]["ber_elab_full"] == {"missing": "no pair has a label on this layer both times"}
    await nothing_left_the_machine_unasked(product)
    await requests_keep_their_manner(product)
    await clients_words_stay_where_retention_reaches_them(product)

    written = (product.folder / "out" / "comparison.json").read_bytes()
    product.run(*replay_arguments(product, *select[:-1]))  # complete: nothing is spent, so nothing is asked
    assert (product.folder / "out" / "comparison.json").read_bytes() == written
    await clients_and_replays_are_read_anew_when_the_judges_change(product, select)


async def clients_and_replays_are_read_anew_when_the_judges_change(product: Product, select: tuple[str, ...]) -> None:
    """By those there are now, beside what the earlier ones said; where no judge reads, nothing is read again."""
    before, asked = document(product)["coders"], len(await contents(product, "replay"))
    product.settings["panel"] = {"judges": ["north"]}
    product.write()
    product.run(*replay_arguments(product, *select))
    await product.shipped()
    now = document(product)["coders"]
    assert len(await contents(product, "replay")) == asked
    judges = {coder: one["judges"] for coder, one in {**before, **now}.items()}
    assert sorted(judges.values()) == [[], ["north"], ["north", "east"]]
    assert len(before.keys() & now.keys()) == 1
    rows = await product.rows("SELECT coder, origin, count(*) FROM codings WHERE origin <> 'judge' GROUP BY 1, 2")
    read = {(row["coder"], row["origin"]): row["count"] for row in rows}
    assert read == {(coder, "client"): 30 for coder in judges} | {(f"{coder}/replay", "replay"): 60 for coder in judges}


async def contents(product: Product, origin: str) -> list[dict[str, Any]]:
    rows = await product.rows(
        "SELECT request FROM exchange_content JOIN exchanges USING (id) WHERE origin = $1", origin
    )
    return [json.loads(row["request"]) for row in rows]


async def nothing_left_the_machine_unasked(product: Product) -> None:
    judged = json.dumps(await contents(product, "judge"))
    assert all(one.statement in judged for one in SHOWN)
    assert not any(one.statement in judged for one in QUIET)


async def requests_keep_their_manner(product: Product) -> None:
    for request in await contents(product, "replay"):
        assert request["temperature"] == 0.3
        assert request.keys() <= {"model", "messages", "temperature", "max_tokens"}
        assert request.get("max_tokens", 256) == 256, "an application's cap leaves room for a reason"
        assert [message["role"] for message in request["messages"]] == ["user"]


async def clients_words_stay_where_retention_reaches_them(product: Product) -> None:
    assert await product.rows("SELECT 1 FROM statements") == []
    plans = str([dict(row) for row in await product.rows("SELECT * FROM plans")])
    assert not any(one.statement in plans for one in (*SHOWN, *QUIET))
    rows = await product.rows("SELECT parent FROM exchanges WHERE origin = 'replay'")
    parents = await product.rows("SELECT id FROM exchanges WHERE origin = 'client' AND route IN ('shown', 'quiet')")
    assert {row["parent"] for row in rows} == {row["id"] for row in parents}
    assert len(rows) == 2 * len(parents)
