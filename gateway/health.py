"""``/healthz``, ``/readyz``, ``/metrics``: what orchestrators and Prometheus ask."""

from aiohttp import web

from gateway.app import Gateway

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """Says how this worker is, and what the gateway has counted."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def alive(self, _: web.BaseRequest) -> web.Response:
        """``/healthz``."""
        return web.json_response({"status": "ok"})

    async def ready(self, _: web.BaseRequest) -> web.Response:
        """``/readyz``."""
        gateway = self._gateway
        if gateway.draining:
            return web.json_response({"status": "draining"}, status=503)
        if gateway.snapshot.current is None and gateway.config.gateway.auth == "keys":
            return web.json_response(
                {"status": "unconfigured", "why": "the client keys have not been read yet"}, status=503
            )
        return web.json_response({"status": "ready"})

    async def metrics(self, _: web.BaseRequest) -> web.Response:
        """``/metrics``."""
        body = self._gateway.exposition.render()
        return web.Response(body=body, headers={"content-type": _METRICS_TYPE})
