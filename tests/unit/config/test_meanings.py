"""Every key of the configuration says what it means, in the JSON Schema for editors."""

import json
from collections.abc import Iterator

import pytest
from pydantic import Field

from auditor.config.json_schema import config_schema, meanings
from auditor.config.values import Section


class Lamp(Section):
    """A lamp."""

    power: float
    """How much it takes,
    in ``watts``."""
    bulb_kind: str = Field(default="led", alias="kind")
    # What a bulb is, an electrician knows.
    """What shines."""
    unsaid: int = 0

    @property
    def off(self) -> bool:
        """Whether it is dark."""
        return not self.power


def described() -> Iterator[tuple[str, str, str | None]]:
    """Yield section, key and description of each key of the schema."""
    schema = config_schema()
    for name, section in [("", schema), *schema["$defs"].items()]:
        for part in section.get("anyOf", [section]):
            for key, value in part.get("properties", {}).items():
                yield name, key, value.get("description")


def test_the_string_after_a_field_is_its_meaning() -> None:
    assert meanings(Lamp) == {"power": "How much it takes, in `watts`.", "kind": "What shines."}


def test_every_key_has_a_meaning() -> None:
    keys = list(described())
    assert len(keys) > 150
    assert [f"{section}.{key}" for section, key, meaning in keys if not meaning] == []


def test_a_meaning_is_one_sentence_that_says_more_than_the_key() -> None:
    for section, key, meaning in described():
        assert meaning is not None
        assert meaning.endswith("."), f"{section}.{key}"
        assert len(meaning.split()) >= 3, f"{section}.{key}"
        assert meaning.lower().strip(".") != key.replace("_", " "), f"{section}.{key}"


@pytest.mark.parametrize(
    ("section", "key", "meaning"),
    [
        (
            "GatewayConfig",
            "drain",
            "How long requests in flight may take to finish after SIGTERM; then they end with an error.",
        ),
        (
            "SelectionRule",
            "json",
            "The path of the value in an answer that is, or contains, JSON, such as `$.verdict`.",
        ),
        ("Address", "host", "A host name or an IP address; empty: all interfaces."),
    ],
)
def test_an_editor_gets_the_meaning(section: str, key: str, meaning: str) -> None:
    assert (section, key, meaning) in set(described())


def test_a_meaning_stands_once_in_the_schema_of_its_key() -> None:
    drain = config_schema()["$defs"]["GatewayConfig"]["properties"]["drain"]
    assert drain["default"] == 30.0
    assert json.dumps(drain).count("SIGTERM") == 1
