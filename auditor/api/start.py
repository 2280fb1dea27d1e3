"""Serve ``/start`` and ``/api/start``: the steps from an empty installation to the first estimate."""

import json
import shlex
from typing import Final
from urllib.parse import urlencode

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import pinned_model
from auditor.api.context import CONFIG, ENGINE
from auditor.api.health import ask_gateway
from auditor.api.operations import get
from auditor.api.pages import render_page
from auditor.api.requests import known_filters
from auditor.config import Config
from auditor.documents.service import StepEntry, StepLinkEntry, StepsBody
from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from auditor.probes.choice import PlanChoice, command
from auditor.probes.run import default_deployments
from auditor.store.engine import transaction
from auditor.store.estimates import newest_as_of
from auditor.store.keys import list_keys
from auditor.store.overview import count_planned, has_exchanges, is_empty

_DESIGN: Final = "sentinel"


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [web.get("/start", _page)]


async def is_new(engine: AsyncEngine) -> bool:
    """Return whether the installation has neither exchanges nor plans."""
    async with transaction(engine) as connection:
        return await is_empty(connection)


@get("/api/start", "The steps to the first estimate")
async def _list(request: web.Request) -> StepsBody:
    return StepsBody(steps=await _steps(request))


OPERATIONS: Final = (_list,)


async def _page(request: web.Request) -> web.Response:
    known_filters(request, ())
    steps = await _steps(request)
    return render_page(request, "start.html.j2", steps=steps, done=all(step.done or step.optional for step in steps))


async def _steps(request: web.Request) -> list[StepEntry]:
    """Return the steps in their order; ``command`` is what a terminal does, ``link`` what the console does."""
    config = request.app[CONFIG]()
    gateway = await ask_gateway(config)
    async with transaction(request.app[ENGINE]) as connection:
        seen = await has_exchanges(connection, Origin.CLIENT)
        planned = await count_planned(connection)
        estimated = await newest_as_of(connection) is not None
        keys = any(key.is_for_clients for key, _ in await list_keys(connection))
    file = config.file_argument
    choice = PlanChoice(design=_DESIGN)
    answered = sum(counts.answered for counts in planned.values())
    every = sum(counts.planned for counts in planned.values())
    return [
        StepEntry(
            name="Add a deployment",
            done=True,
            text=_deployments(config),
            command="biasmeter init -o biasmeter.yaml\nbiasmeter up -c biasmeter.yaml",
            about="For other deployments: write a configuration, and start Biasmeter with it in place of this one.",
        ),
        StepEntry(
            name="Run the gateway",
            done=not gateway.error,
            text=gateway.error or f"It answers at {gateway.url}.",
            command=f"biasmeter gateway -c {file}" if gateway.error else None,
        ),
        StepEntry(
            name="Send a request of an application through it",
            optional=True,
            done=seen,
            text="Give the application the gateway's address as its base URL. Audits do not need this.",
            command=_request(config, needs_key=keys),
        ),
        StepEntry(
            name="Look at what a first audit costs",
            done=every > 0,
            text=_model_sentences(config),
            command=command("plan", choice, file),
            link=StepLinkEntry(href="/audits/plan?" + urlencode({"design": _DESIGN}), text="Estimate it here"),
        ),
        StepEntry(
            name="Send the audit",
            done=every > 0 and answered == every,
            text=f"{answered:,} of {every:,} planned calls are answered."
            if every
            else "Nothing is sent before you start.",
            command=command("run", choice, file),
            link=StepLinkEntry(href="/audits", text="Audits"),
        ),
        StepEntry(
            name="Read the first estimate",
            done=estimated and answered > 0,
            text="Answers are coded as they come; the fleet shows the share that endorses, with its interval.",
            command=None,
            link=StepLinkEntry(href="/", text="Fleet"),
        ),
    ]


def _deployments(config: Config) -> str:
    return (
        "Configured: "
        + ", ".join(f"{deployment.name} ({deployment.base_url})" for deployment in config.deployments)
        + "."
    )


def _model_sentences(config: Config) -> str:
    sentences = []
    for deployment in default_deployments(config):
        try:
            sentences.append(f"{deployment.name} is asked for the model {pinned_model(config, deployment)}.")
        except UsageError as error:
            sentences.append(f"{error}; without a configuration, start with OPENAI_MODEL=NAME.")
    return " ".join(sentences)


def _request(config: Config, *, needs_key: bool) -> str:
    listen = config.gateway.listen
    host = str(listen) if listen.is_loopback else f"127.0.0.1:{listen.port}"
    key = ' -H "authorization: Bearer $BIASMETER_KEY"' if needs_key else ""
    body = json.dumps({"model": _model(config), "messages": [{"role": "user", "content": "Hello"}]})
    # The key is a variable, so it stands between the quoted words.
    address, content = f"http://{host}/v1/chat/completions", ["-H", "content-type: application/json", "-d", body]
    return f"curl {address}{key} {shlex.join(content)}"


def _model(config: Config) -> str:
    """Return a model that the gateway routes; MODEL where every name is routed and no deployment says its own."""
    first = config.routes[0]
    declared = {deployment.name: deployment for deployment in config.deployments}
    try:
        return pinned_model(config, declared[first.deployments[0].name])
    except UsageError:
        return "MODEL"
