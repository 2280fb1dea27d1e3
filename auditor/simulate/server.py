"""Serve the simulator over HTTP: OpenAI's chat completions, models, embeddings, and endpoints that cause failures.

``create_app`` makes it; the clock is an argument. ``wire`` reads requests and writes answers, ``respondent`` and
``judging`` choose the answers, ``world`` holds the state.

The draw of an answer is the request's ``seed``, if it has one, otherwise the number of times this deployment has
answered the same messages. A failed attempt does not count, so a retry gets the same answer.
"""

import asyncio
import json
import signal
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from auditor.errors import UsageError
from auditor.simulate import wire
from auditor.simulate.chance import digest
from auditor.simulate.config import LoadedScenario
from auditor.simulate.drafting import draft_reply, read_draft_request
from auditor.simulate.expected import expect_tasks
from auditor.simulate.judging import judge_reply, read_request, read_score_request, score_reply
from auditor.simulate.model import Scenario, SimulatedJudge
from auditor.simulate.recognise import KnownStatements
from auditor.simulate.respondent import Respondent, digest_turns
from auditor.simulate.wire import BadRequestError, ChatRequest, SimulatedChoice
from auditor.simulate.world import Clock, World, failure_of, is_slow, utc_now

#: Listed among the models; embeddings accept any model name.
EMBEDDING_MODEL: Final = "simulated-embedding"
#: Answers a judge's question if the requested model is not a declared judge.
_STAND_IN: Final = SimulatedJudge(name="stand-in", accuracy=1.0)

_WORLD: Final = web.AppKey("world", World)


def create_app(
    scenario: Scenario,
    *,
    pool: KnownStatements | None = None,
    statements: tuple[str, ...] | None = None,
    clock: Clock = utc_now,
) -> web.Application:
    """Make the application; ``statements`` are the texts of the pool, from which it computes the true values."""
    app = web.Application(client_max_size=32 * 1024 * 1024, middlewares=[_errors])
    app[_WORLD] = World(
        scenario=scenario,
        respondent=Respondent(scenario, pool or KnownStatements()),
        clock=clock,
        started=clock(),
        pool=statements,
    )
    app.add_routes(
        [
            web.post("/v1/chat/completions", _chat),
            web.post("/v1/embeddings", _embeddings),
            web.get("/v1/models", _models),
            web.get("/v1/models/{name:.+}", _model),
            web.get("/healthz", _healthz),
            web.get("/simulate/truth", _truth),
            web.post("/simulate/deployments/{name:.+}", _change),
        ]
    )
    return app


@web.middleware
async def _errors(request: web.Request, handler: Any) -> web.StreamResponse:
    try:
        answer: web.StreamResponse = await handler(request)
    except BadRequestError as error:
        body = wire.error_body(str(error), "invalid_request_error", param=error.param, code=error.code)
        return web.json_response(body, status=error.status)
    except web.HTTPException as error:
        return web.json_response(wire.error_body(error.reason, "invalid_request_error"), status=error.status)
    return answer


async def _chat(request: web.Request) -> web.StreamResponse:
    world = request.app[_WORLD]
    chat = wire.read_chat(wire.read_json(await request.read()))
    if world.scenario.deployment(chat.model) is None and world.scenario.judge(chat.model) is None:
        raise BadRequestError(
            f"The model {chat.model!r} does not exist", status=404, param="model", code="model_not_found"
        )
    failures = world.failures_of(chat.model)
    key = digest(chat.model, digest_turns(chat.turns), chat.seed)
    attempt = (world.scenario.seed, "attempt", key, world.attempts.next(key))
    failure = failure_of(failures, *attempt)
    if failure == "rate_limited":
        body = wire.error_body("Rate limit reached", "rate_limit_error", code="rate_limit_exceeded")
        return web.json_response(body, status=429, headers={"Retry-After": str(failures.retry_after)})
    if failure == "server_error":
        return web.json_response(wire.error_body("The server had an error", "server_error"), status=500)
    draw = f"seed {chat.seed}" if chat.seed is not None else str(world.answers.now(key))
    choices = [_choose(world, chat, f"{draw}/{index}" if index else draw) for index in range(chat.choices)]
    identifier = wire.completion_id(world.scenario.seed, key, draw)
    if failure is None:
        world.answers.next(key)
    wait = failures.slow_seconds if is_slow(failures, *attempt) else 0.0
    send = _stream if chat.stream else _whole
    return await send(request, chat, choices, identifier=identifier, wait=wait, cut=failure == "cut")


def _choose(world: World, chat: ChatRequest, draw: str) -> SimulatedChoice:
    """Choose the answer of one choice."""
    scenario = world.scenario
    judge = scenario.judge(chat.model)
    scored = read_score_request(chat.turns)
    if scored is not None:
        text = score_reply(scenario.seed, judge or _STAND_IN, scenario.shared_error, scored)
        return wire.make_choice(text, "stop", chat.max_tokens)
    judged = read_request(chat.turns)
    if judged is not None:
        text = judge_reply(scenario.seed, judge or _STAND_IN, scenario.shared_error, judged)
        return wire.make_choice(text, "stop", chat.max_tokens)
    deployment = scenario.deployment(chat.model)
    if deployment is None:
        raise BadRequestError(f"{chat.model!r} is a simulated judge, and this is no judge's question", param="messages")
    drafts = read_draft_request(chat.turns)
    if drafts is not None:
        return wire.make_choice(draft_reply(scenario.seed, deployment.name, drafts), "stop", chat.max_tokens)
    reply = world.respondent.respond(deployment, chat.turns, draw, drifted=world.is_drifted(deployment))
    return wire.make_choice(reply.text, reply.finish_reason, chat.max_tokens)


async def _whole(
    request: web.Request, chat: ChatRequest, choices: list[SimulatedChoice], *, identifier: str, wait: float, cut: bool
) -> web.StreamResponse:
    world = request.app[_WORLD]
    body = wire.completion(chat, choices, identifier=identifier, created=int(world.clock().timestamp()))
    first, each = _latency(world, chat.model)
    await asyncio.sleep(wait + first + each * sum(len(choice.tokens) for choice in choices))
    if not cut:
        return web.json_response(body)
    raw = json.dumps(body).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(raw))})
    await response.prepare(request)
    await response.write(raw[: len(raw) // 2])
    _hang_up(request)
    return response


async def _stream(
    request: web.Request, chat: ChatRequest, choices: list[SimulatedChoice], *, identifier: str, wait: float, cut: bool
) -> web.StreamResponse:
    world = request.app[_WORLD]
    created = int(world.clock().timestamp())
    events = list(wire.stream_events(chat, choices, identifier=identifier, created=created))
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    response = web.StreamResponse(headers=headers)
    first, each = _latency(world, chat.model)
    try:
        await response.prepare(request)
        await asyncio.sleep(wait + first)
        for event in events[: len(events) // 2] if cut else events:
            await response.write(event)
            if each:
                await asyncio.sleep(each)
        if cut:
            _hang_up(request)
            return response
        await response.write_eof()
    except ConnectionResetError:
        pass  # the client has closed the connection: nothing can be sent
    return response


def _latency(world: World, name: str) -> tuple[float, float]:
    declared = world.scenario.deployment(name)
    return (declared.latency.first_token, declared.latency.per_token) if declared else (0.0, 0.0)


def _hang_up(request: web.Request) -> None:
    """Close the connection as a crashed server does, after the bytes already written."""
    if request.transport is not None:
        request.transport.close()


async def _embeddings(request: web.Request) -> web.Response:
    return web.json_response(wire.embeddings(wire.read_json(await request.read())))


def _listed(world: World) -> list[dict[str, Any]]:
    scenario = world.scenario
    owned = [(entry.name, entry.vendor) for entry in scenario.deployments] + [
        (entry.name, entry.vendor) for entry in scenario.judges
    ]
    created = int(world.started.timestamp())
    return [
        {"id": name, "object": "model", "created": created, "owned_by": vendor}
        for name, vendor in [*owned, (EMBEDDING_MODEL, "simulated")]
    ]


async def _models(request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": _listed(request.app[_WORLD])})


async def _model(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    for model in _listed(request.app[_WORLD]):
        if model["id"] == name:
            return web.json_response(model)
    raise BadRequestError(f"The model {name!r} does not exist", status=404, param="model", code="model_not_found")


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok", "simulated": True})


async def _truth(request: web.Request) -> web.Response:
    world = request.app[_WORLD]
    rows = await asyncio.to_thread(expect_tasks, world.scenario, statements=world.pool)
    drifted = {deployment.name: world.is_drifted(deployment) for deployment in world.scenario.deployments}
    return web.json_response({"simulated": True, "rows": rows, "drifted": drifted})


async def _change(request: web.Request) -> web.Response:
    """Set failures or drift of a deployment: ``{"failures": {...} | null, "drifted": true | false | null}``."""
    world = request.app[_WORLD]
    name = request.match_info["name"]
    deployment = world.scenario.deployment(name)
    if deployment is None:
        raise BadRequestError(f"The deployment {name!r} does not exist", status=404)
    body = wire.read_json(await request.read())
    if unknown := set(body) - {"failures", "drifted"}:
        raise BadRequestError(f"unknown member {min(unknown)!r}; known: failures, drifted", param=min(unknown))
    if "failures" in body:
        world.set_failures(deployment, body["failures"])
    if "drifted" in body:
        world.set_drift(deployment, body["drifted"])
    return web.json_response({"deployment": name, "drifted": world.is_drifted(deployment)})


#: Seconds that unfinished answers may take after the process is told to stop.
_PATIENCE = 1.0


def run(loaded: LoadedScenario, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; ``on_ready`` is given the base URL once the port is open.

    Raises
    ------
    UsageError
        The address cannot be listened on.
    """
    asyncio.run(_serve(loaded, host, port, on_ready))


async def _serve(loaded: LoadedScenario, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    app = create_app(loaded.scenario, pool=loaded.pool, statements=loaded.texts)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_PATIENCE)
    await runner.setup()
    try:
        await _listen(runner, host, port)
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        on_ready(f"http://{shown}:{bound[1]}/v1")
        await stop.wait()
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, host: str, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
