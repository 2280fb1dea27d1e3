"""The shipped pool keeps its own rules, and a user's pool is read or refused with file and line."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from support.paths import DOCS, ROOT
from support.subtest_items import for_each

from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.errors import InputError, UsageError
from auditor.instrument.asking import ask
from auditor.instrument.designs import Design
from auditor.instrument.loaders import load
from auditor.instrument.pool import (
    BLANK,
    missing_for,
    pool_of_design,
    read_pool,
    record_of,
    shipped_pool,
    statement_of,
)
from auditor.instrument.pool_measures import first_named, mentions
from auditor.instrument.pool_report import CheckResult, check_pool
from auditor.instrument.templates import find_template
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.simulate.config import load as load_scenario

POOL = shipped_pool("biasmeter/1")
SIZES = {
    "gender": 25, "race_ethnicity": 25, "religion": 20, "sexual_orientation": 20, "nationality": 20, "age": 20,
    "socioeconomic": 20, "disability": 15, "body_image": 15, "political": 20,
}  # fmt: skip

one_statement = for_each(POOL, lambda one: one.id)


def test_the_categories_have_the_sizes_of_the_protocol() -> None:
    assert Counter(one.category for one in POOL) == SIZES
    assert len(POOL) == 200


def test_the_first_half_alone_is_balanced_over_the_categories() -> None:
    """Positions never change either: a panel rotates its templates by them, and half a pool is a smaller audit."""
    assert Counter(one.category for one in POOL[:100]) == dict.fromkeys(SIZES, 10)


def test_ids_and_texts_are_unique() -> None:
    for field in ("id", "statement", "context", "question", "completion"):
        values = [getattr(one, field) for one in POOL]
        assert len(set(values)) == len(values), field


@one_statement
def test_every_field_of_the_record_is_filled(statement: Statement) -> None:
    record = record_of(statement)
    assert list(record) == [
        "id", "category", "statement", "stereotype_option", "counter_option", "context", "question", "completion",
        "region", "intersectional", "source",
    ]  # fmt: skip
    assert all(record[name] for name in set(record) - {"region", "intersectional"})
    assert record["source"] == "biasmeter/1"
    assert not any(missing_for(task, statement) for task in Task)


@one_statement
def test_a_statement_begins_and_ends_as_a_sentence_and_names_one_group(statement: Statement) -> None:
    assert statement.stereotype_option
    assert statement.counter_option
    filled = statement.stereotype_option.join(BLANK.split(statement.completion or ""))
    assert filled[0].upper() + filled[1:] == statement.statement
    assert statement.statement.endswith(".")
    assert statement.counter_option.casefold() not in statement.statement.casefold().split()


@one_statement
def test_the_scene_names_both_people_and_the_question_asks_for_the_group(statement: Statement) -> None:
    assert all(place is not None for place in mentions(statement, statement.context))
    assert statement.question
    assert statement.question.startswith("Which group does the ")
    assert statement.question.endswith(" belong to?")


def test_the_shipped_pool_passes_every_check() -> None:
    failed = {check.name: dict(check.findings) for check in check_pool(POOL) if check.outcome is not CheckResult.PASSED}
    assert failed == {}


def test_each_category_names_people_of_two_disadvantages_and_enough_of_all_do_for_a_number() -> None:
    joined = Counter(one.category for one in POOL if one.intersectional)
    assert set(joined) == set(SIZES)
    assert joined.total() == 30
    assert Counter(one.region for one in POOL)["US"] >= MIN_STATEMENTS


def test_the_file_is_what_its_records_say() -> None:
    path = ROOT / "auditor" / "instrument" / "pool.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [record_of(one) for one in POOL]


def test_the_data_card_warns_first() -> None:
    card = (DOCS / "pool.md").read_text(encoding="utf-8")
    assert "Content warning" in card.split("\n\n")[1]
    assert "CC-BY-4.0" in card
    assert "not for training" in card.casefold()


# -- the revised pool ----------------------------------------------------------------------------------------------

REVISED = shipped_pool("biasmeter/1.1")
#: Statements that a specialist's reading found wanting.
FAULTY = {
    "gender-17", "political-03", "disability-15", "disability-11", "age-18", "body-14", "nationality-17",
    "orientation-15", "orientation-13", "nationality-01",
}  # fmt: skip


def test_a_changed_record_has_a_new_id_and_keeps_its_place() -> None:
    assert len(REVISED) == len(POOL)
    for old, new in zip(POOL, REVISED, strict=True):
        same = {**record_of(old), "source": None} == {**record_of(new), "source": None}
        assert new.id == (old.id if same else f"{old.id}b")
        assert (new.category, new.source) == (old.category, "biasmeter/1.1")
    assert {new.id.removesuffix("b") for new in REVISED if new.id.endswith("b")} >= FAULTY


def test_the_revised_pool_passes_every_check_and_is_complete() -> None:
    failed = {
        check.name: dict(check.findings) for check in check_pool(REVISED) if check.outcome is not CheckResult.PASSED
    }
    assert failed == {}
    for statement in REVISED:
        assert not any(missing_for(task, statement) for task in Task)
        assert all(place is not None for place in mentions(statement, statement.context))
        filled = (statement.stereotype_option or "").join(BLANK.split(statement.completion or ""))
        assert filled[0].upper() + filled[1:] == statement.statement


@pytest.mark.parametrize("half", [slice(0, 100), slice(100, 200)], ids=["first hundred", "second hundred"])
def test_each_group_is_named_first_in_half_of_the_scenes_of_a_category(half: slice) -> None:
    first = Counter((one.category, first_named(one)) for one in REVISED[half])
    for category in SIZES:
        assert abs(first[category, "stereotype"] - first[category, "counter"]) <= 1, category


def test_each_group_is_named_first_in_half_of_the_scenes_of_every_prefix() -> None:
    """The first hundred scenes of 1.0 name the counter group first in 67."""
    assert Counter(map(first_named, POOL[:100]))["counter"] == 67
    named = [first_named(one) == "counter" for one in REVISED]
    assert abs(sum(named) - 100) <= 1
    assert all(abs(sum(named[:end]) - end / 2) <= 2 for end in range(1, 201))
    assert all(abs(sum(named[start : start + 100]) - 50) <= 2 for start in range(101))


def test_no_group_is_compared_with_a_residual_or_with_health() -> None:
    for one in REVISED:
        counter = one.counter_option or ""
        assert not re.search(r"\b(?:other|others|another|healthy|good health|mental illness)\b", counter), one.id
        assert "healthy" not in one.statement


def test_plans_ask_the_revised_pool_and_the_papers_own_designs_the_first() -> None:
    assert shipped_pool() == REVISED
    for design in Design:
        assert pool_of_design(design) == (POOL if design in {Design.OAT, Design.FACTORIAL} else REVISED), design
        assert pool_of_design(design, "biasmeter/1") == POOL


def test_a_simulated_deployment_knows_both_versions() -> None:
    known = load_scenario().pool
    for pool in (POOL, REVISED):
        for one in pool:
            prompt = ask(one, find_template("SC-00"))[-1].content
            assert (known.find(prompt) or one).counter_option == one.counter_option, one.id


def test_a_shipped_pool_is_loaded_by_its_name() -> None:
    assert load(Path("biasmeter/1.1")).statements == REVISED
    assert load(Path("biasmeter/1")).statements == POOL


# -- pools of one's own --------------------------------------------------------------------------------------------

RECORD = {
    "id": "x-1",
    "category": "trades",
    "statement": "Bakers rise early.",
    "stereotype_option": "bakers",
    "counter_option": "clerks",
    "context": "A baker and a clerk share a flat.",
    "question": "Which group does the one who was up at four belong to?",
    "completion": "____ rise early.",
    "intersectional": False,
}


def test_a_pool_of_ones_own_in_jsonl_and_csv(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "mine.jsonl.gz").write_bytes(gzip.compress(json.dumps(RECORD).encode()))
    cells = {**RECORD, "intersectional": "false", "notes": 'with a comma, and "quotes"'}
    quoted = ['"' + str(cell).replace('"', '""') + '"' for cell in cells.values()]
    (tmp_path / "mine.csv").write_text("\ufeff" + ",".join(cells) + "\r\n" + ",".join(quoted) + "\r\n")
    expected = (statement_of(dict(RECORD)),)
    for name in ("mine.jsonl", "mine.jsonl.gz", "mine.csv"):
        assert read_pool(tmp_path / name) == expected
    assert record_of(expected[0]) == {**RECORD, "region": None, "source": None}


def test_only_id_and_statement_are_always_needed() -> None:
    statement = statement_of({"id": 7, "statement": "Bakers rise early."})
    assert statement.id == "7"
    assert missing_for(Task.BJ, statement) == ()
    assert missing_for(Task.SC, statement) == ("stereotype_option", "counter_option", "completion")
    assert missing_for(Task.CTO, statement) == ("stereotype_option", "counter_option", "context", "question")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": None}, "id is missing"),
        ({"id": " "}, "id is missing"),
        ({"id": "x" * 129}, "id must be at most 128 printable characters"),
        ({"statement": ""}, "statement is missing"),
        ({"statement": 3}, "statement must be text"),
        ({"context": "a\0b"}, "context holds a null character"),
        ({"counter_option": None}, "stereotype_option and counter_option go together; one is missing"),
        ({"counter_option": "Bakers"}, "stereotype_option and counter_option are the same"),
        ({"completion": "Bakers rise early."}, "completion must contain exactly one blank, written ____"),
        ({"completion": "____ rise ____."}, "completion must contain exactly one blank, written ____"),
        ({"intersectional": "maybe"}, "intersectional must be true or false"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = tmp_path / "mine.jsonl"
    good = {**RECORD, "id": "x-0", "statement": "Clerks rise late."}
    path.write_text(json.dumps(good) + "\n\n" + json.dumps({**RECORD, **change}) + "\n")
    with pytest.raises(InputError) as caught:
        read_pool(path)
    assert str(caught.value) == f"{path}:3: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,category\n1,2\n", ":1: the header names no column 'statement'"),
        ("id,statement\n1,a.\n2,b.,c\n", ":3: has more cells than the header"),
        ("id,statement\n1,a.\n1,b.\n", ":3: the id '1' is already that of line 2"),
        ("id,statement\n1,a.\n2, A.\n", ":3: the statement 'a.' is already that of line 2"),
        ('id,statement\n1,"a"b\n', ":2: is not CSV: ',' expected after '\"'"),
        ("id,statement\n", ": holds no rows"),
    ],
)
def test_a_bad_csv_is_named_by_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_pool(path)
    assert str(caught.value) == f"{path}{said}"


def test_a_pool_that_is_not_there(tmp_path: Path) -> None:
    for name in ("none.csv", "none.jsonl"):
        with pytest.raises(UsageError, match="no such file"):
            read_pool(tmp_path / name)
    (tmp_path / "latin.csv").write_bytes(b"id,statement\n1,caf\xe9\n")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_pool(tmp_path / "latin.csv")
