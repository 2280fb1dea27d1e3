"""``GET /``: a page for people who open the gateway's address in a browser.

It shows names of the product and addresses of the configuration: no deployment, no model, no key.
"""

import base64
import hashlib
from string import Template
from typing import Final

from auditor.config import Config
from gateway.exchange.app import Gateway
from gateway.http import Request, WholeAnswer

_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
code { font-size: .9em; overflow-wrap: anywhere }
td { padding: .2rem 1rem .2rem 0; vertical-align: top }
"""
_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Biasmeter gateway</title>
<style>$style</style>
</head>
<body><main>
<h1>Biasmeter gateway</h1>
<p>This address forwards OpenAI-compatible requests of applications to model deployments, and keeps sampled copies, from
which the auditor measures how often each deployment endorses social stereotypes.</p>
<p>To use it, set <code>base_url</code> of an OpenAI client to <code>$base_url</code>. $key</p>
<p>$console</p>
<h2>Endpoints</h2>
<table>
$endpoints
</table>
<p>More: <code>biasmeter --help</code>, and <code>docs/gateway.md</code> in the source distribution.</p>
</main></body>
</html>
""")
_HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; style-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'",
    "x-content-type-options": "nosniff",
}
_POSTS: Final = (
    "<code>POST /v1/chat/completions</code>, <code>/v1/completions</code>, <code>/v1/embeddings</code>, "
    "<code>/v1/responses</code>"
)
_GETS: Final = (
    ("/v1/models", "the models that you may ask for"),
    ("/healthz", "whether this process runs"),
    ("/readyz", "whether it serves requests"),
    ("/metrics", "its series, for Prometheus"),
)


class WelcomePage:
    """Answers ``/``."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def show(self, _: Request) -> WholeAnswer:
        """Write the page from the configuration that is in effect."""
        return WholeAnswer(200, dict(_HEADERS), _write(self._gateway.config).encode())


def _write(config: Config) -> str:
    listen, console = config.gateway.listen, config.auditor.listen
    host = str(listen) if listen.is_loopback else f"THIS-HOST:{listen.port}"
    return _PAGE.substitute(
        style=_STYLE,
        base_url=f"http://{host}/v1",
        key="It needs no key." if config.gateway.auth == "open" else "If the operator has made keys, it needs one.",
        console=f'People read the results in the console of the auditor: <a href="http://{console}/">{console}</a>.'
        if console.is_loopback
        else "People read the results in the console of the auditor, at an address of its own.",
        endpoints="\n".join(_rows(config)),
    )


def _rows(config: Config) -> list[str]:
    others = config.gateway.other_endpoints
    rows = [(_POSTS, "forwarded, and copied as the configuration says")]
    if others:
        named = (
            ", ".join(f"<code>/v1/{path}</code>" for path in others)
            if others != "all"
            else "any other path below <code>/v1/</code>"
        )
        rows.append((f"<code>POST</code> {named}", "forwarded by the <code>model</code> of a JSON body, not copied"))
    rows += [(f'<code>GET</code> <a href="{path}">{path}</a>', what) for path, what in _GETS]
    return [f"<tr><td>{endpoint}</td><td>{what}</td></tr>" for endpoint, what in rows]
