"""``/healthz``, ``/readyz``, ``/metrics``: what orchestrators and Prometheus ask."""

from aiohttp import web

from gateway import telemetry
from gateway.app import GATEWAY

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes() -> list[web.RouteDef]:
    """List the paths."""
    return [web.get("/healthz", _healthz), web.get("/readyz", _readyz), web.get("/metrics", _metrics)]


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def _readyz(request: web.Request) -> web.Response:
    gateway = request.app[GATEWAY]
    if gateway.draining:
        return web.json_response({"status": "draining"}, status=503)
    if gateway.snapshot.current is None and gateway.config.gateway.auth == "keys":
        return web.json_response(
            {"status": "unconfigured", "why": "the client keys have not been read yet"}, status=503
        )
    return web.json_response({"status": "ready"})


async def _metrics(request: web.Request) -> web.Response:
    body = telemetry.render(request.app[GATEWAY].registry)
    return web.Response(body=body, headers={"content-type": _METRICS_TYPE})
