"""The lexicon: what is shipped is balanced and sound, and a user's file adds to it."""

import pytest

from auditor.errors import AuditError, UsageError
from replay.counterfactual.lexicon import read_lexicon
from replay.counterfactual.swap import read_swap, swap_text

LEXICON = read_lexicon()


def test_every_origin_has_as_many_names_of_women_as_of_men():
    for origin in LEXICON.origins:
        women, men = (
            [name for name in LEXICON.names.values() if (name.origin, name.gender) == (origin, gender)]
            for gender in ("female", "male")
        )
        assert abs(len(women) - len(men)) <= 1, (origin, len(women), len(men))
        assert min(len(LEXICON.drawable(origin, gender)) for gender in ("female", "male")) >= 15


def test_words_that_are_also_something_else_are_never_drawn():
    unclear = LEXICON.also_words | LEXICON.also_places
    assert unclear <= LEXICON.names.keys()
    assert {"will", "grace", "may", "mark", "hope"} <= unclear
    for origin in LEXICON.origins:
        assert not unclear & {name.lower() for name in LEXICON.drawable(origin, "female")}


def test_every_axis_names_its_groups_in_every_row():
    assert LEXICON.axes.keys() >= {"gender", "religion", "nationality", "age", "orientation", "disability"}
    for axis in LEXICON.axes.values():
        assert axis.rows
        assert all(len(row.words) == len(axis.groups) for row in axis.rows)


def test_a_users_file_adds_rows_names_and_axes(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "names: {norse: {female: Sigrid Ingrid, male: Thorsten Bjorn}}\n"
        "axes:\n"
        "  gender: {groups: [female, male, neutral], nouns: [[alumna/alumnae, alumnus/alumni, graduate]]}\n"
        "  town: {groups: [north, south], nouns: [[northerner, southerner]]}\n"
    )
    lexicon = read_lexicon(own)

    def swapped(text, swap):
        return swap_text(text, read_swap(swap, lexicon), lexicon).texts[0]

    assert swapped("The alumni met.", "gender:male>female") == "The alumnae met."
    assert swapped("Are northerners kind?", "town:north>south") == "Are southerners kind?"
    assert swapped("My brother Thorsten rang.", "gender:male>female") in {
        f"My sister {name} rang." for name in ("Sigrid", "Ingrid")
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "own.yaml:1:1: not valid YAML"),
        ("[1]", "own.yaml:1: must be a mapping"),
        ("size: 1", "own.yaml: size: unknown"),
        ("names: {x: {other: A}}", "names.x.other: must be female or male"),
        ("names: {x: {female: [A]}}", "names.x.female: must be words with spaces between"),
        ("figures: [A]", "figures: must be phrases with commas between"),
        ("axes: {t: {groups: [a]}}", "axes.t.groups: must list two groups or more"),
        ("axes: {origin: {groups: [a, b]}}", "axes.origin.groups"),
        ("axes: {t: {groups: [a, b], nouns: [[x]]}}", r"axes.t.nouns\[0\]: must have 2 words"),
        ("axes: {gender: {groups: [a, b]}}", "axes.gender.groups: .* are not the groups named before"),
    ],
)
def test_a_bad_file_is_named_with_its_member(tmp_path, text, said):
    own = tmp_path / "own.yaml"
    own.write_text(text)
    with pytest.raises(AuditError, match=said):
        read_lexicon(own)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none\.yaml: no such file"):
        read_lexicon(tmp_path / "none.yaml")
