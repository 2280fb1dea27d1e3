"""OpenAI's POST endpoints: what differs between them. All share one way (`gateway.exchange.forwarder`)."""

from dataclasses import dataclass
from typing import Final

from auditor.config import Route
from auditor.domain.exchange import Capture, Origin
from auditor.domain.sampling import sampled
from gateway.auth import Directives
from gateway.exchange.sse import DONE, LAST_RESPONSE, StreamTerminator

#: Members are looked up in Python, and each request asks for these.
_CLIENT, _OFF = Origin.CLIENT, Capture.OFF
_CAPTURES = {str(capture): capture for capture in Capture}
#: How much of an exchange is captured, with which probability, and why nothing is; empty: a copy is kept.
Sampling = tuple[Capture, float, str]
_NOT_COPIED: Final[Sampling] = (Capture.OFF, 0.0, "pass_through")
#: Endpoints whose requests may get an instruction.
TEXT_ENDPOINTS: Final = ("chat/completions", "completions", "responses")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A POST endpoint.

    ``path`` follows our ``/v1/`` and a deployment's ``base_url``. ``usage_on_request``: its streams report usage only
    if the request asks for it. ``label`` names it in series and records, if not ``path`` does. ``copied``: whether
    copies of its exchanges may be kept.
    """

    path: str
    ending: StreamTerminator = DONE
    usage_on_request: bool = False
    label: str | None = None
    copied: bool = True

    @property
    def name(self) -> str:
        """Its name in series and records."""
        return self.label or self.path

    def capture(self, seed: int, route: Route, directives: Directives, exchange_id: str) -> Sampling:
        """Decide how much of an exchange is captured and with which probability, or why nothing is."""
        if not self.copied:
            return _NOT_COPIED
        if directives.origin is not _CLIENT:
            return Capture.FULL, 1.0, ""
        capture, sample = _CAPTURES[route.capture], route.sample
        if capture is _OFF:
            return capture, 0.0, "capture_off"
        if not directives.audit:
            return capture, 0.0, "audit_off"
        if sample <= 0 or (sample < 1 and not sampled(seed, bytes.fromhex(exchange_id.replace("-", "")), sample)):
            return capture, 0.0, "not_sampled"
        return capture, sample, ""


ENDPOINTS = (
    Endpoint("chat/completions", usage_on_request=True),
    Endpoint("completions", usage_on_request=True),
    Endpoint("embeddings"),
    Endpoint("responses", LAST_RESPONSE),
)
