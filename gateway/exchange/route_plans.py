"""Plans of routes: how the deployments of a model are asked for the requests of one head."""

import re
from collections.abc import Mapping
from typing import Final

from auditor.config import Deployment, Route
from auditor.domain.exchange import Origin
from auditor.domain.keys import Key
from gateway.auth import Directives
from gateway.errors import Forbidden, UpstreamFailed
from gateway.exchange.app import Gateway
from gateway.exchange.endpoints import TEXT_ENDPOINTS, Endpoint
from gateway.headers import continued_trace, is_trace, upstream_headers
from gateway.recording.recorder import Recorder
from gateway.recording.telemetry import ExchangeSeries
from gateway.routing.breaker import caller_of
from gateway.routing.slots import DeploymentAccess
from gateway.routing.table import WeightedChoice
from gateway.upstreams.connection import ConnectionKey
from gateway.upstreams.requests import connection_key, parse_url, write_head
from gateway.wire import replace_model

#: Stand for the request id and the trace in the head to a deployment while its plan is made.
_ID: Final = "0-request-id-0"
_TRACE: Final = f"00-{'9' * 32}-{'9' * 16}-01"
_TRACE_LINE: Final = re.compile(rb"\r\ntraceparent: (00-9{32}-[0-9a-f]{16}-01)\r\n")
_LENGTH: Final = b"\r\ncontent-length: 0\r\n\r\n"


class DeploymentPlan:
    """How a deployment is asked for the requests of one head and model.

    Parameters
    ----------
    headers
        The fields of the head.

    Attributes
    ----------
    access
        Access to its slots and its breaker.
    first_token, total
        Seconds from the request to the first byte of a stream, and to the end of the answer.
    series
        Series in which its exchanges are counted, from the first one on.
    """

    __slots__ = ("_after", "_before", "_between", "_headers", "_is_secure", "_is_traced", "_key", "_labels", "_model",
                 "_target", "access", "deployment", "first_token", "series", "timeouts", "total")  # fmt: skip

    def __init__(
        self, gateway: Gateway, deployment: Deployment, endpoint: Endpoint, route: str, headers: Mapping[str, str],
        model: str, access: DeploymentAccess,
    ) -> None:  # fmt: skip
        self.deployment = deployment
        self.access = access
        self.timeouts = gateway.table.timeouts[deployment.name]
        self.total = self.timeouts.total
        self.first_token = min(self.timeouts.first_token, self.total)
        self.series: ExchangeSeries | None = None
        self._labels = endpoint.name, route, deployment.name
        self._model = deployment.model if deployment.model != model else None
        target = self._target = parse_url(deployment.url(endpoint.path))
        self._key = None if target.secure else connection_key(target, None)
        fields = dict(headers)
        if is_trace(fields.get("traceparent", "")):
            fields["traceparent"] = _TRACE
        self._headers = upstream_headers(fields, deployment, _ID, gateway.config.gateway.forward_headers)
        #: The head around the request id, the trace and the length; None: it cannot be split there.
        self._before: bytes | None = None
        self._between = self._after = b""
        self._is_traced = False
        self._split()

    def _split(self) -> None:
        try:
            head = write_head("POST", self._target, self._headers, 0)
        except UpstreamFailed:
            return
        before, _, after = head.partition(_ID.encode())
        if after.count(_ID.encode()) or not after.endswith(_LENGTH):
            return
        after = after.removesuffix(b"0\r\n\r\n")
        trace = _TRACE_LINE.search(after)
        self._before, self._is_traced = before, trace is not None
        self._between, self._after = (after[: trace.start(1)], after[trace.end(1) :]) if trace else (b"", after)

    def pending(self) -> int:
        """Return how many requests the deployment is answering now."""
        return self.access.pending()

    def connection_key(self) -> ConnectionKey:
        """Return where its connections go to.

        Raises
        ------
        UpstreamFailed
            The file with its authority cannot be read.
        """
        key = self._key
        return connection_key(self._target, self.deployment.ca_file) if key is None else key

    def request(self, request_id: str, traceparent: str, body: bytes) -> tuple[bytes, bytes]:
        """Return the head and the body of a request to the deployment, which continues the client's trace, if any.

        Raises
        ------
        UpstreamFailed
            It cannot be written as HTTP.
        """
        if self._model is not None:
            body = replace_model(body, self._model)
        if self._before is None:
            trace = continued_trace(traceparent)
            headers = {name: value.replace(_ID, request_id) for name, value in self._headers.items()}
            fields = headers if trace is None else {**headers, "traceparent": trace}
            return write_head("POST", self._target, fields, len(body)), body
        between = self._between
        if self._is_traced:
            between += (continued_trace(traceparent) or "").encode()
        head = b"%b%b%b%b%d\r\n\r\n" % (self._before, request_id.encode(), between, self._after, len(body))
        return head, body

    def open_series(self, recorder: Recorder, origin: Origin) -> ExchangeSeries:
        """Open the series in which its exchanges are counted."""
        self.series = recorder.series(*self._labels, origin)
        return self.series


class RoutePlan:
    """The route of a model, for the requests of one head.

    Attributes
    ----------
    route
        The route.
    model
        Model that the requests name, as records have it.
    pinned
        The deployment that the head names, if it names one.
    is_client
        Whether the requests are those of an application. Senders of audit traffic retry themselves, and must see each
        failure of a deployment.
    caller
        The number of the caller for circuit breakers.
    in_flight
        The place of the count of such requests that are being answered.
    trial
        The trial of the route that the requests take part in, if there is one.
    sampling
        Capture of each exchange; None if its id decides.
    capture_limit
        Bytes of a request or an answer that are copied.
    config_hash
        Hash of the configuration.
    """

    __slots__ = ("_choice", "_deployments", "_endpoint", "_gateway", "_headers", "_only", "_requested_model",
                 "caller", "capture_limit", "config", "config_hash", "in_flight", "is_client", "model", "pinned",
                 "route", "sampling", "table", "trial")  # fmt: skip

    def __init__(
        self, gateway: Gateway, endpoint: Endpoint, headers: Mapping[str, str], directives: Directives,
        key: Key | None, model: str,
    ) -> None:  # fmt: skip
        """Make the plan.

        Raises
        ------
        NotFound
            There is no such model.
        BadRequest, Forbidden
            There is no deployment of the name that the head names, or the key may not use it.
        """
        self._gateway, self._endpoint, self._headers, self._requested_model = gateway, endpoint, headers, model
        self.config, self.table = gateway.config, gateway.table
        self.route: Route = self.table.route(model)
        self.pinned: DeploymentPlan | None = None
        self.model = model[:200]
        self.is_client = directives.origin is Origin.CLIENT
        self.caller = caller_of(None if key is None else key.id)
        may_take_part = self.is_client and not directives.pin and directives.audit and endpoint.name in TEXT_ENDPOINTS
        self.trial = self.table.trials.get(self.route.model) if may_take_part else None
        self.in_flight = gateway.recorder.counters.place(("biasmeter_in_flight", directives.origin))
        self.capture_limit = self.config.gateway.capture_limit
        self.config_hash = self.config.config_hash
        self._deployments: dict[str, DeploymentPlan] = {}
        if directives.pin is not None:
            self.pinned = self.deployment(_check_pin(gateway, directives.pin, key))
        entries = [entry for entry in self.route.deployments if entry.weight > 0]
        self._only = self.deployment(entries[0].name) if len(entries) == 1 and self.pinned is None else self.pinned
        self._choice = WeightedChoice(
            [
                (
                    gateway.slots.access(entry.name, self.table.deployments[entry.name].concurrency, self.caller),
                    entry.weight,
                )
                for entry in entries
            ]
        )
        decides = endpoint.copied and 0 < self.route.sample < 1
        self.sampling = None if decides else endpoint.capture(self.config.seed, self.route, directives, "")

    def deployment(self, name: str) -> DeploymentPlan:
        """Return the plan of a deployment, of this route or another one."""
        plan = self._deployments.get(name)
        if plan is None:
            deployment = self.table.deployments[name]
            access = self._gateway.slots.access(name, deployment.concurrency, self.caller, counts=self.is_client)
            plan = self._deployments[name] = DeploymentPlan(
                self._gateway,
                deployment,
                self._endpoint,
                self.route.model,
                self._headers,
                self._requested_model,
                access,
            )
        return plan

    def choose(self) -> DeploymentPlan:
        """Choose the deployment that is asked first. Breakers and concurrency are not looked at."""
        if self._only is not None:
            return self._only
        name = self._choice.choose(DeploymentAccess.pending).deployment
        return self._deployments.get(name) or self.deployment(name)


def _check_pin(gateway: Gateway, pin: str, key: Key | None) -> str:
    deployment = gateway.table.pinned(pin)
    if key is not None and key.models and deployment.name not in gateway.table.deployments_of(key.models):
        raise Forbidden(
            "This key may not use this deployment: no model that the key may ask for has it.",
            code="deployment_not_allowed",
            param="x-biasmeter-deployment",
        )
    return deployment.name
