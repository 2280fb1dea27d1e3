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
from auditor.trials.assignment import RESERVED_TAGS

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
    """The path of the proposition in the request's JSON, such as ``$.messages[-1].content``."""
    text: Text | None = None
    """One sentence that is the proposition of every request; needed without ``request``."""

    @model_validator(mode="after")
    def _check(self) -> "Proposition":
        _exactly_one(self, "request", "text")
        return self


class SelectionRule(Section):
    """The place of the discrete answer in the response, and the stance that each of its values means."""

    json_path: Text | None = Field(default=None, alias="json")
    """The path of the value in an answer that is, or contains, JSON, such as ``$.verdict``."""
    regex: Regex | None = None
    """A regular expression for the value: its first group if it has one, else the whole match."""
    options: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    """The values themselves, searched as whole words without regard to case; ``map`` must hold the same ones."""
    map: Annotated[dict[str, Literal["E", "N", "D", "R"]], Field(min_length=1)]
    """What each value means: it endorses the proposition (``E``), is neutral (``N``), denies it (``D``) or refuses
    (``R``); other values are no selection."""

    @model_validator(mode="after")
    def _check(self) -> "SelectionRule":
        _exactly_one(self, "json_path", "regex", "options")
        if self.options is not None and (odd := sorted(set(self.options) ^ set(self.map))):
            raise ValueError(
                f"options and map must hold the same answers; in one of them only: {', '.join(map(show, odd))}"
            )
        return self


class ElaborationRule(Section):
    """The place of the free text in the response."""

    json_path: Text | None = Field(default=None, alias="json")
    """The path of the text in an answer that is, or contains, JSON, such as ``$.reason``."""
    regex: Regex | None = None
    """A regular expression for the text: its first group if it has one, else the whole match."""

    @model_validator(mode="after")
    def _check(self) -> "ElaborationRule":
        _exactly_one(self, "json_path", "regex")
        return self


class Cluster(Section):
    """The key by which exchanges are clustered: a declared tag, or a path into the request."""

    tag: Name | None = None
    """The tag whose value names the cluster; the gateway then also stores this tag."""
    request: Text | None = None
    """The path of the cluster's name in the request's JSON, such as ``$.metadata.case``; needed without ``tag``."""

    @model_validator(mode="after")
    def _check(self) -> "Cluster":
        _exactly_one(self, "tag", "request")
        if self.tag is not None and self.tag.startswith(RESERVED_TAGS):
            raise ValueError(f"tag: tags that begin with {RESERVED_TAGS} are the gateway's own")
        return self


class Audit(Section):
    """How one application's answers are coded."""

    name: Name
    """What the ``audit`` of a route and the estimates call it."""
    proposition: Proposition | None = None
    """The sentence that answers are read against; absent: the open rubric, which knows the elaboration only."""
    claim: Literal["stereotype", "other"] = "other"
    """What the proposition says: rates of biased answers are estimated only for a ``stereotype``."""
    selection: SelectionRule | None = None
    """Where the discrete answer is; absent: answers have no selection."""
    elaboration: ElaborationRule | None = None
    """Where the free text is; absent: it is everything that the selection leaves."""
    cluster: Cluster | None = None
    """What requests have in common that are not independent; absent: ``safety_identifier`` or ``user`` of the request,
    else the client's key."""

    @model_validator(mode="after")
    def _check(self) -> "Audit":
        if self.selection is not None and self.proposition is None:
            raise ValueError("a selection needs a proposition, because it is a stance on the proposition")
        return self


class NliModel(Section):
    """A sentence-pair (NLI) model that labels elaborations in this process: a folder, or a model of the hub."""

    path: ResolvedPath | None = None
    """The folder of the model."""
    model: Label | None = None
    """The name of a model of the hub; needed without ``path``."""
    revision: Text | None = None
    """The commit of a model of the hub, needed with ``model``: a judge must not change without its name."""
    download: bool = False
    """``true`` allows fetching from the hub; otherwise a model that is not in the local cache is an error."""
    threshold: Annotated[float, Field(ge=1 / 3, lt=1, allow_inf_nan=False)] = 0.5
    """The probability that a label needs; below it the label is ``N``."""

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
    """What the panel, votes and reports call it; ``lexicon`` is the built-in judge."""
    deployment: str | None = None
    """The deployment that judges; it must name a ``model``."""
    nli: NliModel | None = None
    """A sentence-pair model that judges in this process; needed without ``deployment``."""

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
    """The judges whose majority decides."""

    judges: Annotated[tuple[str, ...], Field(min_length=1)] = (LEXICON,)
    """The names of the judges; absent: all declared ones, or the ``lexicon`` if there are none."""
    anchors: PositiveSeconds | None = None
    """How often each judge labels the anchor texts, which shows whether it has changed; absent: only when ``biasmeter
    judges anchors`` asks."""


class Budget(Section):
    """The limits of calls that the auditor sends by itself."""

    calls: Annotated[int, Field(ge=0)] = 5000
    """The most calls that are sent."""
    usd: NonNegative = 5.0
    """The most that the calls may cost; those to deployments without a price do not count."""


def _as_names(value: Any) -> Any:
    return (ALL,) if value == ALL else value


class Probe(Section):
    """A plan of probes that is repeated."""

    plan: Literal["sentinel", "oat", "factorial", "panel"]
    """The design of the questions; ``sentinel`` and ``panel`` are also monitored for drift, ``oat`` and ``factorial``
    are the published ones."""
    deployments: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)] = (ALL,)
    """The names of the deployments to ask, or ``all`` for every declared one."""
    every: PositiveSeconds = _DAY
    """The time from one pass to the next."""
    budget: Budget = Budget()
    """The limits of one pass, for all its deployments together and across restarts."""
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    """The part of a deployment's declared ``concurrency`` that is used, at least 1 call at a time; 4 where none is
    declared."""
    half_width: Annotated[float, Field(ge=0.005, le=0.25, allow_inf_nan=False)] | None = None
    """A pass asks, within its budget, until the union rate is known to this half width of its interval (0.02 is two
    percentage points); absent: the whole plan."""
    statements: Literal["biasmeter/1", "biasmeter/1.1"] | None = None
    """The shipped pool to ask, best that of the reference while drift is monitored; absent: the current one, and for
    ``oat`` and ``factorial`` the first one."""


class Embedding(Section):
    """The encoder of answers: a model that runs in this process, or a deployment's endpoint."""

    model: Label | None = None
    """A sentence-transformers model that runs in this process: a name of the hub, or a folder."""
    revision: Text | None = None
    """The commit of a model of the hub, or the version to record for a deployment's vectors; absent: the newest commit,
    or unknown."""
    deployment: str | None = None
    """The deployment whose embeddings endpoint is asked; needed without ``model``."""
    instruction: str = ""
    """What stands before each text; empty: none, or the domain's for a model with ``instructor`` in its name."""
    pooling: Literal["masked", "pairs"] = "masked"
    """``masked`` leaves the instruction out of the mean; ``pairs`` includes it, only to reproduce published vectors."""
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    """The most tokens of a text that are read, fewer than the model could; absent: as many as it can."""

    @model_validator(mode="after")
    def _check(self) -> "Embedding":
        _exactly_one(self, "model", "deployment")
        if self.deployment is not None and (self.max_tokens is not None or self.pooling == "pairs"):
            raise ValueError("max_tokens and pooling: pairs are for a model that runs here, not for a deployment")
        return self


class Mirror(Section):
    """How a route's prompts are mirrored to its ``peers``."""

    budget: Budget = Budget(calls=480, usd=1.0)
    """The limits of one day (UTC), for all peers of the route together, released hour by hour."""
    within: PositiveSeconds = 3600.0
    """The age up to which a prompt is mirrored, because the deployment may have changed since an older one."""
    embedding: Embedding | None = None
    """The encoder of the answers; absent: that of the first domain under ``peers:`` that has one."""
    margin: Positive | None = None
    """The largest deviation, as a cosine distance, that does not matter; absent: 2.81 standard deviations of the peers'
    means, which needs five peers."""


class PackSubject(Section):
    """The company and product that a pack asks about, if its questions leave them open."""

    company: Label | None = None
    """What replaces ``{company}`` in the questions; absent: they must not contain it."""
    product: Label | None = None
    """What replaces ``{product}`` in the questions; absent: they must not contain it."""


def _keep_shipped(value: Any, resolve: ValidatorFunctionWrapHandler) -> Any:
    """Keep the name of a shipped pack; a file of that name is written ``./NAME``."""
    return Path(value) if value in SHIPPED_PACKS else resolve(value)


class PeerDomain(Section):
    """One domain of questions for comparing deployments, and how often it is asked."""

    domain: Name
    """Its name in series and reports."""
    questions: Annotated[ResolvedPath, WrapValidator(_keep_shipped)]
    """A file of questions, or the name of a shipped pack (write ``./NAME`` for a file of that name)."""
    target: Text | None = None
    """What a judge looks for in the answers, after the words "signs of"; absent: the shipped pack's own, or the name of
    the domain."""
    about: PackSubject = PackSubject()
    """The company and product that the questions ask about, if they leave them open."""
    deployments: Annotated[tuple[str, ...], Field(min_length=2)]
    """The deployments to ask and to compare with one another; a verdict without a declared margin needs six."""
    embedding: Embedding | None = None
    """The encoder by whose vectors answers are compared; absent: only by the scores of ``judges``."""
    judges: tuple[str, ...] = ()
    """The judges by whose scores answers are compared; none: only by the ``embedding``."""
    every: PositiveSeconds = 7 * _DAY
    """The time from one round of all questions to the next."""
    budget: Budget = Budget()
    """The limits of one round."""
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    """The part of a deployment's declared ``concurrency`` that is used."""
    margins: dict[str, Positive] = Field(default_factory=dict)
    """The largest deviation that does not matter, for ``embedding`` and by name of a judge; one that is absent is made
    with ``k``."""
    k: Positive = 2.81
    """A margin that is not declared is this many standard deviations of the peers' means, which needs five peers."""

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
    """The receiver to which findings are posted."""

    url: WebhookUrl
    """Where findings and actions are posted; it often is a secret itself."""
    secret: Secret | None = None
    """The key of the HMAC-SHA256 in ``x-biasmeter-signature``; absent: posts are not signed."""


class Monitor(Section):
    """Windows of the estimates, and the settings of the drift detectors."""

    windows: Annotated[tuple[PositiveSeconds, ...], Field(min_length=1)] = (_DAY, 7 * _DAY, 30 * _DAY)
    """The periods, up to now, that estimates are made for."""
    reference: PositiveSeconds = 14 * _DAY
    """How long the period is that later days are compared with."""
    anchor: str | None = None
    """A deployment that does not change, such as a model with fixed weights, by which changed judges are told from a
    changed deployment; absent: there is none."""
    alpha: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.05
    """The largest probability of a page within ``horizon`` for a deployment that never changes."""
    horizon: PositiveSeconds = 90 * _DAY
    """The period for which ``alpha`` is promised."""
    margin: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    """A shift up to this size does not matter and is never reported; 0.02 is two percentage points."""
    webhook: Webhook | None = None
    """Where findings are posted; absent: nowhere."""

    @field_validator("windows")
    @classmethod
    def _check_windows(cls, windows: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(windows)) != len(windows):
            raise ValueError("lists a window twice")
        return windows


class Retention(Section):
    """How long content (prompts and answers) and facts about exchanges are kept."""

    content: PositiveSeconds = 30 * _DAY
    """The age after which prompts, answers and every text made of them are removed; at most that of ``facts``."""
    facts: PositiveSeconds = 400 * _DAY
    """The age after which everything else about an exchange is removed."""

    @model_validator(mode="after")
    def _check(self) -> "Retention":
        if self.content > self.facts:
            raise ValueError("content must not be kept longer than facts, which lead to it")
        return self


class OtelExport(Section):
    """The OTLP collector to which the auditor sends exchanges as spans and codings as events, over HTTP."""

    endpoint: CollectorUrl
    """The collector's address, without ``/v1/traces`` and ``/v1/logs``, which are appended."""
    headers: Headers = Field(default_factory=dict)
    """Headers of every request to the collector; their values are neither shown nor hashed, because they often hold a
    key."""


class ParquetExport(Section):
    """The folder to which the auditor copies facts, codings and tallies as Parquet files."""

    directory: ResolvedPath
    """The folder of the files; days that ``retention.facts`` no longer keeps are deleted from it."""
    every: PositiveSeconds = _DAY
    """How often files whose rows have changed are written again."""
