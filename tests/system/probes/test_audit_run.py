"""``biasmeter audit``, on a real gateway and store: every planned instance is answered and counted once."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from subprocess import CompletedProcess
from typing import Any

import pytest
from support.servers.ports import free_port
from support.servers.product import Product, Running
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_wire import HANG, Request, Sleep, Steps
from support.waiting import eventually

from auditor.instrument.pool import record_of, shipped_pool

STATEMENTS = 8


@pytest.fixture
def audited(beside_gateway: Product) -> Product:
    """Two deployments, each of which is asked two calls at once, and a file of 8 statements, on a gateway that runs."""
    product = beside_gateway
    deployments = product.settings["deployments"]
    deployments[:] = [
        {**deployments[0], "name": name, "model": f"model-{name}", "concurrency": 20} for name in ("left", "right")
    ]
    product.settings["routes"] = [{"model": "pair", "deployments": ["left", "right"]}]
    product.write()
    lines = [json.dumps(record_of(one)) + "\n" for one in shipped_pool()[:STATEMENTS]]
    (product.folder / "some.jsonl").write_text("".join(lines))
    return product


def arguments(product: Product, command: str, *more: str) -> list[str]:
    options = ["--statements", "some.jsonl"] if command != "status" else []
    return ["audit", command, *options, *more, "-c", str(product.config)]


async def audit(product: Product, command: str, *more: str, check: bool = True) -> "CompletedProcess[str]":
    """Run one command; the upstream lives in this process and must go on meanwhile."""
    return await asyncio.to_thread(product.run, *arguments(product, command, *more), check=check)


async def audit_json(product: Product, command: str, *more: str) -> dict[str, Any]:
    return json.loads((await audit(product, command, "--json", *more)).stdout)


async def by_deployment(product: Product) -> dict[str, dict[str, int]]:
    plans = (await audit_json(product, "status"))["plans"]
    return {one["deployment"]: one for one in plans}


def held(request: Request) -> Steps:
    """Answer a question only once the upstream is released."""
    answer = upstream_answers.by_model(request)
    return answer if request.method == "GET" else [HANG, *answer]


def slow(seconds: float) -> Callable[[Request], Steps]:
    def script(request: Request) -> Steps:
        if request.method == "GET":
            return upstream_answers.by_model(request)
        return [Sleep(seconds), *upstream_answers.unary(request)]

    return script


async def test_every_call_is_answered_once_and_says_what_it_is(audited: Product, upstream: ScriptedUpstream) -> None:
    plan = await audit_json(audited, "plan")
    assert await audited.rows("SELECT 1 FROM plans") == []  # planning stores nothing
    done = await audit_json(audited, "run")
    first = upstream.received
    again = await audit_json(audited, "run")
    status = await by_deployment(audited)
    calls = 3 * STATEMENTS
    assert plan["total"]["calls"] == 2 * calls
    assert done["plan"] == again["plan"] == plan["plan"]
    for one in done["deployments"]:
        assert (one["planned"], one["answered"], one["sent"]) == (calls, calls, calls)
    # The same command asks nothing twice.
    assert [one["sent"] for one in again["deployments"]] == [0, 0]
    assert upstream.received == first == 2 * calls
    assert {name: one["remaining"] for name, one in status.items()} == {"left": 0, "right": 0}
    rows = await audited.rows(
        "SELECT e.*, c.deployment AS planned_for FROM exchanges e JOIN planned_calls c USING (ref) "
        "JOIN planned_instances i ON i.ref = e.ref AND i.exchange_id = e.id"
    )
    assert len({row["ref"] for row in rows}) == len(rows) == 2 * calls
    assert {row["origin"] for row in rows} == {"probe"}
    assert all(row["deployment"] == row["planned_for"] and row["model"] == "pair" for row in rows)
    # The pin decides who answers; the gateway asks for that deployment's own model.
    assert {request.model for request in upstream.requests} == {"model-left", "model-right"}
    assert len(await audited.rows("SELECT 1 FROM exchange_content WHERE response IS NOT NULL")) == 2 * calls


async def killed_at(product: Product, upstream: ScriptedUpstream, count: int) -> None:
    """Run until the upstream has had so many requests, then kill the runner."""
    running: Running = product.start_unconfigured(*arguments(product, "run"), until="")
    await eventually(lambda: upstream.received >= count)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()


async def test_a_runner_killed_twice_repeats_at_most_what_was_under_way(
    audited: Product, upstream: ScriptedUpstream
) -> None:
    upstream.script = slow(0.03)
    await killed_at(audited, upstream, 12)
    await killed_at(audited, upstream, 30)
    done = await audit_json(audited, "run")
    status = await by_deployment(audited)
    await audited.shipped()
    calls = 2 * 3 * STATEMENTS
    assert sum(one["answered"] for one in done["deployments"]) == calls
    # Two deployments with two calls at once each, killed twice.
    assert calls <= upstream.received <= calls + 8
    assert sum(one["answered"] for one in status.values()) == calls
    counted = await audited.rows("SELECT ref, count(*) FROM planned_instances GROUP BY ref")
    assert len(counted) == calls
    assert {row["count"] for row in counted} == {1}


async def test_only_one_process_sends_a_plan(audited: Product, upstream: ScriptedUpstream) -> None:
    upstream.script = held
    running = audited.start_unconfigured(*arguments(audited, "run"), until="")
    await eventually(lambda: upstream.received > 0)
    second = await audit(audited, "run", check=False)
    upstream.script = upstream_answers.by_model
    upstream.release()
    assert second.returncode == 2
    assert second.stderr.strip().endswith("is being sent by another process")
    assert "\n" not in second.stderr.split("unknown: no price is declared for left, right\n")[1].strip()
    assert await asyncio.to_thread(running.process.wait, 60) == 0
    assert upstream.received == 2 * 3 * STATEMENTS


async def test_a_deployments_429_pauses_it(audited: Product, upstream: ScriptedUpstream) -> None:
    at: list[float] = []

    def script(request: Request) -> Steps:
        at.append(time.monotonic())
        if len(at) != 4:
            return upstream_answers.unary(request)
        return upstream_answers.json_answer({"error": {"message": "slower"}}, 429, [("retry-after", "1")])

    upstream.script = script
    audited.settings["deployments"][0]["concurrency"] = 1
    audited.write()
    done = await audit_json(audited, "run", "--deployment", "left", "--task", "BJ")
    (left,) = done["deployments"]
    assert (left["answered"], left["remaining"]) == (STATEMENTS, 0)
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert gaps[3] >= 0.99
    assert median(gaps) < 0.9


async def test_a_budget_stops_a_plan_and_holds_over_runs(audited: Product, upstream: ScriptedUpstream) -> None:
    first = await audit_json(audited, "run", "--budget-calls", "10")
    second = await audit_json(audited, "run", "--budget-calls", "10")
    third = await audit_json(audited, "run", "--budget-calls", "14")
    assert [sum(one["sent"] for one in run["deployments"]) for run in (first, second, third)] == [10, 0, 4]
    assert upstream.received == 14
    assert {one["stopped"] for one in first["deployments"]} == {"the budget of 10 calls is used up"}


async def test_nothing_is_spent_unasked(audited: Product, upstream: ScriptedUpstream) -> None:
    for one in audited.settings["deployments"]:
        one["price"] = {"input": 100, "output": 400}
    audited.write()
    refused = await audit(audited, "run", "--task", "BJ", check=False)
    assert (refused.returncode, upstream.received) == (2, 0)
    assert refused.stderr == "biasmeter: the estimated cost is 0.45 USD; add --yes to send\n"
    assert await audited.rows("SELECT 1 FROM plans") == []
    done = await audit_json(audited, "run", "--task", "BJ", "--yes", "--budget-usd", "0.05")
    assert done["deployments"][0]["stopped"] == "the budget of 0.05 USD is used up"
    assert 0 < upstream.received < 2 * STATEMENTS
    await audit_json(audited, "run", "--task", "BJ", "--yes")
    # What is answered costs nothing more, so nobody has to be asked.
    await audit_json(audited, "run", "--task", "BJ")
    assert upstream.received == 2 * STATEMENTS


async def test_a_block_counts_and_a_failure_is_tried_again(audited: Product, upstream: ScriptedUpstream) -> None:
    broken = True

    def script(request: Request) -> Steps:
        if request.model == "model-left":
            error = {"message": "blocked", "code": "content_filter"}
            return upstream_answers.json_answer({"error": error}, 400)
        if broken and upstream.received % 3 == 0:
            return upstream_answers.json_answer({"error": {"message": "no", "code": "odd"}}, 422)
        return upstream_answers.unary(request)

    upstream.script = script
    done = await audit(audited, "run", "--task", "BJ", check=False)
    assert done.returncode == 1
    assert "calls have no answer; the same command tries them again" in done.stderr.splitlines()[-1]
    assert "failed (HTTP 422 odd)" in done.stdout
    status = await by_deployment(audited)
    assert (status["left"]["answered"], status["left"]["failed"]) == (STATEMENTS, 0)
    assert status["right"]["answered"] + status["right"]["failed"] == STATEMENTS
    broken = False
    await audit(audited, "run", "--task", "BJ")
    rows = await audited.rows("SELECT e.status FROM planned_instances i JOIN exchanges e ON e.id = i.exchange_id")
    assert sorted(row["status"] for row in rows) == [200] * STATEMENTS + [400] * STATEMENTS


async def test_a_changed_statement_needs_an_id_of_its_own(audited: Product) -> None:
    file = audited.folder / "some.jsonl"
    await audit(audited, "run", "--task", "BJ", "--deployment", "left")
    file.write_text(file.read_text().replace("Women are too emotional", "Women are much too emotional"))
    refused = await audit(audited, "run", "--task", "BJ", "--deployment", "left", check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "biasmeter: statement 'gender-01' is stored with other words; a changed statement needs an id of its own"
    )


def test_without_a_gateway_nothing_is_sent(audited: Product, upstream: ScriptedUpstream) -> None:
    audited.settings["data_dir"] = "unused"
    audited.write()
    done = audited.run(*arguments(audited, "run"), check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "no gateway has run with data_dir" in done.stderr
    # With what a gateway leaves in its folder, and none that listens any more.
    audited.settings |= {"data_dir": "data", "gateway": {"listen": f"127.0.0.1:{free_port()}"}}
    audited.write()
    done = audited.run(*arguments(audited, "run"), check=False)
    assert done.returncode == 1
    assert "does not answer: ConnectError" in done.stderr.splitlines()[-1]
    assert upstream.received == 0


def test_a_status_without_plans(audited: Product) -> None:
    assert audited.run(*arguments(audited, "status")).stdout.startswith("no plans yet")
    missing = audited.run(*arguments(audited, "status", "--plan", "x"), check=False)
    assert missing.returncode == 2
    assert missing.stderr == "biasmeter: there is no plan 'x'; `biasmeter audit status` shows them\n"


def test_a_deployment_that_names_no_model(beside_gateway: Product) -> None:
    arguments = ("audit", "run", "--deployment", "relayed", "-c", str(beside_gateway.config))
    done = beside_gateway.run(*arguments, check=False)
    assert done.returncode == 2
    assert "deployment 'relayed' names no model to ask for; set deployments[].model" in done.stderr
