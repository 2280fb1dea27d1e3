"""Plans of routes: how the deployments of a model are asked for the requests of one head."""

import re
from collections.abc import Mapping
from typing import Final

from auditor.config import Deployment, Route
from gateway.auth import Directives
from gateway.exchange.app import Gateway
from gateway.exchange.endpoints import Endpoint
from gateway.headers import continued_trace, upstream_headers
from gateway.recording.telemetry import ExchangeSeries
from gateway.routing.table import WeightedChoice
from gateway.upstreams import UpstreamRequest, tls
from gateway.upstreams.connection import ConnectionKey
from gateway.upstreams.lean import parse_url, write_head
from gateway.wire import replace_model

#: Stand for the request id and the trace in the head to a deployment while its plan is made.
_ID: Final = "0-request-id-0"
_TRACE: Final = f"00-{'9' * 32}-{'9' * 16}-01"
_TRACE_LINE: Final = re.compile(rb"\r\ntraceparent: (00-9{32}-[0-9a-f]{16}-01)\r\n")


class DeploymentPlan:
    """How a deployment is asked for the requests of one head and model.

    Parameters
    ----------
    headers
        The fields of the head.

    Attributes
    ----------
    labels
        The endpoint, the route and the deployment, as series and records name them.
    first_token, total
        Seconds from the request to the first byte and to the end of the answer.
    series
        In which its exchanges are counted, from the first one on.
    """

    __slots__ = ("_after", "_before", "_between", "_ca_file", "_host", "_is_traced", "_key", "_model", "_port",
                 "access", "deployment", "first_token", "is_usable", "labels", "series", "timeouts",
                 "total")  # fmt: skip

    def __init__(
        self,
        gateway: Gateway,
        route: Route,
        deployment: Deployment,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        model: str,
    ) -> None:
        self.deployment = deployment
        self.labels = endpoint.label or endpoint.path, route.model, deployment.name
        self.access = gateway.slots.access(deployment.name, deployment.concurrency)
        self.timeouts = gateway.table.timeouts[deployment.name]
        self.total = self.timeouts.total
        self.first_token = min(self.timeouts.first_token, self.total)
        self.series: ExchangeSeries | None = None
        self._model = deployment.model if deployment.model != model else None
        url = deployment.url(endpoint.path)
        target = parse_url(url)
        self._key: ConnectionKey | None = None if target.secure else (target.host, target.port, None)
        self._host, self._port, self._ca_file = target.host, target.port, deployment.ca_file
        fields = dict(headers)
        if "traceparent" in fields:
            fields["traceparent"] = _TRACE
        fields = upstream_headers(fields, deployment, _ID, gateway.config.gateway.forward_headers)
        written = write_head(target, UpstreamRequest(url, fields, b"", 1.0))
        self._before, _, after = written.partition(_ID.encode())
        #: Whether the request id stands in one place of the head, and its length at the end.
        self.is_usable = after.count(_ID.encode()) == 0 and after.endswith(b"\r\ncontent-length: 0\r\n\r\n")
        after = after.removesuffix(b"0\r\n\r\n")
        trace = _TRACE_LINE.search(after)
        self._is_traced = trace is not None
        self._between, self._after = (after[: trace.start(1)], after[trace.end(1) :]) if trace else (b"", after)

    def pending(self) -> int:
        """Return how many requests the deployment is answering now."""
        return self.access.pending()

    def connection_key(self) -> ConnectionKey:
        """Return where its connections go to."""
        key = self._key
        return (self._host, self._port, tls.context(self._ca_file)) if key is None else key

    def request(self, request_id: str, traceparent: str, body: bytes) -> bytes:
        """Return the whole request to the deployment, which continues the client's trace, if there is one."""
        if self._model is not None:
            body = replace_model(body, self._model)
        between = self._between
        if self._is_traced:
            between += (continued_trace(traceparent) or "").encode()
        return b"%b%b%b%b%d\r\n\r\n%b" % (
            self._before, request_id.encode(), between, self._after, len(body), body
        )  # fmt: skip


class RoutePlan:
    """The route of a model, for the requests of one head.

    Attributes
    ----------
    route
        The route.
    model
        What the requests ask for, as records name it.
    capture
        How much of each exchange is captured, with which probability, or why nothing is; None: its id decides.
    capture_limit
        Bytes of a request or an answer that are copied.
    config_hash
        The configuration's.
    """

    __slots__ = ("_choice", "_only", "capture", "capture_limit", "config_hash", "model", "route")

    def __init__(
        self, gateway: Gateway, endpoint: Endpoint, headers: Mapping[str, str], directives: Directives, model: str
    ) -> None:
        self.route: Route = gateway.table.route(model)
        self.model = model[:200]
        self.capture_limit = gateway.config.gateway.capture_limit
        self.config_hash = gateway.config.config_hash
        plans = [
            DeploymentPlan(gateway, self.route, gateway.table.deployments[entry.name], endpoint, headers, model)
            for entry in self.route.deployments
            if entry.weight > 0
        ]
        weights = {entry.name: entry.weight for entry in self.route.deployments}
        self._only = plans[0] if len(plans) == 1 else None
        self._choice = WeightedChoice([(plan, weights[plan.deployment.name]) for plan in plans])
        decides = endpoint.copied and 0 < self.route.sample < 1
        self.capture = None if decides else endpoint.capture(gateway.config.seed, self.route, directives, "")

    def choose(self) -> DeploymentPlan | None:
        """Choose a deployment; None if the head to it cannot be written by a plan.

        Breakers and concurrency are not looked at: an attempt to take a slot of one that cannot be asked fails, and
        then the ordinary way chooses among the others.
        """
        plan = self._only
        if plan is None:
            plan = self._choice.choose(DeploymentPlan.pending)
        return plan if plan.is_usable else None
