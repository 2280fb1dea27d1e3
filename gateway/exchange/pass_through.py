"""POST endpoints that the gateway does not know: relayed by the ``model`` of their JSON body, and never copied.

Authorisation, limits, routing, retries and metrics are those of the known endpoints (`gateway.exchange.forwarder`).
"""

from auditor.config.values import is_endpoint_path
from gateway.errors import BadRequest
from gateway.exchange.app import Gateway, unknown_url
from gateway.exchange.endpoints import Endpoint
from gateway.exchange.forwarder import Forwarder
from gateway.exchange.sse import UNKNOWN_ENDING
from gateway.http import Request

_PREFIX = "/v1/"
#: The label of all these endpoints in the series, because labels never hold text of a request.
_OTHER = "other"


async def pass_through(gateway: Gateway, forwarder: Forwarder, request: Request) -> None:
    """Forward a POST to an unknown path below ``/v1/``. The query is not forwarded.

    Raises
    ------
    NotFound
        The path is not below ``/v1/``, has escapes or dots before a segment, or is not in ``gateway.other_endpoints``.
    BadRequest
        The body is not JSON, or has no ``model``: nothing says which deployment is meant.
    """
    target = request.target.partition("?")[0]
    path = target.removeprefix(_PREFIX)
    allowed = gateway.config.gateway.other_endpoints
    if path == target or not is_endpoint_path(path) or (allowed != "all" and path not in allowed):
        raise unknown_url(request.path)
    if not _is_json(request.headers.get("content-type")):
        raise BadRequest(
            "This endpoint is relayed for JSON bodies only, because their 'model' chooses the deployment.",
            code="unsupported_content_type",
            param="content-type",
            status=415,
        )
    await forwarder.forward(Endpoint(path, UNKNOWN_ENDING, label=_OTHER, copied=False), request)


def _is_json(content_type: str | None) -> bool:
    kind = (content_type or "application/json").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")
