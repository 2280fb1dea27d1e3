"""Five files as teams have them: what breaks traffic is said first, and every consequence is named."""

import re
from pathlib import Path

import pytest

from auditor.config import Config, loads
from auditor.config.litellm import Imported, Severity, convert

#: What must never be seen again.
SECRET = "hush-hush"
FILES = Path(__file__).parent / "litellm"
BREAKS, CHANGES, IGNORED = Severity


def imported(name: str) -> tuple[Config, Imported]:
    made = convert((FILES / f"{name}.yaml").read_text(), f"{name}.yaml")
    environ = dict.fromkeys(re.findall(r"\$\{(\w+)\}", made.text), "sk-from-environment")
    return loads(made.text, source="biasmeter.yaml", folder=Path("/"), environ=environ).config, made


def listed(made: Imported, severity: Severity) -> dict[str, str]:
    return {one.at.split(": ", 1)[1]: one.why for one in made.not_carried if one.severity is severity}


def weights(config: Config, model: str) -> dict[str, float]:
    (route,) = [one for one in config.routes if one.model == model]
    return {one.name: one.weight for one in route.deployments}


@pytest.mark.parametrize("name", ["azure_fleet", "startup", "on_premises", "regulated", "grown"])
def test_each_loads_without_a_secret_and_lists_the_worst_first(name: str) -> None:
    _, made = imported(name)
    assert SECRET not in str(made)
    order = [list(Severity).index(one.severity) for one in made.not_carried]
    assert order == sorted(order)
    assert set(order) >= {0, 1}


def test_a_fleet_on_azure() -> None:
    config, made = imported("azure_fleet")
    assert weights(config, "gpt-4o") == {"azure/gpt-4o-eu": 900, "azure/gpt-4o-us": 300}
    assert config.routes[0].context_window_fallbacks == ("gpt-4o-long",)
    assert list(listed(made, BREAKS)) == ["general_settings.master_key"]
    changed = listed(made, CHANGES)
    assert changed["model_list[3].litellm_params.api_version"].startswith("is missing")
    assert {"router_settings.routing_strategy", "router_settings.redis_host", "router_settings.cooldown_time"} < set(
        changed
    )
    ignored = {"model_list[0].model_info.id", "model_list[3].model_info.mode", "litellm_settings.request_timeout",
               "litellm_settings.set_verbose", "general_settings.database_url"}  # fmt: skip
    assert ignored < set(listed(made, IGNORED))


def test_wildcards_fall_through_and_say_so() -> None:
    config, made = imported("startup")
    assert [one.model for one in config.routes] == ["*", "chat"]
    broken = listed(made, BREAKS)
    assert "also a misspelt one, is sent to openai" in broken["model_list[0].model_name"]
    assert "requests for anthropic/* fall through to the route *" in broken["model_list[1].model_name"]
    assert "set OPENAI_API_KEY_2 to it" in broken["model_list[0].litellm_params.api_key"]
    assert "environment_variables.OPENAI_API_KEY" in broken  # the route chat needs it
    assert "environment_variables.LANGFUSE_PUBLIC_KEY" in listed(made, IGNORED)
    assert "paid" in listed(made, CHANGES)["litellm_settings.cache"]
    assert "400" in listed(made, CHANGES)["litellm_settings.drop_params"]


def test_servers_of_one_s_own() -> None:
    config, made = imported("on_premises")
    assert set(weights(config, "llama").values()) == {1}
    broken = listed(made, BREAKS)
    assert "ca_file" in broken["model_list[1].litellm_params.ssl_verify"]
    assert "415" in broken["model_list[3].model_info.mode"]
    assert "router_settings.retry_after" in listed(made, CHANGES)
    assert "general_settings.background_health_checks" in listed(made, IGNORED)


def test_lost_guardrails_and_providers_are_named_with_their_consequence() -> None:
    config, made = imported("regulated")
    assert [one.model for one in config.routes] == ["advice", "*", "adviser"]
    broken, changed = listed(made, BREAKS), listed(made, CHANGES)
    assert broken["model_list[2].litellm_params.model"].endswith(
        "requests for search fall through to the route *, whose deployments get that name"
    )
    assert "requests for finder fall through" in broken["router_settings.model_group_alias.finder"]
    assert {"general_settings.custom_auth", "general_settings.master_key"} < set(broken)
    assert "get its share" in changed["model_list[0].litellm_params.model"]
    assert changed["guardrails[0]"] == (
        'guardrail "mask-personal-data" is lost: prompts reach the deployment unchecked and unmasked'
    )
    assert changed["guardrails[1]"].endswith(
        "answers reach the client unchecked and unmasked, where a request or a key asks for it"
    )
    assert "litellm_settings.guardrails[0]" in changed
    assert "litellm_settings.callbacks[0]" in changed
    assert "litellm_settings.callbacks[1]" in listed(made, IGNORED)


def test_a_grown_file() -> None:
    config, made = imported("grown")
    assert weights(config, "fast") == {"groq/llama-3.3-70b-versatile": 1, "together_ai/meta-llama/Llama-3.3-70B": 1}
    assert weights(config, "cheap") == {"deepseek/deepseek-chat": 4, "mistral/mistral-small-latest": 4}
    broken, changed = listed(made, BREAKS), listed(made, CHANGES)
    assert {"include", "general_settings.store_model_in_db", "model_list[4].litellm_params.model"} < set(broken)
    assert broken["router_settings.model_group_alias.web"].endswith("requests for web get 404")
    assert "rpm" in changed["model_list[0].litellm_params"]
    assert "without weight" in changed["model_list[2].litellm_params"]
    assert changed["router_settings.fallbacks[0].fast[1]"].endswith("where fast fails, it is not asked")
    assert {"litellm_settings.max_budget", "litellm_settings.default_internal_user_params"} < set(changed)
    assert "litellm_settings.num_retries" in listed(made, IGNORED)
