"""Declare deployments, and the routes that lead to them.

``models`` joins them into ``Config``.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from auditor.config.actions import FindingPolicy
from auditor.config.audits import ALL, Mirror
from auditor.config.network import ApiVersion, BaseUrl, CertificatesFile, HeaderName, Headers, Secret, plain_headers
from auditor.config.trials import MitigationTrial
from auditor.config.values import Label, Name, NonNegative, PositiveSeconds, Section, Share

#: The route for every model that no other route names.
ANY_MODEL: Final = "*"


class Timeouts(Section):
    """How long a request may take at a deployment."""

    connect: PositiveSeconds = 5.0
    """How long name lookup, connection and TLS to a deployment may take; then the request is retried, or fails with
    502."""
    first_token: PositiveSeconds = 60.0
    """How long a stream may take from the request to its first byte; then another deployment is asked, or it fails with
    504."""
    idle: PositiveSeconds = 120.0
    """How long a stream may pause between two pieces, not counting the time of a slow reader; then it ends with an
    error event."""
    total: PositiveSeconds = 900.0
    """How long a whole request may take, waits and retries included; then it fails with 504, or its stream ends with an
    error event."""


class Price(Section):
    """What a deployment's tokens cost."""

    input: NonNegative
    """USD per million tokens of prompts."""
    output: NonNegative
    """USD per million tokens of answers."""


class Deployment(Section):
    """One upstream target: any server that speaks OpenAI's protocol."""

    name: Name
    """What routes, probes, series and reports call it; ``all`` is reserved."""
    base_url: BaseUrl
    """The URL before the endpoint's path, such as ``chat/completions``; one without a path gets ``/v1``."""
    model: Label | None = None
    """The model name that is sent to it; absent: the name that the client used, so judges and encoders need it."""
    api_key: Secret | None = None
    """The key that it is asked with; absent: no key is sent."""
    api_key_header: HeaderName | None = None
    """The header of the key; absent: ``Authorization``, or ``api-key`` with an ``api_version``."""
    api_version: ApiVersion | None = None
    """Azure's version, sent as ``?api-version=``; absent: none is sent."""
    ca_file: CertificatesFile | None = None
    """A file with the certificate authorities (PEM) to trust for it instead of the system's; absent: the system's."""
    stream_usage: bool = True
    """``false`` for a server that refuses ``stream_options``: the tokens of its streams are then not counted."""
    vendor: Label | None = None
    """Who made the model, so that judges of an audited vendor can be told apart; absent: the deployment counts as its
    own vendor."""
    weights: Label | None = None
    """A name for the model's weights; deployments with the same name are compared as hosts of one model."""
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """The most requests that it gets at the same time from this host; others wait, and get 429 at the deadline of their
    first byte; absent: no limit."""
    price: Price | None = None
    """What it costs; absent: costs can be neither estimated nor limited, and it uses nothing of a key's budget."""
    timeouts: Timeouts | None = None
    """Its own timeouts; each that is absent is the gateway's."""
    headers: Headers = Field(default_factory=dict)
    """Headers that are sent with every request; their values are neither shown nor hashed, because they often hold a
    key."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name == ALL:
            raise ValueError(f'"{ALL}" means every deployment and must not be the name of one')
        return name

    def url(self, path: str) -> str:
        """Return the URL of one of its endpoints, such as ``chat/completions``."""
        query = f"?api-version={self.api_version}" if self.api_version else ""
        return f"{self.base_url}/{path}{query}"

    def fixed_headers(self) -> dict[str, str]:
        """Return the headers of every request, names in lower case: its ``headers``, then its key."""
        fixed = {name.lower(): value for name, value in plain_headers(self.headers).items()}
        if self.api_key is None:
            return fixed
        name = self.api_key_header or ("api-key" if self.api_version else "authorization")
        key = self.api_key.get_secret_value()
        return fixed | {name: f"Bearer {key}" if name == "authorization" else key}


class WeightedDeployment(Section):
    """A deployment's share of a route."""

    name: str
    """The name of a declared deployment."""
    weight: NonNegative = 1.0
    """Its part of the route's requests, relative to the other weights; 0 keeps it as a reserve for ``on_finding``."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class Route(Section):
    """A model that applications request, the deployments that answer, and what may be stored, judged and mirrored."""

    model: Label
    """The model that applications ask for; ``*`` stands for every model that no other route names."""
    deployments: Annotated[tuple[WeightedDeployment, ...], Field(min_length=1)]
    """The deployments that answer, each as ``{name, weight}``, or as a bare name with the weight 1."""
    fallbacks: tuple[str, ...] = ()
    """Routes to try, in order, when the deployments of this one fail; the fallbacks of a fallback are not followed."""
    context_window_fallbacks: tuple[str, ...] = ()
    """Routes to try, in order, when a deployment says that the prompt is too long."""
    content_filter_fallbacks: tuple[str, ...] = ()
    """Routes to try, in order, when a deployment's content filter blocks the prompt."""
    fallbacks_for_all_keys: bool = False
    """``true`` lets a key reach the fallbacks also if it may not ask for their models."""
    sample: Share = 1.0
    """The share of clients' exchanges that is kept, by a hash of the seed and the exchange's id; 0 keeps none."""
    capture: Literal["off", "hashed", "full"] = "hashed"
    """What is kept of an exchange: ``off`` nothing, ``hashed`` facts and hashes, ``full`` also the text, without which
    nothing can be coded."""
    judge: bool = False
    """``true`` allows judges and encoders over the network to read the route's prompts and answers; without it they
    label and compare none of them."""
    peers: tuple[str, ...] = ()
    """Deployments, or routes for each of their deployments, to which sampled prompts are mirrored; none: no prompt is
    sent to a peer."""
    mirror: Mirror = Mirror()
    """How many of the prompts are mirrored to the ``peers``, and how the answers are compared."""
    audit: str | None = None
    """The entry of ``audits`` by which the answers are read; absent: they are not coded."""
    on_finding: tuple[FindingPolicy, ...] = ()
    """What findings about its deployments do to the route; none: nothing acts."""
    mitigation: MitigationTrial | None = None
    """A trial of instructions that a share of its users or conversations gets; absent: every request is forwarded as it
    came."""

    @field_validator("deployments")
    @classmethod
    def _check_weights(cls, deployments: tuple[WeightedDeployment, ...]) -> tuple[WeightedDeployment, ...]:
        if not any(deployment.weight for deployment in deployments):
            raise ValueError("at least one weight must be greater than 0")
        return deployments

    @model_validator(mode="after")
    def _check_policies(self) -> "Route":
        seen = set()
        for policy in self.on_finding:
            if policy.action == "shift_weight" and len(self.deployments) == 1:
                raise ValueError(
                    "on_finding: shift_weight needs a second deployment of the route (weight: 0 is enough)"
                )
            if (policy.level, policy.action) in seen:
                raise ValueError(f"on_finding has two entries for {policy.level} and {policy.action}")
            seen.add((policy.level, policy.action))
        return self

    @model_validator(mode="after")
    def _check_mitigation(self) -> "Route":
        if self.mitigation is not None and (self.audit is None or self.capture != "full" or not self.sample):
            raise ValueError("mitigation needs an audit, capture: full and a sample: its arms are compared by answers")
        return self
