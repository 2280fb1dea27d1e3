"""Declare deployments, and the routes that lead to them.

``models`` joins them into ``Config``.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from auditor.config.actions import FindingPolicy
from auditor.config.audits import ALL, Mirror
from auditor.config.mitigation import MitigationTrial
from auditor.config.network import ApiVersion, BaseUrl, CertificatesFile, HeaderName, Headers, Secret
from auditor.config.values import Label, Name, NonNegative, PositiveSeconds, Section, Share

#: The route for every model that no other route names.
ANY_MODEL: Final = "*"


class Timeouts(Section):
    """Timeouts in seconds: ``first_token`` and ``idle`` for streams, ``total`` for unary calls and whole streams."""

    connect: PositiveSeconds = 5.0
    first_token: PositiveSeconds = 60.0
    idle: PositiveSeconds = 120.0
    total: PositiveSeconds = 900.0


class Price(Section):
    """The price in USD per million tokens."""

    input: NonNegative
    output: NonNegative


class Deployment(Section):
    """One upstream target. ``model: None`` sends the requested model; without a key no Authorization is sent.

    ``api_version`` is Azure's: it is sent as ``?api-version=``, and the key then goes into the header ``api-key``.
    ``api_key_header`` names another header for the key. ``ca_file`` holds the certificate authorities (PEM) to trust
    instead of the system's. ``stream_usage: false`` is for servers that refuse ``stream_options``. Each of
    ``timeouts`` replaces the gateway's: see ``Config.timeouts_for``.
    """

    name: Name
    base_url: BaseUrl
    model: Label | None = None
    api_key: Secret | None = None
    api_key_header: HeaderName | None = None
    api_version: ApiVersion | None = None
    ca_file: CertificatesFile | None = None
    stream_usage: bool = True
    vendor: Label | None = None
    weights: Label | None = None
    concurrency: Annotated[int, Field(ge=1)] | None = None
    price: Price | None = None
    timeouts: Timeouts | None = None
    # Headers often hold a key, so their values are neither shown nor hashed.
    headers: Headers = Field(default_factory=dict, repr=False)

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
        fixed = {name.lower(): value for name, value in self.headers.items()}
        if self.api_key is None:
            return fixed
        name = self.api_key_header or ("api-key" if self.api_version else "authorization")
        key = self.api_key.get_secret_value()
        return fixed | {name: f"Bearer {key}" if name == "authorization" else key}


class WeightedDeployment(Section):
    """A deployment's share of a route; a bare name has weight 1."""

    name: str
    weight: NonNegative = 1.0

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class Route(Section):
    """A model that applications request, the deployments that answer, and what may be stored, judged and mirrored.

    ``fallbacks`` names the routes to try, in order, when the deployments of this one fail;
    ``context_window_fallbacks`` those for a request that is too long, ``content_filter_fallbacks`` those for a blocked
    one. The fallbacks of a fallback are not followed. A key that may not ask for the model of a fallback does not reach
    it, unless ``fallbacks_for_all_keys`` is true. ``on_finding``: what findings about its deployments do to it.
    ``mitigation``: instructions that a share of its requests gets.
    """

    model: Label
    deployments: Annotated[tuple[WeightedDeployment, ...], Field(min_length=1)]
    fallbacks: tuple[str, ...] = ()
    context_window_fallbacks: tuple[str, ...] = ()
    content_filter_fallbacks: tuple[str, ...] = ()
    fallbacks_for_all_keys: bool = False
    sample: Share = 1.0
    capture: Literal["off", "hashed", "full"] = "hashed"
    judge: bool = False
    peers: tuple[str, ...] = ()
    mirror: Mirror = Mirror()
    audit: str | None = None
    on_finding: tuple[FindingPolicy, ...] = ()
    mitigation: MitigationTrial | None = None

    @field_validator("deployments")
    @classmethod
    def _check_weights(cls, deployments: tuple[WeightedDeployment, ...]) -> tuple[WeightedDeployment, ...]:
        if not any(one.weight for one in deployments):
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
