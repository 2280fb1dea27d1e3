"""Why a deployment gave no answer, or not the whole of one: the same words whichever implementation asked."""

from typing import Final, Literal

from gateway.errors import UpstreamFailed

Code = Literal[
    "upstream_connect_timeout", "upstream_tls", "upstream_dns", "upstream_connect",
    "upstream_reset", "upstream_protocol", "upstream_cut",
]  # fmt: skip

_WHY: Final[dict[Code, str]] = {
    "upstream_connect_timeout": "The deployment could not be reached in time.",
    "upstream_tls": "The deployment's TLS certificate was not accepted.",
    "upstream_dns": "The deployment's host name is not known.",
    "upstream_connect": "The deployment could not be reached.",
    "upstream_reset": "The deployment hung up without an answer.",
    "upstream_protocol": "The deployment's answer is not HTTP.",
    "upstream_cut": "The deployment hung up in the middle of its answer.",
}


def failed(code: Code) -> UpstreamFailed:
    """Say it to the client."""
    return UpstreamFailed(_WHY[code], code=code)
