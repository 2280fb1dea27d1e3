"""The rows of docs/upstreams.md: each loads as it stands there, and a request goes where the page says."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.paths import DOCS
from support.servers.certificates import make_authority
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_requests import OwnUpstream, UpstreamRequest

from auditor.config import Deployment, loads
from gateway.headers import upstream_headers

PAGE = (DOCS / "upstreams.md").read_text()
ROWS, TLS_ROWS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
#: Per deployment: the URL, and the header with the key ("none").
LINES = re.findall(r"^\| (\S+) \| `(\S+)` \| (\S+) \|$", PAGE, re.MULTILINE)
TABLE = {name: (url, key.strip("`")) for name, url, key in LINES}
KEYS = dict.fromkeys(re.findall(r"\$\{(\w+)\}", ROWS), "sk-upstream")


def read_rows(rows: str, folder: Path) -> dict[str, Deployment]:
    whole = rows + "routes: [{model: '*', deployments: [" + re.findall(r"name: ([\w.-]+)", rows)[0] + "]}]\n"
    config = loads(whole, source="upstreams.md", folder=folder, environ=KEYS).config
    return {one.name: one for one in config.deployments}


DEPLOYMENTS = read_rows(ROWS, Path("/"))


def test_the_table_names_every_row() -> None:
    assert list(TABLE) == list(DEPLOYMENTS)
    assert len(TABLE) == 10


@pytest.mark.parametrize("name", TABLE)
async def test_a_row_sends_its_requests_where_the_page_says(name: str) -> None:
    url, key_header = TABLE[name]
    assert DEPLOYMENTS[name].url("chat/completions") == url
    path = url.removeprefix(_origin(url))
    async with scripted_upstream() as up:
        base_url = DEPLOYMENTS[name].base_url.replace(_origin(url), _origin(up.url))
        moved = DEPLOYMENTS[name].model_copy(update={"base_url": base_url})
        headers = upstream_headers({"authorization": "Bearer sk-client"}, moved, "req_1")
        upstream = OwnUpstream()
        answer = await upstream.send(UpstreamRequest(url=moved.url("chat/completions"), headers=headers, body=b"{}"))
        answer.close()
        await upstream.close()
    (request,) = up.requests
    assert request.path == path
    bearer = "Bearer " if key_header == "authorization" else ""
    expected = {} if key_header == "none" else {key_header: f"{bearer}sk-upstream"}
    assert {header: value for header, value in request.headers if "sk-" in value} == expected


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def test_the_row_with_an_authority_of_ones_own_loads_where_the_file_is(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "company-ca")
    assert read_rows(TLS_ROWS, tmp_path)["on-premises"].ca_file == authority.ca_file
