"""The auditor's half of the configuration: how answers are read, who judges, what is probed, watched and kept.

``models`` joins it with the gateway's half into one ``Config``.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from auditor.config.network import Secret, WebhookUrl
from auditor.config.values import (
    Label,
    Name,
    NonNegative,
    Positive,
    PositiveSeconds,
    Regex,
    ResolvedPath,
    Section,
    Text,
    show,
)

#: The judge that needs no network: always there, declared or not.
LEXICON: Final = "lexicon"
#: In ``peers[].margins``: the embedding's; those of judges go by their names.
EMBEDDING: Final = "embedding"
#: In ``probes[].deployments``: every declared deployment.
ALL: Final = "all"
#: In ``peers[].questions``: the packs that come with this release (``auditor.peers.domains`` has them).
SHIPPED_PACKS: Final = ("political-censorship", "corporate-self-criticism")

_DAY: Final = 86_400.0


def _exactly_one(section: Section, *names: str) -> None:
    """Refuse a section that names none or several of these keys."""
    fields = type(section).model_fields
    if sum(getattr(section, name) is not None for name in names) != 1:
        shown = [fields[name].alias or name for name in names]
        raise ValueError(f"needs exactly one of {', '.join(shown)}")


class Proposition(Section):
    """What both layers take a stance on: a path into the request, or one fixed sentence."""

    request: Text | None = None
    text: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> "Proposition":
        _exactly_one(self, "request", "text")
        return self


class SelectionRule(Section):
    """Where the discrete answer stands in the response, and which stance each of its values means."""

    json_path: Text | None = Field(default=None, alias="json")
    regex: Regex | None = None
    options: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    map: Annotated[dict[str, Literal["E", "N", "D", "R"]], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "SelectionRule":
        _exactly_one(self, "json_path", "regex", "options")
        if self.options is not None and (odd := sorted(set(self.options) ^ set(self.map))):
            raise ValueError(
                f"options and map must hold the same answers; in one of them only: {', '.join(map(show, odd))}"
            )
        return self


class ElaborationRule(Section):
    """Where the free text stands in the response. Without it: all that the selection rule leaves."""

    json_path: Text | None = Field(default=None, alias="json")
    regex: Regex | None = None

    @model_validator(mode="after")
    def _check(self) -> "ElaborationRule":
        _exactly_one(self, "json_path", "regex")
        return self


class Cluster(Section):
    """What makes exchanges belong together: a declared tag, or a path into the request (never the request itself)."""

    tag: Name | None = None
    request: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> "Cluster":
        _exactly_one(self, "tag", "request")
        return self


class Audit(Section):
    """How one application's answers are read. Without a proposition: the open rubric, elaboration only."""

    name: Name
    proposition: Proposition | None = None
    claim: Literal["stereotype", "other"] = "other"
    selection: SelectionRule | None = None
    elaboration: ElaborationRule | None = None
    cluster: Cluster | None = None

    @model_validator(mode="after")
    def _check(self) -> "Audit":
        if self.selection is not None and self.proposition is None:
            raise ValueError("has a selection but no proposition: there is nothing for it to be a stance on")
        return self


class Judge(Section):
    """A language model that reads elaborations, reached through a deployment; or ``lexicon``, which needs none."""

    name: Name
    deployment: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if value == LEXICON else value

    @model_validator(mode="after")
    def _check(self) -> "Judge":
        if self.name == LEXICON and self.deployment is not None:
            raise ValueError(f'"{LEXICON}" is the built-in judge and has no deployment')
        if self.name != LEXICON and self.deployment is None:
            raise ValueError("needs the deployment it is reached through")
        return self


class Panel(Section):
    """The judges whose majority decides. Unless given: all declared judges, or the lexicon where there is none.

    ``anchors`` is how often each of them is asked the anchor texts; without it only ``tiltmeter judges anchors`` asks.
    """

    judges: Annotated[tuple[str, ...], Field(min_length=1)] = (LEXICON,)
    anchors: PositiveSeconds | None = None


class Budget(Section):
    """The most that one run of a plan may use."""

    calls: Annotated[int, Field(ge=0)] = 5000
    usd: NonNegative = 5.0


def _as_names(value: Any) -> Any:
    return (ALL,) if value == ALL else value


class Probe(Section):
    """A plan of probes sent again and again. ``deployments`` is ``("all",)`` for every declared deployment.

    With ``half_width`` a pass asks, within its budget, until the union rate is known so well; otherwise all it plans.
    """

    plan: Literal["sentinel", "oat", "factorial", "panel"]
    deployments: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)] = (ALL,)
    every: PositiveSeconds = _DAY
    budget: Budget = Budget()
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    half_width: Annotated[float, Field(ge=0.005, le=0.25, allow_inf_nan=False)] | None = None


class Embedding(Section):
    """What turns answers into vectors: a sentence-transformers model (hub name or folder), or a deployment's endpoint.

    ``pooling: pairs`` pools the instruction in, which only serves to reproduce published vectors.
    """

    model: Label | None = None
    revision: Text | None = None
    deployment: str | None = None
    instruction: str = ""
    pooling: Literal["masked", "pairs"] = "masked"
    max_tokens: Annotated[int, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _check(self) -> "Embedding":
        _exactly_one(self, "model", "deployment")
        if self.deployment is not None and (self.max_tokens is not None or self.pooling == "pairs"):
            raise ValueError("max_tokens and pooling: pairs are for a model that runs here, not for a deployment")
        return self


class Mirror(Section):
    """How far a route's prompts go to its ``peers``. The budget is a day's, for all of them together.

    Only a prompt younger than ``within`` is mirrored: later, the peers would be compared with a deployment of the past.
    ``embedding`` is what the answers are compared by; without it, that of the first domain under ``peers:`` that has
    one. ``margin`` is the largest deviation that does not matter.
    """

    budget: Budget = Budget(calls=480, usd=1.0)
    within: PositiveSeconds = 3600.0
    embedding: Embedding | None = None
    margin: Positive | None = None


class About(Section):
    """Whom a pack asks about, where its questions leave that open."""

    company: Label | None = None
    product: Label | None = None


def _keep_shipped(value: Any, resolve: ValidatorFunctionWrapHandler) -> Any:
    """Leave the name of a shipped pack as it is; a file of that name is written ``./NAME``."""
    return Path(value) if value in SHIPPED_PACKS else resolve(value)


class PeerDomain(Section):
    """One domain of questions that deployments are compared on, and how often they are asked.

    ``questions`` is a file or the name of a shipped pack, ``target`` what a judge looks for in the answers. ``budget``
    holds for one pass. ``margins`` has the largest deviation that does not matter, for ``embedding`` and by judge;
    where there is none, it is ``k`` times the standard deviation of the peers' means, which takes five peers.
    """

    domain: Name
    questions: Annotated[ResolvedPath, WrapValidator(_keep_shipped)]
    target: Text | None = None
    about: About = About()
    deployments: Annotated[tuple[str, ...], Field(min_length=2)]
    embedding: Embedding | None = None
    judges: tuple[str, ...] = ()
    every: PositiveSeconds = 7 * _DAY
    budget: Budget = Budget()
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    margins: dict[str, Positive] = Field(default_factory=dict)
    k: Positive = 2.81

    @property
    def shipped(self) -> str | None:
        """The shipped pack that it asks, if it does."""
        name = str(self.questions)
        return name if name in SHIPPED_PACKS else None

    @model_validator(mode="after")
    def _check(self) -> "PeerDomain":
        if self.embedding is None and not self.judges:
            raise ValueError("needs an embedding or judges to compare answers by")
        methods = [*([EMBEDDING] if self.embedding is not None else []), *self.judges]
        if odd := sorted(set(self.margins) - set(methods)):
            raise ValueError(
                f"margins: {show(odd[0])} compares nothing here; what does: {', '.join(map(show, methods))}"
            )
        return self


class Webhook(Section):
    """Where findings are posted. The address itself often is a secret."""

    url: WebhookUrl
    secret: Secret | None = None


class Monitor(Section):
    """Windows, reference period, promised false-alarm rate and margin of the drift detectors."""

    windows: Annotated[tuple[PositiveSeconds, ...], Field(min_length=1)] = (_DAY, 7 * _DAY, 30 * _DAY)
    reference: PositiveSeconds = 14 * _DAY
    anchor: str | None = None
    alpha: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.05
    horizon: PositiveSeconds = 90 * _DAY
    margin: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    webhook: Webhook | None = None

    @field_validator("windows")
    @classmethod
    def _check_windows(cls, windows: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(windows)) != len(windows):
            raise ValueError("names a window twice")
        return windows


class Retention(Section):
    """How long prompts and answers, and the facts about exchanges, are kept."""

    content: PositiveSeconds = 30 * _DAY
    facts: PositiveSeconds = 400 * _DAY

    @model_validator(mode="after")
    def _check(self) -> "Retention":
        if self.content > self.facts:
            raise ValueError("content cannot be kept longer than facts: it is found through them")
        return self
