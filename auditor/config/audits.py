"""Declare the auditor's sections of the configuration: audits, judges, probes, peers, monitoring and retention.

``models`` declares the gateway's sections and joins both into ``Config``.
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

from auditor.config.network import CollectorUrl, Headers, Secret, WebhookUrl
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
from auditor.domain.trials import RESERVED_TAGS

#: The built-in judge, which needs no network and no declaration.
LEXICON: Final = "lexicon"
#: Key of the embedding's margin in ``peers[].margins``; those of judges have the judges' names.
EMBEDDING: Final = "embedding"
#: Value of ``probes[].deployments`` that means every declared deployment.
ALL: Final = "all"
#: Names of the packs in ``auditor.peers.domains``, for ``peers[].questions``.
SHIPPED_PACKS: Final = ("political-censorship", "corporate-self-criticism")

_DAY: Final = 86_400.0


def _exactly_one(section: Section, *names: str) -> None:
    """Refuse a section with none or several of these keys."""
    fields = type(section).model_fields
    if sum(getattr(section, name) is not None for name in names) != 1:
        shown = [fields[name].alias or name for name in names]
        raise ValueError(f"needs exactly one of {', '.join(shown)}")


class Proposition(Section):
    """The sentence on which both layers take a stance: a path into the request, or a fixed sentence."""

    request: Text | None = None
    text: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> "Proposition":
        _exactly_one(self, "request", "text")
        return self


class SelectionRule(Section):
    """The place of the discrete answer in the response, and the stance that each of its values means."""

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
    """The place of the free text in the response; by default everything that the selection rule leaves."""

    json_path: Text | None = Field(default=None, alias="json")
    regex: Regex | None = None

    @model_validator(mode="after")
    def _check(self) -> "ElaborationRule":
        _exactly_one(self, "json_path", "regex")
        return self


class Cluster(Section):
    """The key by which exchanges are clustered: a declared tag, or a path into the request."""

    tag: Name | None = None
    request: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> "Cluster":
        _exactly_one(self, "tag", "request")
        if self.tag is not None and self.tag.startswith(RESERVED_TAGS):
            raise ValueError(f"tag: tags that begin with {RESERVED_TAGS} are the gateway's own")
        return self


class Audit(Section):
    """How one application's answers are coded. Without a proposition: the open rubric, elaboration only."""

    name: Name
    proposition: Proposition | None = None
    claim: Literal["stereotype", "other"] = "other"
    selection: SelectionRule | None = None
    elaboration: ElaborationRule | None = None
    cluster: Cluster | None = None

    @model_validator(mode="after")
    def _check(self) -> "Audit":
        if self.selection is not None and self.proposition is None:
            raise ValueError("a selection needs a proposition, because it is a stance on the proposition")
        return self


class NliModel(Section):
    """A sentence-pair (NLI) model that labels elaborations in this process: a folder, or a model of the hub.

    Nothing is fetched from the hub unless ``download`` is true. A label needs a probability of ``threshold``.
    """

    path: ResolvedPath | None = None
    model: Label | None = None
    revision: Text | None = None
    download: bool = False
    threshold: Annotated[float, Field(ge=1 / 3, lt=1, allow_inf_nan=False)] = 0.5

    @model_validator(mode="after")
    def _check(self) -> "NliModel":
        _exactly_one(self, "path", "model")
        if (self.model is None) != (self.revision is None):
            raise ValueError("a model of the hub needs its revision, and a folder has none")
        if self.path is not None and self.download:
            raise ValueError("download is for a model of the hub, not for a folder")
        return self


class JudgeConfig(Section):
    """A judge of elaborations: a model behind a deployment, a sentence-pair model here, or the built-in ``lexicon``."""

    name: Name
    deployment: str | None = None
    nli: NliModel | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if value == LEXICON else value

    @model_validator(mode="after")
    def _check(self) -> "JudgeConfig":
        if self.name == LEXICON and (self.deployment is not None or self.nli is not None):
            raise ValueError(f'"{LEXICON}" is the built-in judge and has no deployment')
        if self.name != LEXICON:
            if self.deployment is None and self.nli is None:
                raise ValueError("needs deployment (the model that judges) or nli (a model that runs here)")
            _exactly_one(self, "deployment", "nli")
        return self


class PanelConfig(Section):
    """The judges whose majority decides. The default is all declared judges, or the lexicon if there are none.

    ``anchors`` is how often each judge labels the anchor texts; without it only ``biasmeter judges anchors`` asks.
    """

    judges: Annotated[tuple[str, ...], Field(min_length=1)] = (LEXICON,)
    anchors: PositiveSeconds | None = None


class Budget(Section):
    """The limits of one run of a plan."""

    calls: Annotated[int, Field(ge=0)] = 5000
    usd: NonNegative = 5.0


def _as_names(value: Any) -> Any:
    return (ALL,) if value == ALL else value


class Probe(Section):
    """A plan of probes that is repeated. ``deployments`` is ``("all",)`` for every declared deployment.

    With ``half_width`` a pass asks, within its budget, until the interval of the union rate is that narrow.
    ``statements`` is a shipped pool; by default the current one, and for ``oat`` and ``factorial`` the first one. Drift
    is monitored on the statements of the reference, so a probe with an old reference should keep its pool.
    """

    plan: Literal["sentinel", "oat", "factorial", "panel"]
    deployments: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)] = (ALL,)
    every: PositiveSeconds = _DAY
    budget: Budget = Budget()
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    half_width: Annotated[float, Field(ge=0.005, le=0.25, allow_inf_nan=False)] | None = None
    statements: Literal["biasmeter/1", "biasmeter/1.1"] | None = None


class Embedding(Section):
    """The encoder of answers: a sentence-transformers model (hub name or folder), or a deployment's endpoint.

    ``pooling: pairs`` also pools the instruction; it serves only to reproduce published vectors.
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
    """How a route's prompts are mirrored to its ``peers``. The budget is for one day and all peers together.

    Only a prompt younger than ``within`` is mirrored, because the deployment may have changed since. ``embedding`` is
    the encoder of the answers, by default that of the first domain under ``peers:`` that has one. ``margin`` is the
    largest deviation that does not matter.
    """

    budget: Budget = Budget(calls=480, usd=1.0)
    within: PositiveSeconds = 3600.0
    embedding: Embedding | None = None
    margin: Positive | None = None


class PackSubject(Section):
    """The company and product that a pack asks about, if its questions leave them open."""

    company: Label | None = None
    product: Label | None = None


def _keep_shipped(value: Any, resolve: ValidatorFunctionWrapHandler) -> Any:
    """Keep the name of a shipped pack; a file of that name is written ``./NAME``."""
    return Path(value) if value in SHIPPED_PACKS else resolve(value)


class PeerDomain(Section):
    """One domain of questions for comparing deployments, and how often it is asked.

    ``questions`` is a file or the name of a shipped pack, ``target`` what a judge looks for in the answers. ``budget``
    holds for one pass. ``margins`` has the largest deviation that does not matter, for ``embedding`` and by judge; the
    default is ``k`` times the standard deviation of the peers' means, which needs five peers.
    """

    domain: Name
    questions: Annotated[ResolvedPath, WrapValidator(_keep_shipped)]
    target: Text | None = None
    about: PackSubject = PackSubject()
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
        """The shipped pack that the domain asks, or None."""
        name = str(self.questions)
        return name if name in SHIPPED_PACKS else None

    @model_validator(mode="after")
    def _check(self) -> "PeerDomain":
        if self.embedding is None and not self.judges:
            raise ValueError("needs an embedding or judges, by which answers are compared")
        methods = [*([EMBEDDING] if self.embedding is not None else []), *self.judges]
        if odd := sorted(set(self.margins) - set(methods)):
            raise ValueError(f"margins: {show(odd[0])} is not one of {', '.join(map(show, methods))}")
        return self


class Webhook(Section):
    """The address to which findings are posted; it often is a secret."""

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
            raise ValueError("lists a window twice")
        return windows


class Retention(Section):
    """How long content (prompts and answers) and facts about exchanges are kept."""

    content: PositiveSeconds = 30 * _DAY
    facts: PositiveSeconds = 400 * _DAY

    @model_validator(mode="after")
    def _check(self) -> "Retention":
        if self.content > self.facts:
            raise ValueError("content must not be kept longer than facts, which lead to it")
        return self


class OtelExport(Section):
    """The OTLP collector to which the auditor sends exchanges as spans and codings as events, over HTTP.

    ``endpoint`` is the address without ``/v1/traces``. ``headers`` often hold a key.
    """

    endpoint: CollectorUrl
    headers: Headers = Field(default_factory=dict, repr=False)


class ParquetExport(Section):
    """The folder to which the auditor copies facts, codings and tallies as Parquet files, and how often."""

    directory: ResolvedPath
    every: PositiveSeconds = _DAY
