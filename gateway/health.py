"""``/healthz``, ``/readyz``, ``/metrics``: what orchestrators and Prometheus ask."""

from gateway.app import Gateway, json_answer
from gateway.server import Request, WholeAnswer

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """Says how this worker is, and what the gateway has counted."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def alive(self, _: Request) -> WholeAnswer:
        """``/healthz``."""
        return json_answer({"status": "ok"})

    async def ready(self, _: Request) -> WholeAnswer:
        """``/readyz``."""
        gateway = self._gateway
        if gateway.draining:
            return json_answer({"status": "draining"}, status=503)
        if gateway.snapshot.current is None and gateway.config.gateway.auth == "keys":
            return json_answer({"status": "unconfigured", "why": "the client keys have not been read yet"}, status=503)
        return json_answer({"status": "ready"})

    async def metrics(self, _: Request) -> WholeAnswer:
        """``/metrics``."""
        body = self._gateway.exposition.render()
        return WholeAnswer(200, {"content-type": _METRICS_TYPE}, body)
