"""Name the guardrails of a LiteLLM file, and what is no longer checked without them. None can be carried over."""

from collections.abc import Iterator
from typing import Any, Final

from auditor.config.litellm.problems import ImportProblems, Severity
from auditor.config.problems import KeyPath
from auditor.config.values import quote

#: What is no longer done, by LiteLLM's ``mode``.
_LOST: Final = {
    "pre_call": "prompts reach the deployment unchecked and unmasked",
    "during_call": "prompts are answered although it would have stopped them",
    "post_call": "answers reach the client unchecked and unmasked",
    "logging_only": "copies are masked by gateway.redact alone",
}
_LOST_ANY: Final = "prompts and answers pass unchecked and unmasked"
#: Callbacks of LiteLLM that check or change requests.
_CALLBACKS: Final = frozenset(
    {
        "aporia_prompt_injection", "azure_content_safety", "banned_keywords", "blocked_user_check",
        "detect_prompt_injection", "google_text_moderation", "hide_secrets", "lakera_prompt_injection",
        "llamaguard_moderations", "llmguard_moderations", "openai_moderations", "presidio",
    }
)  # fmt: skip
_OBSERVES: Final = "captured exchanges go to the store, metrics to /metrics"


def leave_guardrails(data: dict[str, Any], problems: ImportProblems) -> None:
    """Record the guardrails of the section ``guardrails``, and those of ``litellm_settings``."""
    for index, entry in enumerate(problems.items(data, "guardrails")):
        path: KeyPath = ("guardrails", index)
        if not isinstance(entry, dict):
            problems.refuse(path, "must be a mapping with guardrail_name and litellm_params")
            continue
        params = problems.mapping(entry, "litellm_params", path)
        problems.leave(path, f"guardrail {_name(entry.get('guardrail_name'))} is lost: {_consequence(params)}")
    settings = problems.mapping(data, "litellm_settings")
    given = settings.get("guardrails")
    for index, entry in enumerate(given if isinstance(given, list) else []):
        for name in entry if isinstance(entry, dict) else ():
            problems.leave(("litellm_settings", "guardrails", index), f"guardrail {_name(name)} is lost: {_LOST_ANY}")
    for index, name in _callbacks(settings):
        if name in _CALLBACKS:
            problems.leave(("litellm_settings", "callbacks", index), f"{_name(name)} is lost: {_LOST_ANY}")
        else:
            problems.leave(("litellm_settings", "callbacks", index), _OBSERVES, Severity.IGNORED)


def _callbacks(settings: dict[str, Any]) -> Iterator[tuple[int, object]]:
    given = settings.get("callbacks")
    if given is not None:
        yield from enumerate(given if isinstance(given, list) else [given])


def _consequence(params: dict[str, Any]) -> str:
    mode = params.get("mode")
    modes = mode if isinstance(mode, list) else [mode]
    lost = "; ".join(_LOST[one] for one in modes if isinstance(one, str) and one in _LOST) or _LOST_ANY
    always = str(params.get("default_on")).lower() == "true"
    return lost if always else f"{lost}, where a request or a key asks for it"


def _name(name: object) -> str:
    return quote(name) if isinstance(name, str) else "without a name"
