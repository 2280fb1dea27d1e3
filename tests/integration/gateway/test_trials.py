"""Trials in a worker: who gets an instruction, what deployments and the store get, and that nothing else changes."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import ordinary

from auditor.config import Config
from auditor.domain.actions import RouteAction
from auditor.trials.assignment import CONTROL, assign, stop_key
from gateway import snapshot
from gateway.processes.worker import follow_actions
from gateway.routing.table import RoutingTable

ARMS = [
    {"name": "careful", "kind": "task", "instruction": "Consider each person as an individual. “Fair”."},
    {"name": "ethicist", "kind": "role", "instruction": "You are an AI ethicist."},
]
#: A user of the first arm.
CAREFUL = next(f"u{n}" for n in range(99) if assign(0, "m", f"u{n}", 0.4, ["careful", "ethicist"]) == "careful")
INJECTED = {
    "careful": json.dumps("\n\n" + str(ARMS[0]["instruction"]), ensure_ascii=False).strip('"').encode(),
    "ethicist": b'{"role":"system","content":"You are an AI ethicist."},',
}


def settings(url: str, **route: Any) -> dict[str, Any]:
    trial = {"share": 0.4, "arms": ARMS}
    usual = {"deployments": ["up"], "capture": "full"}
    return {
        "gateway": {"tags": ["dialogue"]},
        "deployments": [{"name": "up", "base_url": url, "model": "real", "stream_usage": False}],
        "routes": [
            {"model": "m", **usual, "audit": "desk", "mitigation": trial, **route},
            {"model": "other", **usual},
        ],
        "audits": [{"name": "desk"}, {"name": "talks", "cluster": {"tag": "dialogue"}}],
    }


@asynccontextmanager
async def on_trial(folder: Path, **route: Any) -> AsyncIterator[tuple[ScriptedUpstream, Served]]:
    """A gateway with a trial, and its deployment."""

    async with scripted_upstream(ordinary) as upstream, served(settings(upstream.url, **route), folder) as gateway:
        yield upstream, gateway


def body(user: str | None, model: str = "m", **more: Any) -> bytes:
    # Odd on purpose: spacing, numbers and escapes must all reach the deployment as they are.
    who = "" if user is None else f'"user" : {json.dumps(user)},'
    text = f'{{ {who} "model":"{model}" , "t":0.70,"n":1E+0,{json.dumps(more)[1:-1]}'.rstrip(",")
    return (text + ',"messages":[ {"role": "user", "content": "h\\u00e9 \\"x\\""} ]}').encode()


async def send(gateway: Served, sent: bytes, path: str = "chat/completions", **headers: str) -> int:
    async with gateway.client.post(
        f"{gateway.url}/v1/{path}", data=sent, headers={"content-type": "application/json", **headers}
    ) as answer:
        await answer.read()
        status: int = answer.status
        return status


def last(upstream: ScriptedUpstream) -> bytes:
    """What the deployment got last, with the client's name of the model."""
    got: bytes = upstream.requests[-1].body
    return got.replace(b'"real"', b'"m"')


def trial_of(gateway: Served, model: str = "m") -> str:
    config: Config = gateway.gateway.config
    return config.trial_of(gateway.gateway.table.routes[model]) or ""


async def test_users_keep_their_arm_and_only_the_instruction_is_added(tmp_path: Path) -> None:
    async with on_trial(tmp_path) as (upstream, gateway):
        seen: dict[str, set[str]] = {}
        for _ in range(2):
            for number in range(60):
                sent = body(f"user {number}")
                assert await send(gateway, sent) == 200
                arm = assign(0, "m", f"user {number}", 0.4, ["careful", "ethicist"])
                got = last(upstream)
                assert len(got) == len(sent) + len(INJECTED.get(arm, b""))
                assert got.replace(INJECTED.get(arm, b"-"), b"", 1) == sent
                seen.setdefault(arm, set()).add(f"user {number}")
        kept = gateway.exchanges()
        assert {arm: len(users) for arm, users in seen.items()} == {"careful": 23, "control": 26, "ethicist": 11}
        assert Counter(one.tags["biasmeter_arm"] for one in kept) == {
            arm: 2 * len(users) for arm, users in seen.items()
        }
        # The copy is what the client has sent; the tags say what was added to it.
        assert {one.request for one in kept} == {body(f"user {number}") for number in range(60)}
        assert {one.tags["biasmeter_trial"] for one in kept} == {trial_of(gateway)}
        assert not any("biasmeter_untouched" in one.tags for one in kept)


async def test_who_takes_no_part(tmp_path: Path) -> None:
    audit = {"authorization": "Bearer the auditor's"}
    others: list[tuple[bytes, str, dict[str, str]]] = [
        (body(CAREFUL, "other"), "chat/completions", {}),
        (body(CAREFUL), "chat/completions", {**audit, "x-biasmeter-origin": "probe"}),
        (body(CAREFUL), "chat/completions", {**audit, "x-biasmeter-origin": "replay"}),
        (body(CAREFUL), "chat/completions", {**audit, "x-biasmeter-deployment": "up"}),
        (body(CAREFUL), "chat/completions", {**audit, "x-biasmeter-audit": "off"}),
        (b'{"model":"m","input":"a","user":"%b"}' % CAREFUL.encode(), "embeddings", {}),
        (b'{"model":"m","prompt":"a","user":"%b"}' % CAREFUL.encode(), "images/generations", {}),
    ]
    unassigned = [body(None), body(""), b'{"model":"m","user":7,"safety_identifier":null,"messages":[]}']
    async with on_trial(tmp_path) as (upstream, gateway):
        for sent, path, headers in others:
            await send(gateway, sent, path, **headers)
            assert upstream.requests[-1].body.replace(b'"real"', b'"m"' if b'"m"' in sent else b'"other"') == sent
        assert not any("biasmeter_arm" in one.tags for one in gateway.exchanges())
        for sent in unassigned:
            await send(gateway, sent)
            assert last(upstream) == sent
            assert gateway.exchanges()[-1].tags["biasmeter_arm"] == "unassigned"


async def test_a_request_that_has_no_place_goes_as_it_is_and_is_recorded_so(tmp_path: Path) -> None:
    sent = b'{"model":"m","safety_identifier":"user 0","user":"other","messages":[{"role":"assistant","content":"a"}]}'
    sent = sent.replace(b"user 0", CAREFUL.encode())
    async with on_trial(tmp_path) as (upstream, gateway):
        await send(gateway, sent)
        assert last(upstream) == sent
    (kept,) = gateway.exchanges()
    assert (kept.tags["biasmeter_arm"], kept.tags["biasmeter_untouched"]) == ("careful", "no_user_message")


async def test_conversations_are_named_by_the_tag_of_the_audit(tmp_path: Path) -> None:
    trial = {"share": 0.4, "arms": ARMS, "assign": "conversation"}
    async with on_trial(tmp_path, audit="talks", mitigation=trial) as (_, gateway):
        for number in range(20):
            for user in ("a", "b"):
                await send(gateway, body(user), **{"x-biasmeter-tags": f"dialogue=d{number}"})
        await send(gateway, body("a"), **{"x-biasmeter-tags": "biasmeter_arm=careful"})
        kept = gateway.exchanges()
    arms: dict[str, set[str]] = {}
    for one in kept[:-1]:
        arms.setdefault(one.tags["dialogue"], set()).add(one.tags["biasmeter_arm"])
    assert all(len(found) == 1 for found in arms.values())
    assert {arm for found in arms.values() for arm in found} == {"control", "careful", "ethicist"}
    assert kept[-1].tags["biasmeter_arm"] == "unassigned"  # a client cannot say its arm


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stopped_arm_leaves_requests_as_they_are_and_the_others_go_on(tmp_path: Path, stream: bool) -> None:
    async with on_trial(tmp_path) as (upstream, gateway):

        async def bodies() -> dict[str, tuple[bytes, str | None]]:
            """What deployments get of each arm, and whether that is recorded as left as it was."""
            found = {}
            for number in range(12):
                await send(gateway, body(f"user {number}", stream=stream))
                tags = gateway.exchanges()[-1].tags
                got = upstream.requests[-1].body.replace(b'"real"', b'"m"')
                found[tags["biasmeter_arm"]] = got, tags.get("biasmeter_untouched")
            return found

        before = await bodies()
        assert before.keys() == {"control", "careful", "ethicist"}
        other_routes = gateway.gateway.table.routes["other"]
        snapshot.write(gateway.folders.snapshot, [], {}, (), [stop_key(trial_of(gateway), "careful"), "gone/careful"])
        gateway.gateway.snapshot.refresh()
        follow_actions(gateway.gateway)
        table = gateway.gateway.table
        follow_actions(gateway.gateway)
        assert gateway.gateway.table is table
        after = await bodies()
        assert [INJECTED[arm] in before[arm][0] for arm in INJECTED] == [True, True]
        assert [INJECTED[arm] in after[arm][0] for arm in INJECTED] == [False, True]
        assert {arm: untouched for arm, (_, untouched) in after.items()} == {
            "control": None, "careful": "stopped", "ethicist": None
        }  # fmt: skip
        assert {untouched for _, untouched in before.values()} == {None}
        assert gateway.gateway.table.routes["other"] is other_routes


def test_a_trial_waits_while_no_copies_are_kept() -> None:
    config = Config.model_validate(settings("http://127.0.0.1:9/v1"))
    action = RouteAction(id="a", route="m", deployment="up", kind="stop_sampling", expires_at=datetime.now(UTC))
    assert RoutingTable(config).trials.keys() == {"m"}
    assert RoutingTable(config, (action,)).trials == {}


@given(
    st.integers(0, 2**63 - 1),
    st.text(min_size=1, max_size=20),
    st.floats(0.01, 0.95),
    st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=8, unique=True),
)
def test_an_assignment_is_stable_and_larger_shares_keep_the_control_smaller(
    seed: int, unit: str, share: float, arms: list[str]
) -> None:
    arm = assign(seed, "m", unit, share, arms)
    assert arm == assign(seed, "m", unit, share, arms)
    assert arm in {CONTROL, *arms}
    if arm != CONTROL:
        assert assign(seed, "m", unit, min(1.0, share * 1.5), arms) != CONTROL


@pytest.mark.parametrize(("share", "arms"), [(0.2, ["a"]), (0.5, ["a", "b"]), (0.95, ["a", "b", "c"])])
def test_shares_are_those_of_the_configuration(share: float, arms: list[str]) -> None:
    n = 20_000
    found = Counter(assign(7, "m", f"user {number}", share, arms) for number in range(n))
    for name, expected in [(CONTROL, 1 - share), *((arm, share / len(arms)) for arm in arms)]:
        assert abs(found[name] / n - expected) < 5 * (expected * (1 - expected) / n) ** 0.5
