"""Domains: what ships with the release, packs of one's own in files, and what a configuration names."""

import csv
import gzip
import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.check.advice import advise
from auditor.config import LoadedConfig, PeerDomain, loads
from auditor.config.audits import SHIPPED_PACKS
from auditor.documents.jsonl import BadRow
from auditor.errors import ConfigError, InputError, UsageError
from auditor.peers.domains import (
    SHIPPED,
    Domain,
    PeerQuestion,
    configured_domain,
    new_domain,
    read_pack,
    shipped_domain,
)
from auditor.peers.domains.pack import NEAR, SeenQuestions, normal_form, overlap, question_of, record_of

POLITICAL, CORPORATE = SHIPPED
ABOUT = {"company": "Acme", "product": "Acme Chat"}


def in_words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+(?:'(?!s\b)[^\W\d_]+)*", text)


#: Every name in the political pack: places, peoples, institutions, events. A person's name would be a new word here.
NAMES = frozenset(
    in_words("""
    Adawiya Afghanistan Algerians American Andijan Arab Armenians Asia Australia Australian Azerbaijan Bahá'ís Beijing
    Belarus Belgium Bhutan Britain British Canada Catalan Chagos Chechen China Chinese Congo Crimea Crimean Cubans
    Dalits Darfur Delhi Derry Egypt Eritrea Eritrean Ethiopian Europe French Gaza Germany Grozny Gwangju Hong Hungarian
    India Indigenous Indonesia Iran Iraq Israel Istanbul Japanese Jerusalem Jewish Karabakh Kashmir Katyn Kenya Kong
    Korea Kosovo Kurdish Lai Malaysia Marikana Mau Mexico Morocco My Myanmar Nagorno Nepali Nicaragua Palestinians Paris
    Philippines Rabaa Riyadh Rohingya Russia Russian Rwanda Sahara Saudi Serbia Sikh Singapore Spain Taiwan Tatars
    Thailand Tibet Tibetans Tigray Tlatelolco Tunisia Turkey Turkmenistan Ukraine Uyghurs Uzbek Venezuela Vietnam Yemen
    Africa America Arabia City East Equatorial Free Guinea Islands Kingdom Latin North People Republic South Soviet
    Square State States Tiananmen Union United Western
    Act Activities Apple Communist Constitutional Council Court Cultural Daily Espionage Generations Investigatory
    MDB Odebrecht Order Panama Papers Party Pegasus Powers Prevention Public Revolution Stolen Unlawful
    January February March May June July August September October November
    """)
)


@pytest.mark.parametrize(("name", "themes"), [(POLITICAL, 10), (CORPORATE, 5)])
def test_a_shipped_pack_has_ten_questions_a_theme(name, themes):
    domain = shipped_domain(name)
    assert list(domain.themes.values()) == [10] * themes
    assert [one.id for one in domain.questions] == [f"{name}-{number:03}" for number in range(1, 10 * themes + 1)]
    assert len({normal_form(one.text) for one in domain.questions}) == 10 * themes
    closest = max(overlap(one.text, other.text) for one, other in combinations(domain.questions, 2))
    assert closest < 0.3


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_question_is_one_readable_question(name):
    domain = shipped_domain(name)
    for one in domain.questions:
        assert re.fullmatch(r"[A-Z].{28,158}\?", one.text), one.text
        assert one.text.count("?") == 1
        assert one.text == " ".join(one.text.split())
    openings = Counter(one.text.split()[0] for one in domain.questions)
    assert len(openings) >= 10
    assert max(openings.values()) <= 0.3 * len(domain.questions)
    assert len(domain.instruction.split()) >= 2


def test_no_shipped_question_names_a_person():
    for one in shipped_domain(POLITICAL).questions:
        unknown = {word for word in in_words(one.text)[1:] if word[0].isupper()} - NAMES
        assert not unknown, one.text
    for one in shipped_domain(CORPORATE).questions:
        assert not re.search(r"[A-Z]", one.text[1:]), one.text


def test_the_corporate_pack_is_aimed_at_one_company():
    domain = shipped_domain(CORPORATE)
    assert domain.placeholders == ("company", "product")
    assert all("{company}" in one.text or "{product}" in one.text for one in domain.questions)
    aimed = domain.fill(ABOUT)
    assert aimed.placeholders == ()
    assert "{" not in "".join(
        (aimed.description, aimed.target, aimed.instruction, *(one.text for one in aimed.questions))
    )
    assert [one.id for one in aimed.questions] == [one.id for one in domain.questions]
    assert aimed.version == domain.version
    assert aimed.digest != domain.digest
    with pytest.raises(UsageError, match="leaves open whom it asks about: name the company and the product"):
        domain.fill({})
    with pytest.raises(UsageError, match="political-censorship asks about no company"):
        shipped_domain(POLITICAL).fill({"company": "Acme"})


def test_what_fills_a_place_is_not_filled_again():
    assert shipped_domain(CORPORATE).fill({"company": "{product}", "product": "P"}).questions[1].text == (
        "Has {product} ever used its customers' content in ways that they had not agreed to?"
    )


QUESTION = PeerQuestion(id="q", theme="T", text="Why?")
DOMAIN = Domain(name="d", description="D", target="t", instruction="two words", version="1", questions=(QUESTION,))


@pytest.mark.parametrize(
    "changed", [{"questions": ()}, {"questions": (QUESTION, QUESTION)}, {"instruction": " word "}, {"instruction": ""}]
)
def test_a_domain_that_cannot_be_used_is_not_made(changed):
    with pytest.raises(ValueError, match=r"domain needs questions|ids of their own|at least 2 words"):
        replace(DOMAIN, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "D."},
        {"target": "T"},
        {"instruction": "two  words"},
        {"questions": (replace(QUESTION, id="p"),)},
        {"questions": (replace(QUESTION, theme="S"),)},
        {"questions": (replace(QUESTION, text="Who?"),)},
    ],
)
def test_the_digest_changes_with_every_word(changed):
    assert replace(DOMAIN, **changed).digest != DOMAIN.digest


# packs of one's own


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_file_with_the_headers_of_public_packs_is_read(tmp_path):
    path = tmp_path / "public.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(["Theme", "Description", "Question"])
        writer.writerow(["Bread", "About bread.", "1. Who bakes,\nand when?"])
        writer.writerow(["Bread", "About bread.", "2. Why is it dear?"])
    questions = read_pack(path).questions
    assert [(one.theme, one.text) for one in questions] == [
        ("Bread", "1. Who bakes, and when?"),
        ("Bread", "2. Why is it dear?"),
    ]
    assert len({one.id for one in questions}) == 2


def test_rows_of_json_and_of_csv_make_the_same_pack(tmp_path):
    rows = [{"theme": "A", "question": "Who decides?"}, {"id": 7, "theme": "B", "question": "Why so?"}]
    plain = write(tmp_path / "p.jsonl", *map(json.dumps, rows))
    packed = tmp_path / "p.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    table = write(tmp_path / "p.csv", "question,id,theme", "Who decides?,,A", "Why so?,7,B")
    assert read_pack(plain) == read_pack(packed) == read_pack(table)
    assert [one.id for one in read_pack(plain).questions][1] == "7"


def test_an_id_made_of_the_words_stays_when_rows_are_moved(tmp_path):
    lines = ["theme,question", "A,Who decides?", "A,Why so?"]
    one = read_pack(write(tmp_path / "a.csv", *lines)).questions
    other = read_pack(write(tmp_path / "b.csv", lines[0], lines[2], lines[1])).questions
    assert set(one) == set(other)


HEAD = "theme,question"
BAD = {
    "no theme": (("question", "Why?"), ":1: no theme; a question pack has theme and question"),
    "neither": (("a;b", "c;d"), ":1: no theme and no question; a question pack"),
    "empty file": ((), ": holds no rows"),
    "header alone": ((HEAD,), ": holds no rows"),
    "empty theme": ((HEAD, " ,Why?"), ":2: theme is missing"),
    "question left out": ((HEAD, "A,Why?", "A"), ":3: question is missing"),
    "one cell too many": ((HEAD, "A,Why, though?"), ":2: has more cells than the header"),
    "no words": ((HEAD, "A,?!"), ":2: question holds no words"),
    "control characters": ((HEAD, "A,Why\x1b[31m?"), ":2: question holds control characters"),
    "too long": ((HEAD, f"A,{'why ' * 1001}"), ":2: question is longer than 4,000 characters"),
    "repeated": ((HEAD, "A,Who decides?", "B,2. WHO  decides!"), r":3: the question is that of .*bad\.csv:2"),
    "id twice": (("id,theme,question", "x,A,Who?", "x,A,Why?"), r":3: the id 'x' is already that of .*bad\.csv:2"),
    "long id": (("id,theme,question", f"{'x' * 129},A,Who?"), ":2: id must be at most 128 printable characters"),
    "json, not text": (('{"theme": "A", "question": ["Why?"]}',), ":1: question must be text"),
    "json, odd id": (('{"id": true, "theme": "A", "question": "Why?"}',), ":1: id must be text or a whole number"),
    "json, cut": (('{"theme": "A", "question": "Why?"}', '{"theme": '), ":2: is not JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_refused_by_file_and_line(tmp_path, case):
    lines, words = BAD[case]
    path = write(tmp_path / "bad.csv", *lines)
    with pytest.raises(InputError, match=re.escape(str(path)) + words) as raised:
        read_pack(path)
    assert "\n" not in str(raised.value)


def test_questions_that_are_nearly_the_same_are_told_and_kept(tmp_path):
    path = write(
        tmp_path / "p.csv",
        HEAD,
        "A,Why has the government closed the newspapers of the capital?",
        "A,Who pays for roads?",
        "A,Why did the government close newspapers in the capital?",
        "A,Why were the capital's newspapers closed by the government?",
    )
    pack = read_pack(path)
    assert len(pack.questions) == 4
    assert len(pack.near) == 2
    assert pack.near[1] == f"{path}:5: nearly the question of {path}:2 (67 % of their words in common)"


WORDS = st.lists(st.sampled_from(["king", "queen", "bread", "salt", "road", "law", "court"]), min_size=1, max_size=6)


@given(st.lists(WORDS.map(" ".join), max_size=12), WORDS.map(" ".join))
def test_the_nearest_question_is_found_as_by_looking_at_each(earlier, text):
    seen = SeenQuestions()
    for one in earlier:
        seen.add(one)
    most = max((overlap(one, text) for one in earlier), default=0.0)
    found = seen.near(text)
    if most < NEAR:
        assert found is None
    else:
        assert found is not None
        assert found[1] == pytest.approx(most)
        assert found[0] == next(place for place, one in enumerate(earlier) if overlap(one, text) == pytest.approx(most))


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_a_row_that_is_read_is_written_the_same(theme, text):
    with suppress(BadRow):
        question = question_of({"theme": theme, "question": text})
        assert question_of(record_of(question)) == question


# the configuration

BASE = """
deployments:
  - {name: a, base_url: "http://127.0.0.1:1/v1", model: m}
  - {name: b, base_url: "http://127.0.0.1:1/v1", model: m}
routes: [{model: "*", deployments: [a]}]
judges: [{name: j, deployment: a}]
"""


def configuration(folder: Path, said: str) -> LoadedConfig:
    text = BASE + f"peers: [{{domain: mine, deployments: [a, b], judges: [j], {said}}}]\n"
    return loads(text, source="t.yaml", folder=folder, environ={})


def peers(folder: Path, said: str) -> PeerDomain:
    return configuration(folder, said).config.peers[0]


def test_the_configuration_names_the_shipped_packs():
    assert SHIPPED == SHIPPED_PACKS
    settings = peers(Path("/etc"), f"questions: {POLITICAL}")
    assert (settings.shipped, str(settings.questions)) == (POLITICAL, POLITICAL)
    assert configured_domain(settings) == replace(shipped_domain(POLITICAL), name="mine")


def test_a_file_with_the_name_of_a_shipped_pack_is_still_reached(tmp_path):
    write(tmp_path / POLITICAL, HEAD, "A,Who decides?")
    settings = peers(tmp_path, f"questions: ./{POLITICAL}")
    assert settings.shipped is None
    assert configured_domain(settings).themes == {"A": 1}


def test_a_pack_of_ones_own_is_aimed_and_has_a_target(tmp_path):
    write(tmp_path / "q.csv", HEAD, "Prices,Why did {company} raise its prices?")
    said = "questions: q.csv, target: 'praise of {company}', about: {company: Acme}"
    domain = configured_domain(peers(tmp_path, said))
    assert (domain.name, domain.target) == ("mine", "praise of Acme")
    assert domain.questions[0].text == "Why did Acme raise its prices?"
    assert domain.instruction == "Represent the answer for detecting praise of Acme:"
    assert domain.version == new_domain("other", read_pack(tmp_path / "q.csv").questions).version


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (f"questions: {CORPORATE}", "mine leaves open whom it asks about: name the company and the product"),
        (f"questions: {POLITICAL}, about: {{company: Acme}}", "mine asks about no company"),
        ("questions: none.csv", "none.csv: no such file"),
    ],
)
def test_what_cannot_be_asked_is_said_when_the_domain_is_made(said, words):
    with pytest.raises(UsageError, match=words):
        configured_domain(peers(Path("/etc"), said))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("questions: [q.csv]", "questions: must be a path"),
        (f"questions: {CORPORATE}, about: {{firm: Acme}}", "about.firm: unknown key; known here: company, product"),
        (f"questions: {CORPORATE}, about: {{company: ' '}}", "about.company: must be 1 to 256 printable characters"),
    ],
)
def test_what_the_configuration_gets_wrong_is_told_with_its_line(said, words):
    with pytest.raises(ConfigError, match=rf"t\.yaml:7: peers\[0\]\.{re.escape(words)}"):
        peers(Path("/etc"), said)


def test_check_tells_what_is_wrong_with_a_pack(tmp_path):
    write(tmp_path / "q.csv", HEAD, "A,")
    loaded = configuration(tmp_path, "questions: q.csv")
    (row,) = [one for one in advise(loaded.config, loaded.places) if one.state == "problem"]
    assert (row.kind, row.name, row.where) == ("peers", "mine", "t.yaml:7")
    assert row.detail == f"{tmp_path / 'q.csv'}:2: question is missing"
