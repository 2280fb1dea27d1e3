"""The unmodified OpenAI SDKs for Python and Node behind one face, so that one test can be done with both.

Both carry out the same commands (`node/drive.mjs` describes them) and give what an application would see.
"""

import asyncio
import fcntl
import inspect
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

NODE = Path(__file__).with_name("node")

Command = dict[str, Any]
CarryOut = Callable[[Command], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as an SDK raises it."""

    kind: str  #: the name of its class, which is the same in both but for those of connections
    message: str
    status: int | None
    body: Any  #: the error object out of the answer
    headers: dict[str, str]
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What an application got of one call."""

    value: Any  #: the answer, if it came in one piece
    events: list[Any]  #: a stream's, also those before a failure
    status: int | None
    headers: dict[str, str]
    request_id: str | None
    failure: Failure | None

    @property
    def exchange_id(self) -> str:
        """The gateway's name for it."""
        return (self.failure.headers if self.failure and self.failure.headers else self.headers)[
            "x-biasmeter-exchange-id"
        ]

    @property
    def text(self) -> str:
        """The text of a chat stream."""
        deltas = (choice["delta"] for event in self.events for choice in event.get("choices", ()))
        return "".join(delta.get("content") or "" for delta in deltas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """One SDK, pointed at a server. Nothing is tried again unless a test asks for it."""

    name: str
    carry_out: CarryOut
    url: str
    key: str = "unused"
    headers: dict[str, str] = field(default_factory=dict)

    def to(self, url: str) -> "Sdk":
        """Point it at another server."""
        return replace(self, url=url)

    def with_key(self, key: str) -> "Sdk":
        """Give it another key."""
        return replace(self, key=key)

    def with_headers(self, **headers: str) -> "Sdk":
        """Have it send header fields; underscores stand for hyphens."""
        return replace(self, headers={name.replace("_", "-"): value for name, value in headers.items()})

    async def ask(
        self, call: str, argument: Any = None, *, patience: float = 30.0, retries: int = 0, take: int | None = None
    ) -> Heard:
        """Call a method of the client, or post to a path.

        Parameters
        ----------
        call
            ``chat.completions.create``, or a path such as ``/chat/completions``.
        argument
            The request's body; for ``models.retrieve`` the model's name.
        patience
            The client's own timeout, in seconds.
        take
            After how many events of a stream it leaves.
        """
        command = {"url": self.url, "key": self.key, "headers": self.headers, "call": call, "argument": argument}
        heard = await self.carry_out(command | {"timeout": patience, "retries": retries, "take": take})
        failure = heard.pop("failure")
        return Heard(**heard, failure=Failure(**failure) if failure else None)

    async def chat(
        self, model: str, *, patience: float = 30.0, retries: int = 0, take: int | None = None, **more: Any
    ) -> Heard:
        """Ask for a chat completion; `more` of its body, `stream` included, as needed."""
        argument = {"model": model, "messages": [{"role": "user", "content": "Is the ground level?"}], **more}
        return await self.ask("chat.completions.create", argument, patience=patience, retries=retries, take=take)


# -- Python ------------------------------------------------------------------------------------------------------


async def in_python(command: Command) -> dict[str, Any]:
    """Carry out a command with the package for Python."""
    heard: dict[str, Any] = {"value": None, "events": [], "status": None, "headers": {}, "request_id": None}
    async with AsyncOpenAI(
        base_url=command["url"],
        api_key=command["key"],
        default_headers=command["headers"],
        timeout=command["timeout"],
        max_retries=command["retries"],
    ) as client:
        try:
            await _call(client, command, heard)
        except (openai.APIError, ValueError) as error:  # an event that is no JSON is the latter
            return heard | {"failure": _told(error)}
    return heard | {"failure": None}


async def _call(client: AsyncOpenAI, command: Command, heard: dict[str, Any]) -> None:
    call, argument = command["call"], command["argument"]
    if call.startswith("/"):
        heard["value"] = await client.post(call, cast_to=object, body=argument)
        return
    *resource, name = call.split(".")
    method = getattr(reduce(getattr, resource, client).with_raw_response, name)
    raw = await method(**_arguments(method, argument))
    parsed = raw.parse()
    heard |= {"status": raw.status_code, "headers": dict(raw.headers), "request_id": raw.headers.get("x-request-id")}
    if isinstance(parsed, BaseModel):
        heard |= {"value": parsed.model_dump(exclude_unset=True), "request_id": getattr(parsed, "_request_id", None)}
        return
    async with parsed:
        async for event in parsed:
            heard["events"].append(event.model_dump(exclude_unset=True))
            if len(heard["events"]) == command["take"]:
                break


def _arguments(method: Callable[..., Any], argument: Any) -> dict[str, Any]:
    """Spread a body over a method's parameters; what it has no parameter for is for ``extra_body``."""
    if not isinstance(argument, dict):
        return {} if argument is None else {"model": argument}
    known = inspect.signature(method).parameters
    extra = {name: value for name, value in argument.items() if name not in known}
    return {name: value for name, value in argument.items() if name in known} | ({"extra_body": extra} if extra else {})


def _told(error: Exception) -> dict[str, Any]:
    response = getattr(error, "response", None)
    return {
        "kind": type(error).__name__,
        "message": str(error),
        "status": getattr(error, "status_code", None),
        "body": getattr(error, "body", None),
        "headers": dict(response.headers) if response is not None else {},
        "request_id": getattr(error, "request_id", None),
    }


# -- Node --------------------------------------------------------------------------------------------------------


def install_for_node() -> None:
    """Install the package for Node beside its driver, unless it is there; where that cannot be, skip the test."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    lock, installed = NODE / "package-lock.json", NODE / "node_modules" / ".package-lock.json"
    with lock.open("rb") as held:
        # One process installs: npm removes the folder first, also while tests of another process use it.
        fcntl.flock(held, fcntl.LOCK_EX)
        if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
            return
        command = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, cwd=NODE, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.skip(f"npm ci failed: {done.stderr.strip()[-300:]}")


class _Driver:
    """A Node process that carries out commands, several at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self._reading = asyncio.create_task(self._read())

    async def carry_out(self, command: Command) -> dict[str, Any]:
        assert self._process.stdin is not None
        if self._reading.done():
            raise RuntimeError("the Node driver has ended")
        self._asked += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._asked] = future
        self._process.stdin.write(json.dumps(command | {"id": self._asked}).encode() + b"\n")
        return await future

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._reading
        await self._process.wait()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            heard = json.loads(line)
            self._waiting.pop(heard.pop("id")).set_result(heard)
        for future in self._waiting.values():
            future.set_exception(RuntimeError("the Node driver ended"))


@asynccontextmanager
async def in_node() -> AsyncIterator[CarryOut]:
    """Carry out commands with the package for Node, in a process that lives until the block ends."""
    process = await asyncio.create_subprocess_exec(
        "node", "drive.mjs", cwd=NODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 26
    )
    driver = _Driver(process)
    try:
        yield driver.carry_out
    finally:
        await driver.close()
