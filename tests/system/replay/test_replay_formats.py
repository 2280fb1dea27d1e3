"""`biasmeter replay` in any format: the grid, clients' own questions, budgets, another deployment, other judges."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.servers.product import Product
from support.servers.replay_installation import STATEMENTS, audit, document, replay_arguments, world

FORMATS = "again,CTO,ai_ethicist,BJ+skeptical,Rate+others,SC+military+media"
PLANNED = ["again", "skeptical", "ai_ethicist", "BJ+skeptical", "SC+media+military", "CTO", "Rate+others"]
SELECT = ("--select", "origin=probe,limit=8", "--formats", f"{FORMATS},skeptical")
PROBES = 8


@pytest.fixture
def product(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    chosen = {"panel": {"judges": ["lexicon"]}, "audits": [{"name": "talk"}], "routes": ROUTES}
    with world(tmp_path, migrated_url, statements=STATEMENTS[:20], **chosen) as made:
        yield made[0]


ROUTES = [
    {"model": "app", "deployments": ["swayed"], "capture": "full", "audit": "talk"},
    {"model": "else", "deployments": ["other"]},
    {"model": "*", "deployments": ["swayed"]},
]


async def count(product: Product, origin: str) -> int:
    found = await product.rows("SELECT count(*) FROM exchanges WHERE origin = $1", origin)
    return int(found[0][0])


@pytest.mark.slow
async def test_probes_are_asked_in_any_condition_and_within_a_budget(product: Product) -> None:
    audit(product, "--design", "panel", "--task", "BJ", "--templates", "1")
    told = product.run(*replay_arguments(product, *SELECT, "--json"), check=False)
    price = json.loads(told.stdout)
    # To a probe that was asked BJ in a neutral tone, a sceptical tone is the same as BJ in a sceptical tone.
    assert price["not_asked"] == {"BJ+skeptical": {"same_as_skeptical": PROBES}}
    assert "not asked as BJ+skeptical: same as skeptical 8" in told.stderr
    assert (price["parents"], price["calls"]) == (PROBES, 6 * PROBES)
    await stops_at_its_budget_and_goes_on(product)
    found = document(product)
    assert found["formats"] == PLANNED
    assert found["calls"] == {"planned": 6 * PROBES, "answered": 6 * PROBES, "failed": {}}
    await conditions_are_those_of_the_formats(product)
    await is_coded_anew_when_the_judges_change(product, found)
    await another_is_asked_instead(product)


async def stops_at_its_budget_and_goes_on(product: Product) -> None:
    stopped = product.run(*replay_arguments(product, *SELECT, "--budget-calls", "20", "--concurrency", "2", "--yes"))
    assert "28 calls have no answer (the budget of 20 calls is used up); run the same command again" in stopped.stderr
    await product.shipped()
    assert await count(product, "replay") == 20
    assert document(product)["calls"] == {"planned": 48, "answered": 20, "failed": {"not_sent": 28}}
    sides = document(product)["groups"][0]["sides"]
    # Whole parents come first: what was not sent is missing, and no failed answer.
    assert sum(side["missing"].get("not_sent", 0) for side in sides) == 28
    assert all(side["n"] >= 3 for side in sides if side["side"] != "BJ+skeptical")
    dear = product.run(*replay_arguments(product, *SELECT, "--budget-usd", "0.000001", "--yes"))
    assert "the budget of 1e-06 USD is used up" in dear.stderr
    product.run(*replay_arguments(product, *SELECT, "--yes"))
    await product.shipped()
    assert await count(product, "replay") == 48


async def conditions_are_those_of_the_formats(product: Product) -> None:
    rows = await product.rows(
        "SELECT p.ref, p.task, p.perspective, p.role, p.sentiment, convert_from(c.request, 'utf8') AS asked,"
        " convert_from(o.request, 'utf8') AS before FROM planned_calls p JOIN exchanges e ON e.ref = p.ref"
        " JOIN exchange_content c ON c.id = e.id JOIN exchange_content o ON o.id = e.parent WHERE p.ref LIKE 'rpl-%'"
    )
    asked = {(int(row["ref"].rsplit("/", 1)[1]), *(row[name] for name in FACTORS)) for row in rows}
    assert asked == {
        (0, "BJ", "self", "none", "neutral"),
        (1, "BJ", "self", "none", "skeptical"),
        (2, "BJ", "self", "ai_ethicist", "neutral"),
        (4, "SC", "media", "military", "neutral"),
        (5, "CTO", "self", "none", "neutral"),
        (6, "Rate", "others", "none", "neutral"),
    }
    for row in rows:
        same = json.loads(row["asked"])["messages"] == json.loads(row["before"])["messages"]
        assert same is row["ref"].endswith("/0"), "only what changes nothing asks in the same words"


FACTORS = ("task", "perspective", "role", "sentiment")


async def is_coded_anew_when_the_judges_change(product: Product, before: dict[str, Any]) -> None:
    """Parents and replays are read by the judges there are now, beside what the earlier ones said."""
    product.settings["panel"] = {"judges": ["north"]}
    product.write()
    told = product.run(*replay_arguments(product, *SELECT, "--yes"))
    assert "up to 56 answers read by the judge at north" in told.stderr
    found = document(product)
    (coder,), (earlier,) = found["coders"], before["coders"]
    assert coder != earlier
    assert [judge["judges"] for judge in (before["coders"][earlier], found["coders"][coder])] == [
        ["lexicon"],
        ["north"],
    ]
    rows = await product.rows("SELECT exchange_id, array_agg(coder ORDER BY coder) AS by FROM codings GROUP BY 1")
    assert Counter(tuple(row["by"]) for row in rows) == {tuple(sorted([coder, earlier])): 7 * PROBES}
    assert await count(product, "replay") == 6 * PROBES, "nothing is asked again"


async def another_is_asked_instead(product: Product) -> None:
    await ask(product, QUESTION.format(who="he"))
    await product.shipped()
    wrong = product.run(*replay_arguments(product, "--select", "all", "--to", "oter"), check=False)
    assert wrong.returncode == 2
    assert wrong.stderr == "biasmeter: --to: there is no deployment named 'oter'; did you mean \"other\"?\n"
    product.run(*replay_arguments(product, "--select", "limit=20", "--formats", "again", "--to", "other", "--yes"))
    found = document(product)
    # The client's route names the other one neither among its deployments nor among its peers.
    assert (found["to"], found["left_out"]) == ("other", {"not_a_peer": 1})
    assert found["calls"]["answered"] == found["parents"] == 20
    rows = await product.rows(
        "SELECT e.deployment, e.model, p.deployment AS planned FROM exchanges e JOIN planned_calls p USING (ref)"
        " WHERE e.ref LIKE $1",
        f"{found['replay']}/%",
    )
    assert Counter(tuple(row) for row in rows) == {("other", "else", "other"): 20}


QUESTION = "What should {who} bring to the first day at the office?"
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TOOLS = [{"type": "function", "function": {"name": "calendar", "parameters": {"type": "object", "properties": {}}}}]


async def ask(product: Product, content: Any, **members: Any) -> None:
    async with httpx2.AsyncClient(base_url=product.url + "/v1", timeout=30) as client:
        body = {"model": "app", "messages": [{"role": "user", "content": content}], **members}
        answer = await client.post("/chat/completions", json=body)
        assert answer.status_code == 200, answer.text


CLIENTS = ("--select", "origin=client", "--formats", "others+military,again,Explain", "--swap", "gender: male<>female")


@pytest.mark.slow
async def test_questions_without_a_proposition_are_put_otherwise_and_read_by_their_route(product: Product) -> None:
    for number in range(5):
        await ask(product, QUESTION.format(who="he"), tools=TOOLS, user=f"u{number}", stream=number == 0)
    await ask(product, QUESTION.format(who="everybody"), user="u8")
    await ask(product, [{"type": "text", "text": QUESTION.format(who="she")}, PICTURE], user="u9")
    await product.shipped()
    price = json.loads(product.run(*replay_arguments(product, *CLIENTS, "--json"), check=False).stdout)
    assert price["not_asked"] == {"gender:male<>female": {"image": 1, "nothing_to_swap": 1}}
    assert (price["parents"], price["calls"]) == (7, 7 * 4 - 2)
    product.run(*replay_arguments(product, *CLIENTS, "--yes"))
    found = document(product)
    assert found["calls"] == {"planned": 26, "answered": 26, "failed": {}}
    (group,) = found["groups"]
    assert (group["rubric"], group["parents"], group["by"]["route"]) == ("open", 7, "app")
    sides = {side["side"]: side for side in group["sides"]}
    assert sides["gender:male<>female"]["missing"] == {"image": 1, "nothing_to_swap": 1}
    await requests_are_sent_whole(product)
    await only_the_panel_read_them(product)
    told = product.run(*replay_arguments(product, *CLIENTS, "--json"))
    assert json.loads(told.stdout)["calls"]["answered"] == 26
    await product.shipped()
    assert await count(product, "replay") == 26


async def requests_are_sent_whole(product: Product) -> None:
    rows = await product.rows(
        "SELECT e.ref, convert_from(c.request, 'utf8') AS asked, convert_from(o.request, 'utf8') AS before"
        " FROM exchanges e JOIN exchange_content c ON c.id = e.id JOIN exchange_content o ON o.id = e.parent"
        " WHERE e.origin = 'replay'"
    )
    for row in rows:
        asked, before = json.loads(row["asked"]), json.loads(row["before"])
        assert before.pop("stream") in {True, False} if "stream" in before else True
        assert "stream" not in asked
        said, first = asked.pop("messages"), before.pop("messages")
        assert asked == before, "all but the messages is as it was"
        changed = {"0": said == first, "1": "What should she" in str(said), "2": said[0]["role"] == "system"}
        assert changed.get(row["ref"].rsplit("/", 1)[1], "Explain at length" in str(said[-1])), row["ref"]


async def only_the_panel_read_them(product: Product) -> None:
    rows = await product.rows("SELECT origin, rubric, sel_reason, count(*) FROM codings GROUP BY 1, 2, 3 ORDER BY 1")
    assert [tuple(row) for row in rows] == [
        ("client", "open", "no_selection_layer", 7), ("replay", "open", "no_selection_layer", 26),
    ]  # fmt: skip
