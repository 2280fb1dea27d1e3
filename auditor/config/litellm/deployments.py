"""Convert an entry of ``model_list`` into a deployment, with what LiteLLM knows about its provider."""

import re
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from auditor.config.audits import ALL
from auditor.config.litellm.problems import ImportProblems, Severity
from auditor.config.litellm.values import (
    COUNT,
    HEADERS,
    LABEL,
    SECONDS,
    URL,
    VERSION,
    Variables,
    fits,
    per_million,
    plain,
    reference,
)
from auditor.config.problems import KeyPath
from auditor.config.values import quote


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """A provider that can be a deployment.

    Parameters
    ----------
    base_url
        Base URL of the provider; None if only ``api_base`` names it.
    key
        The variable that LiteLLM reads without an ``api_key``; None if it then sends no key.
    native
        Whether LiteLLM uses the provider's own protocol, so that an ``api_base`` has not OpenAI's.
    prefix
        Prefix that LiteLLM adds to a model's name.
    """

    base_url: str | None = None
    key: str | None = None
    native: bool = False
    prefix: str = ""


_OPENAI: Final = Provider(base_url="https://api.openai.com/v1", key="OPENAI_API_KEY")
_ANY_SERVER: Final = Provider()
_OLLAMA: Final = Provider(base_url="http://localhost:11434/v1")

AZURE: Final = "azure"

PROVIDERS: Final = {
    AZURE: Provider(key="AZURE_API_KEY"),
    "openai": _OPENAI,
    "text-completion-openai": _OPENAI,
    "custom_openai": _ANY_SERVER,
    "openai_like": _ANY_SERVER,
    "litellm_proxy": _ANY_SERVER,
    "hosted_vllm": _ANY_SERVER,
    "vllm": _ANY_SERVER,
    "llamafile": Provider(base_url="http://127.0.0.1:8080/v1"),
    "lm_studio": _ANY_SERVER,
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    "anthropic": Provider(base_url="https://api.anthropic.com/v1", key="ANTHROPIC_API_KEY", native=True),
    "cerebras": Provider(base_url="https://api.cerebras.ai/v1", key="CEREBRAS_API_KEY"),
    "deepseek": Provider(base_url="https://api.deepseek.com/v1", key="DEEPSEEK_API_KEY"),
    "fireworks_ai": Provider(
        base_url="https://api.fireworks.ai/inference/v1",
        key="FIREWORKS_AI_API_KEY",
        prefix="accounts/fireworks/models/",
    ),
    "gemini": Provider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai", key="GEMINI_API_KEY", native=True
    ),
    "groq": Provider(base_url="https://api.groq.com/openai/v1", key="GROQ_API_KEY"),
    "mistral": Provider(base_url="https://api.mistral.ai/v1", key="MISTRAL_API_KEY"),
    "nvidia_nim": Provider(base_url="https://integrate.api.nvidia.com/v1", key="NVIDIA_NIM_API_KEY"),
    "openrouter": Provider(base_url="https://openrouter.ai/api/v1", key="OPENROUTER_API_KEY"),
    "sambanova": Provider(base_url="https://api.sambanova.ai/v1", key="SAMBANOVA_API_KEY"),
    "together_ai": Provider(base_url="https://api.together.xyz/v1", key="TOGETHERAI_API_KEY"),
    "xai": Provider(base_url="https://api.x.ai/v1", key="XAI_API_KEY"),
}

_SIGNED: Final = "its requests are signed with a cloud account's credentials; a deployment needs a key"
#: The consequence of ``ssl_verify: false``.
UNVERIFIED: Final = (
    "certificates are always checked: a deployment with one of your own authority gets 502 until its ca_file names it"
)
#: Reasons why providers cannot be carried over, if they are known.
WITHOUT: Final = {
    "bedrock": _SIGNED,
    "bedrock_converse": _SIGNED,
    "sagemaker": _SIGNED,
    "sagemaker_chat": _SIGNED,
    "vertex_ai": _SIGNED,
    "vertex_ai_beta": _SIGNED,
    "perplexity": "its chat endpoint has no path before /chat/completions, and a base_url without one means /v1",
    "os.environ": "the model is in a variable, so its provider is not known",
}


def split_model(model: str, provider: str | None) -> tuple[str, str]:
    """Split ``provider/name`` as LiteLLM does; a name alone is OpenAI's, or Anthropic's if it is a Claude."""
    if provider is not None:
        return provider, model.removeprefix(f"{provider}/")
    before, slash, name = model.partition("/")
    if slash:
        return before, name
    return ("anthropic" if model.startswith("claude") else "openai"), model


T = TypeVar("T")
Params = dict[str, Any]

_PRICES: Final = {"input": "input_cost_per_token", "output": "output_cost_per_token"}
_CARRIED: Final = frozenset(
    {
        "model", "custom_llm_provider", "api_base", "base_url", "api_key", "api_version", "organization", "headers",
        "extra_headers", "timeout", "stream_timeout", "max_parallel_requests", "weight", "rpm", "tpm",
        "ssl_verify", "guardrails",
        *_PRICES.values(),
    }
)  # fmt: skip
#: Headers with values that are not secret. Values of others may be, and are not copied.
_HARMLESS: Final = frozenset({"http-referer", "x-title", "user-agent", "openai-beta", "anthropic-beta"})
#: API version of an Azure deployment that names none: the oldest supported general release.
_AZURE_VERSION: Final = "2024-10-21"
_AZURE_V1: Final = frozenset({"v1", "latest", "preview"})


class DeploymentReader:
    """Read entries one after another, and give each a unique name."""

    def __init__(self, problems: ImportProblems, variables: Variables) -> None:
        self._problems = problems
        self._variables = variables
        self._names: set[str] = {ALL}

    def read(self, params: Params, info: Params, path: KeyPath) -> Params | None:
        """Return the row for ``litellm_params`` (at ``path``) and ``model_info``; None if it cannot be a deployment."""
        name, model = split_model(params["model"], params.get("custom_llm_provider"))
        provider = PROVIDERS.get(name)
        if provider is None:
            unknown = "if it has OpenAI's protocol, write a row for it by hand"
            self._problems.leave(
                (*path, "model"), f"provider {quote(name)}: {WITHOUT.get(name, unknown)}", Severity.BREAKS
            )
            return None
        model = model if model.startswith(provider.prefix) else provider.prefix + model
        if model != "*" and fits(LABEL, model) is None:
            self._problems.leave((*path, "model"), "the name is not valid for a model here", Severity.BREAKS)
            return None
        row: Params = {"name": self._name(params["model"])}
        place = self._azure(params, path, row["name"], model) if name == AZURE else self._place(params, path, provider)
        if place is None:
            return None
        row |= place if model == "*" else {"model": model} | place
        row |= self._key(params, path, row["name"], provider)
        row |= self._limits(params, path) | self._price(params, info, path) | self._headers(params, path, row["name"])
        if str(params.get("ssl_verify")).lower() == "false":
            self._problems.leave((*path, "ssl_verify"), UNVERIFIED, Severity.BREAKS)
        for name in self._problems.items(params, "guardrails", path):
            self._problems.leave((*path, "guardrails"), f"guardrail {quote(str(name))} is lost for this deployment")
        self._problems.leave_rest(params, path, _CARRIED)
        return row

    def _name(self, model: str) -> str:
        """Name a deployment after its model, as ``azure/gpt-4o``; others of that name are numbered."""
        stem = re.sub(r"[^A-Za-z0-9._:/-]+", "-", model.removesuffix("/*"))[:56].strip("-/") or "any"
        name, count = stem, 2
        while name in self._names:
            name, count = f"{stem}-{count}", count + 1
        self._names.add(name)
        return name

    def _place(self, params: Params, path: KeyPath, provider: Provider) -> Params | None:
        key = "base_url" if params.get("api_base") is None else "api_base"
        address = params.get(key)
        if address is None:
            if provider.base_url is None:
                self._problems.leave(
                    (*path, "model"), "neither the provider nor an api_base gives a URL", Severity.BREAKS
                )
                return None
            return {"base_url": provider.base_url}
        if provider.native:
            self._problems.leave((*path, key), "leads to the provider's own protocol, not to OpenAI's", Severity.BREAKS)
            return None
        if (variable := reference(address)) is not None:
            return {"base_url": variable}
        if (url := fits(URL, address)) is None:
            self._problems.leave(
                (*path, key), "is not a base_url (a URL with a host, without user, password or query)", Severity.BREAKS
            )
            return None
        if url != address.rstrip("/"):
            self._problems.leave((*path, key), "has no path: requests go to /v1 below it", Severity.IGNORED)
        return {"base_url": url}

    def _azure(self, params: Params, path: KeyPath, name: str, model: str) -> Params | None:
        address, version = params.get("api_base"), params.get("api_version")
        v1 = version in _AZURE_V1 or (address or "").rstrip("/").endswith("/openai/v1")
        if model == "*" and not v1:
            self._problems.leave(
                (*path, "model"), "an Azure deployment's name is part of its URL: name each", Severity.BREAKS
            )
            return None
        below = "/openai/v1" if v1 else f"/openai/deployments/{model}"
        how = {"api_key_header": "api-key"} if v1 else self._version(version, path)
        if address is None or reference(address):
            set_to = address.removeprefix("os.environ/") if address else "AZURE_API_BASE"
            variable = self._variables.stand_in(set_to + below, name, "base_url")
            self._problems.leave(
                (*path, "api_base"), f"set {variable} to the value of {set_to} followed by {below}", Severity.BREAKS
            )
            return {"base_url": f"${{{variable}}}", **how}
        resource = address.rstrip("/").removesuffix("/v1").removesuffix(below).removesuffix("/openai").rstrip("/")
        url = fits(URL, resource + below)
        if url is None:
            self._problems.leave((*path, "api_base"), "is not a URL without user, password and query", Severity.BREAKS)
            return None
        return {"base_url": url, **how}

    def _version(self, version: str | None, path: KeyPath) -> Params:
        if version is None:
            self._problems.leave((*path, "api_version"), f"is missing, so {_AZURE_VERSION} is written")
        elif variable := reference(version):
            return {"api_version": variable}
        elif fits(VERSION, version) is None:
            self._problems.leave(
                (*path, "api_version"), f"is not a version of Azure's API, so {_AZURE_VERSION} is written"
            )
        else:
            return {"api_version": version}
        return {"api_version": _AZURE_VERSION}

    def _key(self, params: Params, path: KeyPath, name: str, provider: Provider) -> Params:
        key = params.get("api_key")
        if not key:
            elsewhere = params.get("api_base") or params.get("base_url")
            if provider.key is None or (elsewhere and provider is not PROVIDERS[AZURE]):
                return {}  # a provider's key is not sent to whoever else is named
            return {"api_key": f"${{{provider.key}}}"}
        return {"api_key": reference(key) or self._hide(key, (*path, "api_key"), name, "api_key")}

    def _hide(self, secret: str, path: KeyPath, *words: str) -> str:
        variable = self._variables.stand_in(secret, *words)
        self._problems.leave(path, f"a secret in the file is not copied: set {variable} to it", Severity.BREAKS)
        return f"${{{variable}}}"

    def _limits(self, params: Params, path: KeyPath) -> Params:
        timeouts = {
            ours: plain(seconds)
            for theirs, ours in (("timeout", "total"), ("stream_timeout", "first_token"))
            if (seconds := self._number(SECONDS, params, theirs, path)) is not None
        }
        concurrency = self._number(COUNT, params, "max_parallel_requests", path)
        for key in ("rpm", "tpm"):
            if params.get(key) is not None:
                self._problems.leave((*path, key), f"limits belong to client keys: biasmeter key create --{key}")
        limits = {"timeouts": timeouts or None, "concurrency": concurrency}
        return {name: value for name, value in limits.items() if value is not None}

    def _number(self, adapter: TypeAdapter[T], params: Params, key: str, path: KeyPath) -> T | None:
        if params.get(key) is None:
            return None
        value = fits(adapter, params[key])
        if value is None:
            self._problems.leave((*path, key), "is not a valid number here")
        return value

    def _price(self, params: Params, info: Params, path: KeyPath) -> Params:
        prices: Params = {}
        for side, key in _PRICES.items():
            here = (*path, key) if params.get(key) is not None else (*path[:-1], "model_info", key)
            amount = params.get(key) or info.get(key)
            price = per_million(amount)
            if price is not None:
                prices[side] = price
            elif amount is not None:
                self._problems.leave(here, "is not a price")
        if len(prices) == 1:
            (side,) = prices
            self._problems.leave((*path, _PRICES[side]), "a price needs both values, for input and for output")
        return {"price": prices} if len(prices) == 2 else {}

    def _headers(self, params: Params, path: KeyPath, name: str) -> Params:
        headers: dict[str, str] = {}
        for section in ("headers", "extra_headers"):
            for header, value in self._problems.mapping(params, section, path).items():
                here = (*path, section, header)
                if not isinstance(value, str) or fits(HEADERS, {header: "x"}) is None:
                    self._problems.leave(here, "is not a header")
                elif variable := reference(value):
                    headers[header] = variable
                elif header.lower() in _HARMLESS and "${" not in value and fits(HEADERS, {header: value}) is not None:
                    headers[header] = value
                else:
                    headers[header] = self._hide(value, here, name, header)
        if (organization := params.get("organization")) is not None:
            hidden = reference(organization)
            headers["OpenAI-Organization"] = hidden or self._hide(organization, (*path, "organization"), name, "org")
        return {"headers": headers} if headers else {}
