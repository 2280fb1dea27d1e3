"""LiteLLM's configurations as ours: what is carried, what is said about the rest, and that the result always loads."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import DOCS
from support.servers import commands

from auditor.config import Config, Deployment, load, loads
from auditor.config.litellm import Imported, convert
from auditor.config.litellm.deployments import PROVIDERS
from auditor.config.network import plain_headers
from auditor.errors import ConfigError

#: What must never be seen again.
SECRET = "hush-hush"


def environ(text: str) -> dict[str, str]:
    """A value for each variable of a configuration, by what its name says."""
    values = {"BASE": "https://models.example/v1", "VERSION": "2024-10-21"}
    names = re.findall(r"\$\{(\w+)\}", text)
    return {name: next((values[word] for word in values if word in name), "sk-from-environment") for name in names}


def imported(data: Any) -> tuple[Config, Imported]:
    made = convert(yaml.safe_dump(data, allow_unicode=True), "litellm.yaml")
    loaded = loads(made.text, source="biasmeter.yaml", folder=Path("/"), environ=environ(made.text))
    return loaded.config, made


def model(name: str, of: str, **params: Any) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": of, **params}}


def of_one(of: str, **params: Any) -> Deployment:
    (deployment,) = imported({"model_list": [model("gpt", of, **params)]})[0].deployments
    return deployment


def whys(made: Imported) -> dict[str, str]:
    return {one.at.split(": ", 1)[1]: one.why for one in made.not_carried}


@pytest.mark.parametrize(
    ("of", "base_url", "upstream_model", "variable"),
    [
        ("gpt-4o", "https://api.openai.com/v1", "gpt-4o", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "https://api.anthropic.com/v1", "claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("openai/gpt-4o", "https://api.openai.com/v1", "gpt-4o", "OPENAI_API_KEY"),
        ("openai/*", "https://api.openai.com/v1", None, "OPENAI_API_KEY"),
        ("openrouter/mistralai/mistral-small", "https://openrouter.ai/api/v1", "mistralai/mistral-small",
         "OPENROUTER_API_KEY"),
        ("gemini/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash",
         "GEMINI_API_KEY"),
        ("groq/llama-3.3-70b", "https://api.groq.com/openai/v1", "llama-3.3-70b", "GROQ_API_KEY"),
        ("mistral/mistral-small-latest", "https://api.mistral.ai/v1", "mistral-small-latest", "MISTRAL_API_KEY"),
        ("deepseek/deepseek-chat", "https://api.deepseek.com/v1", "deepseek-chat", "DEEPSEEK_API_KEY"),
        ("together_ai/meta/llama", "https://api.together.xyz/v1", "meta/llama", "TOGETHERAI_API_KEY"),
        ("fireworks_ai/llama", "https://api.fireworks.ai/inference/v1", "accounts/fireworks/models/llama",
         "FIREWORKS_AI_API_KEY"),
        ("xai/grok-4", "https://api.x.ai/v1", "grok-4", "XAI_API_KEY"),
        ("ollama/qwen3:8b", "http://localhost:11434/v1", "qwen3:8b", None),
    ],
)  # fmt: skip
def test_a_provider_s_model_becomes_a_deployment(
    of: str, base_url: str, upstream_model: str | None, variable: str | None
) -> None:
    _, made = imported({"model_list": [model("gpt", of)]})
    deployment = of_one(of)
    assert (deployment.base_url, deployment.model) == (base_url, upstream_model)
    assert re.findall(r"\$\{(\w+)\}", made.text) == ([variable] if variable else [])
    assert made.not_carried == ()


@pytest.mark.parametrize(
    ("of", "api_base", "base_url"),
    [
        ("openai/x", "https://models.example/v1/", "https://models.example/v1"),
        ("hosted_vllm/Qwen/Qwen3", "http://10.0.0.1:8000", "http://10.0.0.1:8000/v1"),
        ("vllm/x", "http://10.0.0.1:8000/v1", "http://10.0.0.1:8000/v1"),
        ("ollama_chat/x", "os.environ/OLLAMA_BASE", "https://models.example/v1"),
    ],
)
def test_a_server_of_ones_own_is_asked_where_it_is_and_gets_no_provider_s_key(
    of: str, api_base: str, base_url: str
) -> None:
    deployment = of_one(of, api_base=api_base)
    assert (deployment.base_url, deployment.api_key) == (base_url, None)


@pytest.mark.parametrize(
    ("params", "url"),
    [
        ({"api_base": "https://r.openai.azure.com"}, "/openai/deployments/eu/chat/completions?api-version=2024-10-21"),
        ({"api_base": "https://r.openai.azure.com/", "api_version": "2025-01-01-preview"},
         "/openai/deployments/eu/chat/completions?api-version=2025-01-01-preview"),
        ({"api_base": "https://r.openai.azure.com/openai/deployments/eu/", "api_version": "2024-10-21"},
         "/openai/deployments/eu/chat/completions?api-version=2024-10-21"),
        ({"api_base": "https://r.openai.azure.com/openai", "api_version": "os.environ/AZURE_VERSION"},
         "/openai/deployments/eu/chat/completions?api-version=2024-10-21"),
        ({"api_base": "https://r.openai.azure.com", "api_version": "preview"}, "/openai/v1/chat/completions"),
        ({"api_base": "https://r.openai.azure.com/openai/v1/"}, "/openai/v1/chat/completions"),
    ],
)  # fmt: skip
def test_azure_s_deployments_are_asked_with_azure_s_url_and_header(params: dict[str, str], url: str) -> None:
    deployment = of_one("azure/eu", api_key="os.environ/EU_KEY", **params)
    assert deployment.url("chat/completions") == f"https://r.openai.azure.com{url}"
    assert deployment.fixed_headers() == {"api-key": "sk-from-environment"}
    assert deployment.model == "eu"


def test_an_azure_url_in_a_variable_asks_for_the_whole_url_in_another() -> None:
    for params in ({"api_base": "os.environ/EU_BASE"}, {}):
        _, made = imported({"model_list": [model("gpt", "azure/eu", **params)]})
        assert "base_url: ${AZURE_EU_BASE_URL}" in made.text
        why = whys(made)["model_list[0].litellm_params.api_base"]
        assert why.startswith("set AZURE_EU_BASE_URL to ")
        assert why.endswith("followed by /openai/deployments/eu")


def test_what_a_deployment_can_have_is_carried() -> None:
    params = {
        "timeout": 300, "stream_timeout": 20.5, "max_parallel_requests": 8, "organization": "os.environ/ORG",
        "input_cost_per_token": 0.0000025, "output_cost_per_token": "1e-05",
        "extra_headers": {"X-Title": "desk", "X-Tenant": "os.environ/TENANT"},
    }  # fmt: skip
    deployment = of_one("openai/gpt-4o", **params)
    assert deployment.timeouts is not None
    assert deployment.timeouts.model_fields_set == {"total", "first_token"}
    assert (deployment.timeouts.total, deployment.timeouts.first_token, deployment.concurrency) == (300, 20.5, 8)
    assert deployment.price is not None
    assert (deployment.price.input, deployment.price.output) == (2.5, 10)
    variable = "sk-from-environment"
    assert plain_headers(deployment.headers) == {
        "X-Title": "desk",
        "X-Tenant": variable,
        "OpenAI-Organization": variable,
    }


def test_the_same_name_several_times_is_one_route_with_weights() -> None:
    entries = [model("gpt", "openai/gpt-4o", weight=3), model("gpt", "azure/eu", api_base="https://r"),
               model("gpt", "openai/gpt-4o", weight=1)]  # fmt: skip
    config, made = imported({"model_list": entries})
    (route,) = config.routes
    assert [(one.name, one.weight) for one in route.deployments] == [
        ("openai/gpt-4o", 3), ("azure/eu", 1), ("openai/gpt-4o-2", 1)
    ]  # fmt: skip
    assert (made.deployments, made.routes) == (("openai/gpt-4o", "azure/eu", "openai/gpt-4o-2"), ("gpt",))
    assert whys(made)["model_list[0].litellm_params"].startswith("azure/eu: without weight")


def test_requests_per_minute_weigh_where_no_weight_is_given() -> None:
    config, made = imported({"model_list": [model("gpt", "openai/a", rpm=600), model("gpt", "openai/b", rpm=200)]})
    assert [one.weight for one in config.routes[0].deployments] == [600, 200]
    assert "--rpm" in whys(made)["model_list[0].litellm_params.rpm"]


@pytest.mark.parametrize(
    ("params", "weights"),
    [
        (({"rpm": 600}, {"weight": 1}), [1, 1]),
        (({"weight": 2, "rpm": 600}, {"weight": 1}), [2, 1]),
        (({"rpm": 600, "tpm": 9}, {"tpm": 3}), [9, 3]),
        (({"weight": 0}, {"weight": 5}), [0, 5]),
        (({"weight": 0}, {"weight": 0}), [1, 1]),
        (({"weight": "many"}, {"weight": 5}), [1, 1]),
        (({"tpm": 900}, {}), [900, 900]),
    ],
)
def test_no_deployment_loses_its_traffic_silently(params: tuple[dict[str, Any], ...], weights: list[float]) -> None:
    config, made = imported({"model_list": [model("gpt", f"openai/{n}", **one) for n, one in enumerate(params)]})
    assert [one.weight for one in config.routes[0].deployments] == weights
    as_written = [one.get("weight", one.get("tpm", one.get("rpm"))) for one in params]
    assert ("model_list[0].litellm_params" in whys(made)) == (as_written != weights)


def test_the_router_s_settings_hold_before_the_library_s() -> None:
    config, made = imported(
        {
            "model_list": [model("a", "openai/a"), model("b", "openai/b"), model("c", "openai/c")],
            "router_settings": {
                "num_retries": 3, "timeout": 30, "stream_timeout": 5, "routing_strategy": "simple-shuffle",
                "model_group_alias": {"alias": "a", "hidden": {"model": "b", "hidden": True}, "none": "nowhere"},
                "fallbacks": [{"a": ["b", "nowhere", "c", "b"]}],
                "context_window_fallbacks": [{"a": ["c"]}],
            },
            "litellm_settings": {
                "num_retries": 9, "request_timeout": 60, "drop_params": True, "callbacks": ["prometheus"],
                "fallbacks": [{"a": ["c"]}], "content_policy_fallbacks": [{"b": ["c", "b"]}],
                "default_fallbacks": ["c"],
            },
            "general_settings": {"master_key": SECRET, "database_url": f"postgresql://u:{SECRET}@h/d"},
            "environment_variables": {"OPENAI_API_KEY": SECRET},
        }
    )  # fmt: skip
    assert (config.gateway.retries, config.gateway.timeouts.total, config.gateway.timeouts.first_token) == (3, 30, 5)
    routes = {one.model: one for one in config.routes}
    assert list(routes) == ["a", "b", "c", "alias", "hidden"]
    assert routes["a"].fallbacks == routes["alias"].fallbacks == ("b", "c")
    assert routes["a"].context_window_fallbacks == ("c",)
    assert routes["b"].content_filter_fallbacks == ("c",)
    assert (routes["b"].fallbacks, routes["c"].fallbacks) == (("c",), ())
    assert [one.name for one in routes["alias"].deployments] == ["openai/a"]
    assert set(whys(made)) == {
        "router_settings.model_group_alias.hidden.hidden", "router_settings.model_group_alias.none",
        "router_settings.fallbacks[0].a[1]", "litellm_settings.num_retries", "litellm_settings.request_timeout",
        "litellm_settings.drop_params", "litellm_settings.callbacks[0]", "litellm_settings.fallbacks[0].a",
        "litellm_settings.content_policy_fallbacks[0].b[1]", "general_settings.master_key",
        "general_settings.database_url", "environment_variables.OPENAI_API_KEY",
    }  # fmt: skip


def test_one_pattern_can_take_the_rest() -> None:
    entries = [model("a", "openai/a"), model("openai/*", "openai/*"), model("groq/*", "groq/*"), model("x-*", "xai/*")]
    config, made = imported({"model_list": entries})
    assert [one.model for one in config.routes] == ["a", "*"]
    assert [one.model for one in config.deployments] == ["a", None]
    told = whys(made)
    assert "without openai/" in told["model_list[1].model_name"]
    assert {"model_list[2].model_name", "model_list[3].model_name"} < set(told)
    config, _ = imported({"model_list": [model("groq/*", "groq/*"), model("*", "openai/*")]})
    assert [(route.model, route.deployments[0].name) for route in config.routes] == [("*", "openai")]


@pytest.mark.parametrize(
    ("entry", "at", "why"),
    [
        (model("x", "bedrock/titan"), "model_list[1].litellm_params.model", "cloud account"),
        (model("x", "vertex_ai/gemini"), "model_list[1].litellm_params.model", "cloud account"),
        (model("x", "sagemaker/x"), "model_list[1].litellm_params.model", "cloud account"),
        (model("x", "perplexity/sonar"), "model_list[1].litellm_params.model", "/chat/completions"),
        (model("x", "nobody/x"), "model_list[1].litellm_params.model", "by hand"),
        (model("x", "hosted_vllm/x"), "model_list[1].litellm_params.model", "gives a URL"),
        (model("x", "azure/*", api_base="https://r"), "model_list[1].litellm_params.model", "name each"),
        (model("x", "anthropic/x", api_base="https://h"), "model_list[1].litellm_params.api_base", "own protocol"),
        (model("x", "openai/x", api_base=f"https://u:{SECRET}@h"), "model_list[1].litellm_params.api_base", "password"),
        (model("x", "openai/${KEY}"), "model_list[1].litellm_params.model", "the name"),
        (model(" x", "openai/x"), "model_list[1].model_name", "not a valid name"),
    ],
)
def test_what_cannot_be_a_deployment_is_listed(entry: dict[str, Any], at: str, why: str) -> None:
    config, made = imported({"model_list": [model("a", "openai/a"), entry]})
    assert [one.model for one in config.routes] == ["a"]
    assert why in whys(made)[at]
    assert SECRET not in str(made)


def test_a_secret_in_the_file_becomes_a_variable_that_means_nothing_else() -> None:
    entries = [
        model("a", "openai/a", api_key=SECRET),
        model("b", "openai/a", api_key=SECRET, extra_headers={"X-Key": SECRET + "2"}),
        model("c", "openai/c", api_key="os.environ/OPENAI_A_API_KEY"),
        model("d", "openai/d"),
    ]
    config, made = imported({"model_list": entries})
    assert SECRET not in made.text
    assert SECRET not in str(made)
    names = re.findall(r"api_key: \$\{(\w+)\}", made.text)
    assert names == ["OPENAI_A_API_KEY_2", "OPENAI_A_API_KEY_2", "OPENAI_A_API_KEY", "OPENAI_API_KEY"]
    assert whys(made)["model_list[0].litellm_params.api_key"].endswith("set OPENAI_A_API_KEY_2 to it")
    assert plain_headers(config.deployments[1].headers) == {"X-Key": "sk-from-environment"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "litellm.yaml: is empty"),
        ("# nothing\n", "litellm.yaml: is empty"),
        ("[]", "litellm.yaml:1: must be a mapping"),
        ("a: [", "litellm.yaml:"),
        ("a: 1\na: 2\nmodel_list: []", "litellm.yaml:2: a: is set twice"),
        ("litellm_settings: {}", "litellm.yaml:1: model_list: is needed"),
        ("model_list: gpt", "litellm.yaml:1: model_list: must be a list"),
        ("model_list:\n  - gpt", "litellm.yaml:2: model_list[0]: must be a mapping with model_name and litellm_params"),
        ("model_list:\n  - litellm_params: {model: a}", "litellm.yaml:2: model_list[0].model_name: must be text"),
        ("model_list:\n  - {model_name: a}", "litellm.yaml:2: model_list[0].litellm_params.model: must be text"),
        ("model_list:\n  - {model_name: a, litellm_params: 1}", "model_list[0].litellm_params: must be a mapping"),
        (
            "model_list:\n  - {model_name: a, litellm_params: {model: b, api_key: []}}",
            "litellm_params.api_key: must be",
        ),
        ("model_list: []\nrouter_settings: []", "litellm.yaml:2: router_settings: must be a mapping"),
        ("model_list: []\nrouter_settings: {fallbacks: {a: b}}", "router_settings.fallbacks: must be a list"),
        ("model_list: []\nrouter_settings: {fallbacks: [a]}", "router_settings.fallbacks[0]: must be a mapping"),
        (
            "model_list:\n  - {model_name: a, litellm_params: {model: bedrock/a}}",
            "contains no entry that can be a deployment",
        ),
    ],
)
def test_a_file_of_the_wrong_shape_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        convert(text, "litellm.yaml")
    assert told in str(refused.value)
    assert all(line.startswith("litellm.yaml:") for line in str(refused.value).splitlines())


junk = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.text(max_size=3), max_size=2),
    st.sampled_from(["${KEY}", "os.environ/KEY", "os.environ/no-name", "*", "all", "1e400", "9" * 400, "\u2028", "-1"]),
)  # fmt: skip
names = st.sampled_from(["gpt", "gpt-4o", "claude", "*", "openai/*", "x*", "all", "é", " ", "a: b", "#"])
params = st.fixed_dictionaries(
    {"model": st.builds("{}/{}".format, st.sampled_from([*PROVIDERS, "bedrock", "new"]), names) | names},
    optional={
        "api_base": st.sampled_from(["http://h", "https://h:1/x/", "os.environ/THE_BASE", "h", f"http://{SECRET}@h"]),
        "api_key": st.sampled_from([SECRET, "os.environ/KEY", "", "os.environ/not a name"]),
        "api_version": st.sampled_from(["2024-10-21", "preview", "a b", "os.environ/THE_VERSION"]),
        "organization": st.sampled_from([SECRET, "os.environ/KEY"]),
        "headers": st.dictionaries(st.sampled_from(["User-Agent", "X-Title"]), junk, max_size=2),
        "extra_headers": st.dictionaries(st.text(max_size=4) | st.just("X-Key"), junk | st.just(SECRET), max_size=2),
        **dict.fromkeys(
            ["weight", "rpm", "tpm", "timeout", "stream_timeout", "max_parallel_requests", "input_cost_per_token",
             "output_cost_per_token", "temperature"],
            junk | st.integers(0, 9) | st.floats(0, 1e-5),
        ),
    },
)  # fmt: skip
entries = st.fixed_dictionaries(
    {"model_name": names, "litellm_params": params},
    optional={"model_info": st.dictionaries(st.sampled_from(["id", "input_cost_per_token"]), junk, max_size=2)},
)
fallbacks = st.lists(st.dictionaries(names, st.lists(names | junk, max_size=3), max_size=2), max_size=2)
shared = {"num_retries": junk, "timeout": junk, "request_timeout": junk, "fallbacks": fallbacks,
          "content_policy_fallbacks": fallbacks, "default_fallbacks": st.lists(names, max_size=2)}  # fmt: skip
files = st.fixed_dictionaries(
    {"model_list": st.lists(entries, min_size=1, max_size=4)},
    optional={
        "router_settings": st.fixed_dictionaries(
            {}, optional={**shared, "model_group_alias": st.dictionaries(names, names, max_size=2), "redis": junk}
        ),
        "litellm_settings": st.fixed_dictionaries({}, optional=shared),
        "general_settings": st.dictionaries(names, junk | st.just(SECRET), max_size=2),
        "environment_variables": st.dictionaries(names, st.just(SECRET), max_size=2),
        "other": junk,
    },
)


@settings(deadline=None)
@given(files)
def test_whatever_is_imported_loads_and_holds_no_secret(data: Any) -> None:
    try:
        config, made = imported(data)
    except ConfigError as error:
        told = str(error)
        assert told.startswith("litellm.yaml:"), told
    else:
        told = f"{made.text}{made}"
        assert [one.name for one in config.deployments] == list(made.deployments)
        assert [one.model for one in config.routes] == list(made.routes)
    assert SECRET not in told


keys = st.sampled_from(["model_name", "litellm_params", "model", "fallbacks", "model_group_alias", "num_retries"])
trees = st.recursive(
    junk, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)
sections = st.sampled_from(["model_list", "router_settings", "litellm_settings", "general_settings", "x"])


@settings(deadline=None)
@given(st.dictionaries(sections, trees))
def test_whatever_stands_in_the_file_the_answer_is_a_configuration_or_lines(data: Any) -> None:
    lines: list[str] = []
    try:
        imported(data)
    except ConfigError as error:
        lines = str(error).split("\n")
    assert all(line.startswith("litellm.yaml") and line.isprintable() for line in lines)


def test_the_documented_example_is_what_comes_out() -> None:
    page = (DOCS / "import.md").read_text()
    theirs, ours = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert convert(theirs, "litellm.yaml").text == ours
    named = re.findall(r"`(\w+)`", page.partition("Providers that are carried")[2].partition("any server")[0])
    assert set(named) < set(PROVIDERS)


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return commands.run(["import-config", *arguments], folder=folder)


def test_the_command_writes_a_file_once_and_lists_what_is_missing(tmp_path: Path) -> None:
    data = {"model_list": [model("gpt", "openai/gpt-4o", api_key=SECRET)], "litellm_settings": {"cache": True}}
    (tmp_path / "litellm.yaml").write_text(yaml.safe_dump(data))
    done = run(tmp_path, "litellm.yaml", "-o", "ours.yaml")
    counts = "1 deployments, 1 routes; 2 settings not carried over, of which 1 break traffic"
    assert (done.returncode, done.stdout) == (0, f"ours.yaml: {counts}\n")
    text = (tmp_path / "ours.yaml").read_text()
    assert all(f"# {line}\n" in text for line in done.stderr.splitlines())
    assert done.stderr.splitlines()[::2] == ["Breaks traffic until somebody acts (1):", "Changes behaviour (1):"]
    lines = [line.strip() for line in done.stderr.splitlines()[1::2]]
    assert [line.split(": ")[:2] for line in lines] == [
        ["litellm.yaml:5", "model_list[0].litellm_params.api_key"], ["litellm.yaml:2", "litellm_settings.cache"]
    ]  # fmt: skip
    assert SECRET not in text + done.stdout + done.stderr
    assert load(tmp_path / "ours.yaml", environ(text)).routes[0].model == "gpt"

    again = run(tmp_path, "litellm.yaml", "-o", "ours.yaml", "--json")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "biasmeter: ours.yaml: exists already; --force overwrites it\n"
    forced = run(tmp_path, "litellm.yaml", "-o", "ours.yaml", "--json", "--force")
    told = json.loads(forced.stdout)
    assert (told["written"], told["deployments"], told["routes"]) == ("ours.yaml", ["openai/gpt-4o"], ["gpt"])
    assert [f"{one['at']}: {one['why']}" for one in told["not_carried"]] == lines
    assert [one["severity"] for one in told["not_carried"]] == ["breaks", "changes"]

    strict = run(tmp_path, "litellm.yaml", "-o", "strict.yaml", "--strict")
    assert strict.returncode == 1
    assert strict.stderr.splitlines()[-1] == "biasmeter: 1 settings break traffic until somebody acts (--strict)"
    assert (tmp_path / "strict.yaml").read_text() == text
    del data["model_list"][0]["litellm_params"]["api_key"]
    (tmp_path / "litellm.yaml").write_text(yaml.safe_dump(data))
    assert run(tmp_path, "litellm.yaml", "-o", "good.yaml", "--strict").returncode == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "biasmeter: litellm.yaml: no such file\n"),
        (b"\xff", "biasmeter: litellm.yaml:1: byte 0xff is not UTF-8\n"),
        (b"#" * 2**21, "biasmeter: litellm.yaml: is larger than 1024 KiB, which is too large for a configuration\n"),
        (b"model_list: x", "biasmeter: litellm.yaml:1: model_list: must be a list\n"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / "litellm.yaml").write_bytes(content)
    done = run(tmp_path, "litellm.yaml", "-o", "ours.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
    assert not (tmp_path / "ours.yaml").exists()
