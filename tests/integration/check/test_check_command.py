"""``biasmeter check`` against servers on this machine: real sockets, the real command."""

import asyncio
import json
import os
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from aiohttp import web
from support.servers import commands

from auditor.check.reach import reach_deployment, reach_store
from auditor.config import Deployment
from auditor.domain.schema import SCHEMA_VERSION

MODELS = {"object": "list", "data": [{"id": "gpt-4o"}, {"id": "gpt-4o-mini"}]}
KEY = "sk-check-this-one"


@asynccontextmanager
async def serving(handler):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def models(request: web.Request) -> web.Response:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return web.json_response({"error": {"message": "bad key"}}, status=401)
    assert request.path == "/v1/models"
    return web.json_response(MODELS)


def answering(**answer):
    async def handler(request: web.Request) -> web.Response:
        return web.Response(**answer)

    return handler


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def silent():
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def ask(url: str, patience: float = 5.0, **fields):
    async with httpx2.AsyncClient(timeout=5, trust_env=False) as client:
        return await reach_deployment(client, Deployment(name="d", base_url=url, **fields), patience)


class TestDeployments:
    @pytest.mark.parametrize(
        ("fields", "state", "words"),
        [
            ({"api_key": KEY}, "ok", "lists 2 models"),
            ({"api_key": KEY, "model": "gpt-4o"}, "ok", "gpt-4o among them"),
            (
                {"api_key": KEY, "model": "gpt-40"},
                "warning",
                'lists 2 models, but not "gpt-40"; did you mean "gpt-4o"?',
            ),
            ({"api_key": "wrong"}, "problem", "refuses the key (status 401)"),
            ({}, "problem", "asks for a key and has none (status 401)"),
            ({"headers": {"Authorization": f"Bearer {KEY}"}}, "ok", "lists 2 models"),
        ],
    )
    async def test_with_a_list_of_models(self, fields, state, words):
        async with serving(models) as url:
            got, detail = await ask(url, **fields)
        assert (got, words in detail) == (state, True), detail

    @pytest.mark.parametrize(
        ("answer", "state", "words"),
        [
            ({"status": 404}, "warning", "offers no /v1/models (status 404): is base_url right?"),
            ({"status": 429}, "warning", "answers with status 429"),
            ({"status": 503}, "problem", "fails with status 503"),
            (
                {"status": 302, "headers": {"location": "https://elsewhere/"}},
                "problem",
                'redirects to "https://elsewhere/',
            ),
            ({"text": "<html>"}, "warning", "not with a list of models"),
            ({"text": "[" * 100_000}, "warning", "not with a list of models"),
            ({"text": '{"data": null}'}, "warning", "not with a list of models"),
            ({"text": '{"data": []}'}, "ok", "lists 0 models"),
            ({"body": b"\xff\xfe"}, "warning", "not with a list of models"),
            ({"body": b"x" * 99, "headers": {"content-encoding": "gzip"}}, "problem", "its answer is not HTTP: "),
        ],
    )
    async def test_with_another_answer(self, answer, state, words):
        async with serving(answering(**answer)) as url:
            got, detail = await ask(url)
        assert (got, words in detail) == (state, True), detail
        assert detail.isprintable()

    async def test_azure_lists_no_models_below_a_deployment(self):
        async with serving(answering(status=404)) as url:
            state, detail = await ask(url, api_version="2024-10-21")
        assert (state, detail.startswith("answers; ")) == ("ok", True)

    async def test_nobody_there(self):
        assert await ask(f"http://127.0.0.1:{closed_port()}") == ("problem", "cannot connect: Connection refused")

    async def test_unknown_host(self):
        state, detail = await ask("http://nowhere.invalid")
        assert (state, detail.startswith("cannot connect: ")) == ("problem", True)

    async def test_not_http(self):
        async def talk(reader, writer):
            writer.write(b"SSH-2.0-OpenSSH\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with server:
            state, detail = await ask(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        assert (state, detail.startswith("its answer is not HTTP: ")) == ("problem", True)

    async def test_tls_where_there_is_none(self):
        async with serving(models) as url:
            state, detail = await ask(url.replace("http:", "https:"))
        assert (state, detail.startswith("no TLS connection: ")) == ("problem", True)

    async def test_silence(self):
        async with silent() as port:
            assert await ask(f"http://127.0.0.1:{port}", patience=0.2) == ("problem", "no answer within 0.2 s")


class TestStore:
    async def test_with_the_schema(self, migrated_url):
        assert await reach_store(migrated_url) == ("ok", f"schema {SCHEMA_VERSION}")

    async def test_without_a_schema(self, database_url):
        state, detail = await reach_store(database_url)
        assert (state, detail.startswith("has no schema yet")) == ("problem", True)

    async def test_without_the_database(self, postgres_server):
        state, detail = await reach_store(postgres_server.rpartition("/")[0] + "/nowhere")
        assert (state, detail) == ("problem", 'refuses the connection: database "nowhere" does not exist')

    async def test_nobody_there(self):
        state, detail = await reach_store(f"postgresql://u:hunter2@127.0.0.1:{closed_port()}/d")
        assert (state, detail) == ("problem", "cannot connect: Connection refused")

    @pytest.mark.parametrize(
        "url", ["postgresql://u:hunter2@h:port/d", "postgresql://[::1/d", "postgresql://u:hunter2@/d?sslmode=x"]
    )
    async def test_a_url_that_cannot_be_read(self, url):
        state, detail = await reach_store(url)
        assert (state, detail.startswith("cannot connect: ")) == ("problem", True)
        assert "hunter2" not in detail

    async def test_silence(self):
        async with silent() as port:
            answer = await reach_store(f"postgresql://u:hunter2@127.0.0.1:{port}/d", patience=0.2)
        assert answer == ("problem", "no answer within 0.2 s")

    async def test_another_server(self):
        async with serving(models) as url:
            state, detail = await reach_store(f"postgresql://u:hunter2@{url.removeprefix('http://')}/d")
        assert state == "problem"
        assert "hunter2" not in detail


async def run_check(*arguments: str, cwd: Path, **environ: str) -> tuple[int, str, str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), **environ}
    done = await asyncio.to_thread(commands.run, ["check", *arguments], folder=cwd, environment=environment)
    return done.returncode, done.stdout, done.stderr


CONFIG = """\
deployments:
  - {name: good, base_url: "URL", api_key: ${KEY}, model: gpt-4o, vendor: v, price: {input: 1, output: 2}}
  - name: second
    vendor: v
    base_url: SECOND
    model: m
routes:
  - model: "*"
    deployments: [good]
    capture: full
judges: [{name: j1, deployment: second}]
gateway: {listen: ":4001"}
"""


class TestTheCommand:
    async def test_all_is_there(self, tmp_path):
        async with serving(models) as url:
            (tmp_path / "biasmeter.yaml").write_text(
                "gateway: {listen: '127.0.0.1:0'}\n"
                f"deployments: [{{name: a, base_url: '{url}', api_key: {KEY}, price: {{input: 1, output: 1}}}}]\n"
                "routes: [{model: x, deployments: [a]}]\n"
            )
            status, out, err = await run_check(cwd=tmp_path)
        assert (status, err) == (0, "")
        lines = out.splitlines()
        assert lines[0].split() == [
            "ok",
            "store",
            "embedded",
            "default",
            "embedded",
            "under",
            f"{tmp_path}/.local/share/biasmeter",
        ]
        assert lines[1].split() == ["ok", "deployment", "a", "biasmeter.yaml:2", "lists", "2", "models"]
        assert lines[-1] == "1 warning"  # the lexicon

    async def test_something_is_not(self, tmp_path):
        (tmp_path / "c.yaml").write_text("")
        async with serving(models) as url:
            text = CONFIG.replace("URL", url).replace("SECOND", f"http://127.0.0.1:{closed_port()}")
            (tmp_path / "c.yaml").write_text(text)
            status, out, err = await run_check("-c", "c.yaml", "--json", cwd=tmp_path, KEY=KEY)
        assert (status, err) == (1, "")
        told = json.loads(out)
        assert told["ok"] is False
        rows = [(row["state"], row["kind"], row["name"], row["where"]) for row in told["rows"]]
        assert rows == [
            ("ok", "store", "embedded", "default"),
            ("ok", "deployment", "good", "c.yaml:2"),
            ("problem", "deployment", "second", "c.yaml:3"),
            ("problem", "judge", "j1", "c.yaml:11"),
            ("warning", "gateway", ":4001", "c.yaml:12"),
            ("warning", "auditor", "127.0.0.1:4001", "default"),
            ("warning", "route", "*", "c.yaml:10"),
            ("warning", "judge", "j1", "c.yaml:11"),
            ("warning", "deployment", "second", "c.yaml:3"),
        ]
        assert "good" in told["rows"][7]["detail"]
        assert KEY not in out

    async def test_the_file_is_wrong(self, tmp_path):
        (tmp_path / "biasmeter.yaml").write_text(CONFIG.replace("${KEY}", "${NOWHERE}"))
        status, out, err = await run_check(cwd=tmp_path)
        assert (status, out) == (2, "")
        assert "biasmeter.yaml:2: deployments[0].api_key: the environment variable NOWHERE is not set" in err
        assert "Traceback" not in err
        status, out, err = await run_check("--json", cwd=tmp_path)
        assert (status, err, json.loads(out)["ok"]) == (2, "", False)
        assert json.loads(out)["problems"][0].startswith("biasmeter.yaml:2: ")

    async def test_there_is_no_file(self, tmp_path):
        status, _, err = await run_check(cwd=tmp_path)
        assert (status, err) == (
            2,
            "biasmeter: biasmeter.yaml: no such file; pass the configuration with -c\n",
        )

    async def test_the_store_variable_is_wrong(self, tmp_path):
        (tmp_path / "biasmeter.yaml").write_text(CONFIG.replace("URL", "http://h").replace("SECOND", "http://h"))
        status, _, err = await run_check(cwd=tmp_path, KEY=KEY, BIASMETER_DATABASE_URL="mysql://secret")
        assert (status, err) == (2, "biasmeter: BIASMETER_DATABASE_URL: must start with postgresql://\n")
