"""What a good configuration means once it is loaded."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from auditor.config import Config, Timeouts, default_config, load, load_without_upstream_keys, loads, read
from auditor.errors import ConfigError

FULL = Path(__file__).with_name("full.yaml")
ENVIRON = {"EU_KEY": "sk-eu-1234", "US_KEY": "sk-us-5678", "HOOK_SECRET": "hush-hush", "HOME": "/home/someone"}

MINIMAL = """\
deployments: [{name: a, base_url: "http://127.0.0.1:9"}]
routes: [{model: "*", deployments: [a]}]
"""

# A judge asks for its deployment's model.
NAMED = MINIMAL.replace("name: a", "name: a, model: m")


def from_text(text: str, environ: dict[str, str] | None = None) -> Config:
    return loads(text, source="t.yaml", folder=Path("/etc/biasmeter"), environ=environ or {"HOME": "/h"}).config


@pytest.fixture(scope="module")
def full() -> Config:
    return load(FULL, ENVIRON)


def test_a_configuration_without_upstream_keys_is_the_same_otherwise(full: Config) -> None:
    keys = [one.api_key.get_secret_value() for one in full.deployments if one.api_key is not None]
    withheld = full.without_upstream_keys()
    assert len(keys) >= 2
    for secret in keys:
        assert secret.encode() in pickle.dumps(full)
        assert secret.encode() not in pickle.dumps(withheld)
    assert withheld.config_hash == full.config_hash
    assert [one.api_key is None for one in withheld.deployments] == [one.api_key is None for one in full.deployments]
    assert withheld.model_dump() | {"deployments": ()} == full.model_dump() | {"deployments": ()}
    assert full.environment(ENVIRON) == {"HOOK_SECRET": "hush-hush", "HOME": "/home/someone"}


def test_secrets_of_deployments_need_no_variable_where_no_deployment_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "biasmeter.yaml"
    path.write_text(
        'deployments: [{name: a, base_url: "http://127.0.0.1:9", api_key: "${KEY}", headers: {x-token: "${TOKEN}"}}]\n'
        "routes: [{model: '*', deployments: [a]}]\nmonitor: {webhook: {url: '${HOOK}'}}\n"
    )
    environ = {"HOME": "/h", "HOOK": "https://hooks.example", "KEY": "sk-1", "TOKEN": "token-2", "SAME": "sk-1"}
    whole = load(path, environ)
    assert whole.environment(environ) == {"HOME": "/h", "HOOK": "https://hooks.example"}
    withheld = load_without_upstream_keys(path, whole.environment(environ))
    assert withheld == load_without_upstream_keys(path, environ)
    assert (withheld.config_hash, withheld.file) == (whole.config_hash, whole.file)
    for secret in (b"sk-1", b"token-2"):
        assert secret not in pickle.dumps(load_without_upstream_keys(path, environ))
    with pytest.raises(ConfigError, match="the environment variable KEY is not set"):
        load(path, {"HOOK": "https://hooks.example"})
    with pytest.raises(ConfigError, match="the environment variable HOOK is not set"):
        load_without_upstream_keys(path, {})


class TestTheDocumentedExample:
    def test_paths(self, full):
        assert full.data_dir == Path("/home/someone/.local/share/biasmeter")
        assert full.peers[0].questions == FULL.parent / "questions.jsonl"

    def test_gateway(self, full):
        assert str(full.gateway.listen) == "127.0.0.1:4000"
        assert (full.gateway.workers, full.gateway.auth) == (2, "keys")
        assert full.gateway.spool.max_bytes == 4 * 2**30
        assert full.gateway.timeouts == Timeouts(connect=5, first_token=60, idle=120, total=900)

    def test_deployments(self, full):
        eu, us, claude, judge = full.deployments
        assert eu.base_url == "https://eu.example.com/v1"
        assert us.base_url == "https://us.example.com/v1"
        assert claude.base_url == "https://api.example.org/openai/v1"
        assert eu.api_key is not None
        assert eu.api_key.get_secret_value() == "sk-eu-1234"
        assert (eu.price.input, eu.price.output, eu.concurrency) == (2.5, 10, 64)
        assert (judge.model, judge.api_key, judge.price) == ("judge", None, None)

    def test_routes(self, full):
        first, second = full.routes
        assert [(one.name, one.weight) for one in first.deployments] == [("gpt-4o-eu", 3), ("gpt-4o-us", 1)]
        assert (first.sample, first.capture, first.judge, first.audit) == (0.05, "full", True, "moderation-desk")
        assert second.capture == "off"
        assert full.mirrored(first) == ("claude",)

    def test_audit(self, full):
        (audit,) = full.audits
        assert audit.proposition.request == "$.messages[-1].content"
        assert audit.selection.json_path == "$.verdict"
        assert audit.selection.map == {"acceptable": "E", "unacceptable": "D", "unsure": "N"}
        assert audit.cluster.tag == "tenant"
        assert full.tag_names == {"tenant"}

    def test_monitoring(self, full):
        assert full.monitor.windows == (86400, 7 * 86400, 30 * 86400)
        assert full.panel.judges == ("j1", "j2", "j3")
        assert full.probed(full.probes[0]) == ("gpt-4o-eu", "gpt-4o-us", "claude", "judge-a")
        assert full.retention.content == 30 * 86400

    def test_store_absent_without_the_variable(self, full):
        assert full.store.url is None
        assert full.database_url({}) is None
        assert full.database_url({"BIASMETER_DATABASE_URL": "postgres://u@h/d"}) == "postgresql://u@h/d"

    @pytest.mark.parametrize("url", ["postgresql://u:p@h/d", "postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"])
    def test_store_from_the_variable(self, url):
        config = load(FULL, ENVIRON | {"BIASMETER_DATABASE_URL": url})
        assert config.database_url({"BIASMETER_DATABASE_URL": "postgresql://other"}) == "postgresql://u:p@h/d"

    def test_no_secret_is_shown(self, full):
        shown = repr(full) + str(full) + full.model_dump_json()
        assert not [value for value in ENVIRON.values() if value in shown and value != ENVIRON["HOME"]]

    def test_places(self):
        places = read(FULL, ENVIRON).places
        assert places.at("deployments", 1).endswith("full.yaml:9")
        assert places.at("routes", 0, "capture").endswith("full.yaml:17")
        assert places.at("routes", 0, "nowhere", 3).endswith("full.yaml:13")


class TestDefaults:
    def test_minimal(self):
        config = from_text(MINIMAL)
        assert config.data_dir == Path("/h/.local/share/biasmeter")
        assert str(config.gateway.listen) == "127.0.0.1:4000"
        assert str(config.auditor.listen) == "127.0.0.1:4001"
        assert config.gateway.timeouts == Timeouts(connect=5, first_token=60, idle=120, total=900)
        assert (config.gateway.body_limit, config.gateway.capture_limit) == (32 * 2**20, 2**20)
        assert (config.gateway.retries, config.gateway.drain, config.gateway.workers >= 1) == (2, 30, True)
        (route,) = config.routes
        assert (route.sample, route.capture, route.judge, route.peers) == (1.0, "hashed", False, ())
        assert config.panel.judges == ("lexicon",)
        assert (config.probes, config.peers, config.audits) == ((), (), ())

    def test_null_is_absent(self):
        assert from_text(MINIMAL + "gateway:\nmonitor: ~\nprobes: null\njudges:\n") == from_text(MINIMAL)

    def test_all_declared_judges_sit_on_the_panel(self):
        config = from_text(NAMED + "judges: [{name: j1, deployment: a}, {name: j2, deployment: a}]\n")
        assert config.panel.judges == ("j1", "j2")

    @pytest.mark.parametrize("entry", ["lexicon", "{name: lexicon}"])
    def test_the_lexicon_may_be_declared(self, entry):
        config = from_text(NAMED + f"judges: [{entry}, {{name: j1, deployment: a}}]\n")
        assert [(one.name, one.deployment) for one in config.judges] == [("lexicon", None), ("j1", "a")]
        assert config.panel.judges == ("lexicon", "j1")

    @pytest.mark.parametrize(
        ("given", "path"),
        [("state", "/etc/biasmeter/state"), ("../s", "/etc/biasmeter/../s"), ("/s", "/s"), ("~", "/h")],
    )
    def test_paths(self, given, path):
        assert from_text(MINIMAL + f"data_dir: '{given}'\n").data_dir == Path(path)

    def test_frozen(self):
        config = from_text(MINIMAL)
        with pytest.raises(ValidationError):
            config.seed = 3


class TestScalarsAreReadByTheirKey:
    def test_words_that_yaml_takes_for_switches(self):
        text = MINIMAL.replace("deployments: [a]", "deployments: [no], capture: off, judge: yes").replace(
            "name: a", "name: no"
        )
        (route,) = from_text(text).routes
        assert (route.deployments[0].name, route.capture, route.judge) == ("no", "off", True)

    def test_answers_in_a_map(self):
        text = (
            MINIMAL + "audits: [{name: x, proposition: {text: T}, selection: {json: $.a, map: {yes: E, no: D, 1: N}}}]"
        )
        assert from_text(text).audits[0].selection.map == {"yes": "E", "no": "D", "1": "N"}

    def test_numbers_from_the_environment(self):
        text = MINIMAL + "seed: ${SEED}\ngateway: {listen: {host: 127.0.0.1, port: ${PORT}}, drain: ${DRAIN}}\n"
        config = from_text(text, {"SEED": "7", "PORT": "0", "DRAIN": "2m", "HOME": "/h"})
        assert (config.seed, config.gateway.listen.port, config.gateway.drain) == (7, 0, 120)


class TestAnchors:
    def test_merge_keys(self):
        text = """\
deployments:
  - &one {name: a, base_url: "http://h/v1", vendor: v, price: {input: 1, output: 2}}
  - {<<: *one, name: b}
routes: [{model: m, deployments: [a, b]}]
"""
        a, b = from_text(text).deployments
        assert (b.name, b.base_url, b.vendor, b.price) == ("b", a.base_url, "v", a.price)

    def test_the_first_of_several_merged_wins(self):
        text = """\
deployments:
  - &one {name: a, base_url: "http://one/v1", vendor: v1}
  - &two {name: b, base_url: "http://two/v1", vendor: v2, model: m2}
  - {name: c, <<: [*one, *two]}
routes: [{model: m, deployments: [a, b, c]}]
"""
        merged = from_text(text).deployments[2]
        assert (merged.name, merged.vendor, merged.model) == ("c", "v1", "m2")


def test_a_deployments_timeouts_replace_one_by_one():
    text = MINIMAL.replace('9"}', '9", timeouts: {total: 30}}') + "gateway: {timeouts: {connect: 1, idle: 5m}}\n"
    config = from_text(text)
    assert config.timeouts_for(config.deployments[0]) == Timeouts(connect=1, first_token=60, idle=300, total=30)


def test_a_peer_may_be_a_route():
    text = """\
deployments: [{name: a, base_url: "http://h"}, {name: b, base_url: "http://h"}, {name: c, base_url: "http://h"}]
routes: [{model: x, deployments: [a], peers: [y, c]}, {model: y, deployments: [b, c]}]
"""
    config = from_text(text)
    assert config.mirrored(config.routes[0]) == ("b", "c")


class TestHash:
    def test_of_the_content(self):
        one = from_text(MINIMAL)
        assert len(one.config_hash) == 16
        assert one.config_hash == from_text("# a comment\n" + MINIMAL).config_hash
        assert one.config_hash != from_text(MINIMAL + "seed: 1\n").config_hash

    def test_without_secrets(self):
        text = MINIMAL.replace('9"}', '9", api_key: ${K}, headers: {x-key: ${K}}}')
        one, two = (from_text(text, {"K": key, "HOME": "/h"}) for key in ("k1", "k2"))
        assert one.config_hash == two.config_hash != from_text(MINIMAL).config_hash


class TestWithoutAFile:
    def test_openai(self):
        config = default_config({"OPENAI_API_KEY": "sk-x", "HOME": "/h"})
        (deployment,), (route,) = config.deployments, config.routes
        assert (deployment.name, deployment.base_url, deployment.model) == ("openai", "https://api.openai.com/v1", None)
        assert deployment.api_key.get_secret_value() == "sk-x"
        assert (route.model, route.sample, route.capture, route.judge) == ("*", 1.0, "hashed", False)
        assert config.panel.judges == ("lexicon",)

    def test_a_server_that_needs_no_key(self):
        (deployment,) = default_config({"OPENAI_BASE_URL": "http://localhost:8000", "OPENAI_API_KEY": ""}).deployments
        assert (deployment.base_url, deployment.api_key, deployment.vendor) == ("http://localhost:8000/v1", None, None)

    def test_neither(self):
        with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL.*biasmeter\.yaml"):
            default_config({})

    @pytest.mark.parametrize(
        ("environ", "words"),
        [
            ({"OPENAI_BASE_URL": "localhost:8000"}, "OPENAI_BASE_URL: must start with http"),
            ({"OPENAI_API_KEY": "sk-secret\n"}, "OPENAI_API_KEY: contains a space, a line break"),
        ],
    )
    def test_unusable(self, environ, words):
        with pytest.raises(ConfigError) as caught:
            default_config(environ)
        assert words in str(caught.value)
        assert "sk-secret" not in str(caught.value)


def test_importing_it_stays_light():
    code = "import sys, auditor.config; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    heavy = {"httpx2", "sqlalchemy", "numpy", "pandas", "aiohttp", "asyncpg", "typer", "asyncio"}
    assert not heavy & set(loaded)


@pytest.mark.parametrize("panel", ["", "panel: {}", "panel: {anchors: 1d}"])
def test_all_declared_judges_sit_where_the_panel_names_none(panel):
    config = from_text(NAMED + f"judges: [{{name: j1, deployment: a}}, lexicon]\n{panel}\n")
    assert config.panel.judges == ("j1", "lexicon")
    assert config.panel.anchors == (86_400.0 if "anchors" in panel else None)
