"""Connect to what a configuration names: the store, the deployments and the judges.

Imported by the command that runs it: httpx2 and asyncpg are heavy.
"""

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import httpx2

from auditor.check.advice import CheckRow, State, place
from auditor.config import Config, Deployment, Places
from auditor.config.models import DATABASE_VARIABLE
from auditor.config.problems import suggest
from auditor.config.values import quote
from auditor.domain.schema import SCHEMA_VERSION
from auditor.store.engine import DRIVER_ERRORS

#: Time-out of each answer in seconds.
PATIENCE: Final = 5.0

Answer = tuple[State, str]


async def reach(config: Config, places: Places, environ: Mapping[str, str]) -> list[CheckRow]:
    """Check the store and all deployments concurrently. A judge has the state of its deployment."""
    store, answers = await asyncio.gather(_reach_store(config, places, environ), _reach_deployments(config))
    rows = [store]
    for index, (name, (state, detail)) in enumerate(answers.items()):
        where = place(places, "deployments", index)
        rows.append(CheckRow(state=state, kind="deployment", name=name, detail=detail, where=where))
    for index, judge in enumerate(config.judges):
        if judge.deployment is None:
            continue  # the lexicon: there is nothing to reach
        state, detail = answers[judge.deployment]
        detail = f"through {judge.deployment}: {detail}"
        where = place(places, "judges", index)
        rows.append(CheckRow(state=state, kind="judge", name=judge.name, detail=detail, where=where))
    return rows


async def _reach_deployments(config: Config) -> dict[str, Answer]:
    async with contextlib.AsyncExitStack() as stack:
        ca_files = {deployment.ca_file for deployment in config.deployments}
        clients = {ca_file: await stack.enter_async_context(_open_client(ca_file)) for ca_file in ca_files}
        answers = await asyncio.gather(
            *(reach_deployment(clients[deployment.ca_file], deployment) for deployment in config.deployments)
        )
    return {deployment.name: answer for deployment, answer in zip(config.deployments, answers, strict=True)}


def _open_client(ca_file: Path | None) -> httpx2.AsyncClient:
    # As the gateway does: the system's certificates where no others are named, and no proxy from the environment.
    context = ssl.create_default_context(cafile=ca_file)
    return httpx2.AsyncClient(timeout=PATIENCE, trust_env=False, verify=context)


async def _reach_store(config: Config, places: Places, environ: Mapping[str, str]) -> CheckRow:
    url = config.database_url(environ)
    if url is None:
        state, detail = _look_at_folder(config.data_dir)
        where = place(places, "data_dir")
        return CheckRow(state=state, kind="store", name="embedded", detail=detail, where=where)
    where = place(places, "store", "url") if config.store.url is not None else f"${DATABASE_VARIABLE}"
    state, detail = await reach_store(url)
    return CheckRow(state=state, kind="store", name="postgresql", detail=detail, where=where)


def _look_at_folder(folder: Path) -> Answer:
    """Check whether the embedded store could start in a folder, without starting it."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists() or path == path.parent)
    if not nearest.is_dir():
        return "problem", f"{nearest} is not a folder"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return "problem", f"{nearest} cannot be written to"
    return "ok", f"embedded under {folder}"


async def reach_store(url: str, patience: float = PATIENCE) -> Answer:
    """Connect to PostgreSQL and compare the schema's version with this release's."""
    try:
        async with asyncio.timeout(patience):
            connection = await asyncpg.connect(url, timeout=patience, statement_cache_size=0)
            try:
                version = await _read_version(connection)
            finally:
                connection.terminate()  # nothing is under way, and a goodbye could hang
    except TimeoutError:
        return "problem", f"no answer within {patience:g} s"
    except (OSError, ValueError, *DRIVER_ERRORS) as error:
        return "problem", _word_connection(error)
    if version is None:
        return "problem", f"has no schema yet (this release needs {SCHEMA_VERSION}); run: biasmeter migrate"
    if version != SCHEMA_VERSION:
        return "problem", f"has schema {version}, this release needs {SCHEMA_VERSION}; run: biasmeter migrate"
    return "ok", f"schema {version}"


async def _read_version(connection: Any) -> str | None:
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    version: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    return version


async def reach_deployment(client: httpx2.AsyncClient, deployment: Deployment, patience: float = PATIENCE) -> Answer:
    """Ask a deployment for its list of models."""
    try:
        async with asyncio.timeout(patience):
            response = await client.get(deployment.url("models"), headers=deployment.fixed_headers())
    except (TimeoutError, httpx2.TimeoutException):
        return "problem", f"no answer within {patience:g} s"
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        return "problem", _word_connection(error)
    if response.status_code == httpx2.codes.OK:
        return _judge_models(response.content, deployment)
    return _judge_status(response, deployment)


def _judge_status(response: httpx2.Response, deployment: Deployment) -> Answer:
    status = response.status_code
    if status in {401, 403}:
        refusal = "asks for a key and has none" if deployment.api_key is None else "refuses the key"
        return "problem", f"{refusal} (status {status})"
    if 300 <= status < 400:
        return "problem", f"redirects to {quote(response.headers.get('location', ''))} (status {status})"
    if status == 404 and deployment.api_version is not None:  # Azure lists the models of a resource, not below it
        return "ok", "answers; only a request can show whether Azure has this deployment"
    if status in {404, 405, 501}:
        path = urlsplit(deployment.base_url).path
        return "warning", f"answers, but offers no {path}/models (status {status}): is base_url right?"
    if status < 500:
        return "warning", f"answers with status {status}"
    return "problem", f"fails with status {status}"


def _judge_models(body: bytes, deployment: Deployment) -> Answer:
    try:
        listed = [model["id"] for model in json.loads(body)["data"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "warning", "answers, but not with a list of models: is base_url right?"
    names = [name for name in listed if isinstance(name, str)]
    count = f"{len(names)} model{'' if len(names) == 1 else 's'}"
    wanted = deployment.model
    if wanted is None:
        return "ok", f"lists {count}"
    if wanted in names:
        return "ok", f"lists {count}, {wanted} among them"
    return "warning", f"lists {count}, but not {quote(wanted)}{suggest(wanted, names)}"


def _word_connection(error: BaseException) -> str:
    """Return the system's message for a failed connection, without the URL, which may contain a password."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"no TLS connection: {cause.reason or 'the handshake failed'}"
        if isinstance(cause, OSError) and cause.strerror and not cause.strerror.startswith("Multiple"):
            # asyncio puts the address into strerror; the number has the system's words.
            return f"cannot connect: {os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror}"
    if isinstance(error, httpx2.ProtocolError | httpx2.DecodingError):
        return f"its answer is not HTTP: {_clean(error)}"
    if isinstance(error, asyncpg.PostgresError):
        return f"refuses the connection: {_clean(error)}"
    return f"cannot connect: {_clean(error) or type(error).__name__}"


def _causes(error: BaseException | None) -> list[BaseException]:
    """Return an exception and its causes, the innermost first."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) and error.exceptions else None
        error = inner or error.__cause__ or error.__context__
    return chain[::-1]


def _clean(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return "" if "://" in text else text[:200]
