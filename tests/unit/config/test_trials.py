"""``routes[].mitigation``: what it may say, and which requests of a configuration make another trial."""

from pathlib import Path

import pytest

from auditor.config import Config, loads
from auditor.errors import ConfigError

BASE = """\
gateway: {{tags: [dialogue]}}
deployments: [{{name: a, base_url: "http://127.0.0.1:9"}}]
audits: [{{name: users}}, {{name: talks, cluster: {{tag: dialogue}}}}, {{name: paths, cluster: {{request: $.x}}}}]
routes:
  - {{model: m, deployments: [a], capture: full, audit: users, {route}}}
{more}
"""
ARM = "{name: careful, kind: task, instruction: Be fair.}"
TRIAL = "mitigation: {share: 0.2, arms: [" + ARM + "]}"


def read(route: str = TRIAL, more: str = "", folder: Path = Path("/")) -> Config:
    text = BASE.format(route=route, more=more)
    return loads(text, source="t.yaml", folder=folder, environ={"HOME": "/h"}).config


def trial(route: str = TRIAL, more: str = "") -> str | None:
    config = read(route, more)
    return config.trial_of(config.routes[0])


def test_an_instruction_may_stand_in_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "fair.txt").write_text("Be fair.\n")
    config = read(TRIAL.replace("instruction: Be fair.", "file: fair.txt"), folder=tmp_path)
    assert config.routes[0].mitigation is not None
    assert config.routes[0].mitigation.arms[0].text == "Be fair."
    assert config.trial_of(config.routes[0]) == trial()
    (tmp_path / "fair.txt").write_text("Be fairer.\n")
    changed = read(TRIAL.replace("instruction: Be fair.", "file: fair.txt"), folder=tmp_path)
    assert changed.trial_of(changed.routes[0]) != trial()
    assert changed.config_hash != config.config_hash


def test_whatever_changes_the_assignment_or_the_arms_makes_another_trial_and_the_rule_does_not() -> None:
    same = [TRIAL, TRIAL[:-1] + ", stop: {rise: 0.1, outcome: sel}}", TRIAL[:-1] + ", run: 1}"]
    other = [
        TRIAL[:-1] + ", run: 2}",
        TRIAL.replace("0.2", "0.3"),
        TRIAL.replace("Be fair", "Be fairer"),
        TRIAL.replace("task", "role"),
        TRIAL.replace("careful", "kind"),
        TRIAL[:-2] + ", {name: b, kind: role, instruction: x}]}",
    ]
    made = {trial(one) for one in other} | {_talks(TRIAL[:-1] + ", assign: conversation}")}
    assert len({trial(one) for one in same}) == 1
    assert len(made | {trial(same[0])}) == len(other) + 2
    assert trial(more="seed: 1") not in {None, trial()}
    config = read("judge: true")
    assert config.trial_of(config.routes[0]) is None


def _talks(route: str) -> str | None:
    text = BASE.format(route=route, more="").replace("audit: users", "audit: talks")
    config = loads(text, source="t.yaml", folder=Path("/"), environ={"HOME": "/h"}).config
    assert config.unit_tag(config.routes[0]) == "dialogue"
    return config.trial_of(config.routes[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TRIAL.replace(", instruction: Be fair.", ""), "needs exactly one of instruction, file"),
        (TRIAL.replace("Be fair.", "Be fair., file: x"), "needs exactly one of instruction, file"),
        (TRIAL.replace("instruction: Be fair.", "file: nowhere.txt"), r"/nowhere\.txt: cannot be read: No such file"),
        (TRIAL.replace("Be fair.", '" "'), "an instruction has 1 to 20,000 characters"),
        (TRIAL.replace("careful", "control"), "an arm must not be named control or unassigned"),
        (TRIAL.replace("careful", "a/b"), "or hold a slash"),
        (TRIAL.replace("task", "tone"), "kind: must be one of role, task"),
        (TRIAL.replace("0.2", "1"), "share: must be at most 0.95"),
        (TRIAL.replace("0.2", "0"), "share: must be greater than 0"),
        (TRIAL.replace(ARM, f"{ARM}, {ARM}"), "two arms have the same name"),
        (TRIAL[:-1] + ", assign: conversation}", "conversation needs the tag of conversations as the audit's cluster"),
        (TRIAL[:-1] + ", stop: {rise: 0}}", "rise: must be greater than 0"),
        (TRIAL + ", sample: 0", "mitigation needs an audit, capture: full and a sample"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        read(text)
    assert "t.yaml:" in str(refused.value)


@pytest.mark.parametrize("audit", ["talks", "paths"])
def test_users_are_the_clusters_of_the_audit(audit: str) -> None:
    text = BASE.format(route=TRIAL, more="").replace("audit: users", f"audit: {audit}")
    with pytest.raises(
        ConfigError, match=r"t\.yaml:5: routes\[0\]\.mitigation\.assign: user needs an audit without cluster"
    ):
        loads(text, source="t.yaml", folder=Path("/"), environ={"HOME": "/h"})


def test_tags_of_the_gateway_are_no_tags_of_clients() -> None:
    for text in (
        BASE.format(route=TRIAL, more="").replace("[dialogue]", "[biasmeter_arm]"),
        BASE.format(route=TRIAL, more="").replace("tag: dialogue", "tag: biasmeter_arm"),
    ):
        with pytest.raises(ConfigError, match="tags that begin with biasmeter_ are the gateway's own"):
            loads(text, source="t.yaml", folder=Path("/"), environ={"HOME": "/h"})
