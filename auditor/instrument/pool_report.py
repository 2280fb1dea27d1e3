"""Make the report of a pool as one document: its sizes, the tasks that it supports, its balance, and every check.

``auditor.report.pool`` makes a page of it, ``biasmeter pool`` a table. The same pool gives the same document.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.instrument.pool import BLANK, missing_for, record_of
from auditor.instrument.pool_measures import (
    blank_place,
    first_named,
    grouped,
    length_difference,
    mentions,
    reading_grade,
    similarities,
    trait,
)
from auditor.instrument.pool_words import content, reveals_gender
from auditor.metrics.estimate import MIN_STATEMENTS

#: Cosine similarity above which two claims count as the same. The closest pair of the shipped pool has 0.53. Of twelve
#: rewordings of its claims, ten have more than 0.55; the two that differ most have less, and a person must find them.
NEAR: Final = 0.55
#: A pool with a share between these counts as balanced; the check needs at least ``ENOUGH`` statements.
BALANCED: Final = (0.4, 0.6)
ENOUGH: Final = 10
#: The largest allowed difference of the options' mean lengths.
CHARACTERS: Final = 1.0
WORDS: Final = 0.25
#: The largest allowed share of scenes that have a word in common with the claim.
ECHO: Final = 0.05
#: The largest allowed share of statements with the blank in the same place.
ONE_PLACE: Final = 0.9
#: The highest allowed Flesch-Kincaid grades: of the pool on average, and of any statement with its scene.
MEAN_GRADE: Final = 8.0
HIGHEST_GRADE: Final = 12.0


class CheckResult(StrEnum):
    """The result of a check."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "not checked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check: its question, its finding, and the statements or categories concerned."""

    name: str
    asks: str
    outcome: CheckResult
    value: str = ""
    findings: Mapping[str, str] = field(default_factory=dict)


def check_pool(statements: Sequence[Statement]) -> tuple[Check, ...]:
    """Run every check, those that can fail first."""
    return tuple(check(statements) for check in _CHECKS)


def _judged(
    name: str, asks: str, *, bad: Mapping[str, str], of: int, worst: CheckResult = CheckResult.FAILED, value: str = ""
) -> Check:
    """Return the finished check: it holds if nothing bad was found, and is not made if there was nothing to check."""
    outcome = CheckResult.SKIPPED if of == 0 else worst if bad else CheckResult.PASSED
    return Check(name=name, asks=asks, outcome=outcome, value=value or f"{len(bad)} of {of}", findings=bad)


def _blank(statements: Sequence[Statement]) -> Check:
    applicable = [statement for statement in statements if statement.completion and statement.stereotype_option]
    bad = {}
    for statement in applicable:
        filled = (statement.stereotype_option or "").join(BLANK.split(statement.completion or ""))
        if filled.casefold() != statement.statement.casefold():
            bad[statement.id] = f"the completed sentence is not the statement: {filled}"
    return _judged("blank", "the completion with the stereotype's option is the statement", bad=bad, of=len(applicable))


def _scene(statements: Sequence[Statement]) -> Check:
    applicable = [statement for statement in statements if not missing_for(Task.CTO, statement)]
    bad = {}
    for statement in applicable:
        named = [place is not None for place in mentions(statement, statement.context)]
        if any(named) and not all(named):
            option = statement.stereotype_option if named[0] else statement.counter_option
            bad[statement.id] = f"names only {option}: {statement.context}"
    return _judged("scene", "no scene names one of the two groups alone", bad=bad, of=len(applicable))


def _question(statements: Sequence[Statement]) -> Check:
    applicable = [statement for statement in statements if not missing_for(Task.CTO, statement)]
    bad = {}
    for statement in applicable:
        text = statement.question or ""
        stereotype, counter = statement.stereotype_option or "", statement.counter_option or ""
        named = [place is not None for place in mentions(statement, text)]
        if named[0] != named[1]:
            bad[statement.id] = f"names only {stereotype if named[0] else counter}: {text}"
        elif reveals_gender(stereotype, counter, text):
            bad[statement.id] = f"a pronoun tells which: {text}"
    return _judged(
        "question", "no question names one of the groups, nor tells it by a pronoun", bad=bad, of=len(applicable)
    )


def _echo(statements: Sequence[Statement]) -> Check:
    applicable = [statement for statement in statements if not missing_for(Task.CTO, statement)]
    echoes = {}
    for statement in applicable:
        groups = content(statement.stereotype_option or "") | content(statement.counter_option or "")
        shared = content(trait(statement)) & content(statement.context or "") - groups
        if shared:
            echoes[statement.id] = f"shares {', '.join(sorted(shared))}: {statement.context}"
    bad = echoes if len(echoes) > ECHO * len(applicable) else {}
    asks = f"at most {100 * ECHO:g} % of the scenes repeat a word of the claim, which tells what will be asked"
    return _judged("echo", asks, bad=bad, of=len(applicable), value=f"{len(echoes)} of {len(applicable)}")


def _duplicates(statements: Sequence[Statement]) -> Check:
    pairs = similarities(statements)
    near = {f"{first} and {second}": f"cosine {cosine:.2f}" for cosine, first, second in pairs if cosine >= NEAR}
    closest = f"closest {pairs[0][0]:.2f}" if pairs else "nothing shared"
    asks = f"no two claims are nearly the same (cosine of their character n-grams under {NEAR})"
    return _judged("duplicates", asks, bad=near, of=len(statements), value=closest)


def _order(statements: Sequence[Statement]) -> Check:
    first = grouped(statements, first_named)
    counted = {name: values for name, values in first.items() if len(values) >= ENOUGH}
    shares = {name: values.count("stereotype") / len(values) for name, values in counted.items()}
    bad = {
        name: f"the stereotyped group is named first in {100 * share:.0f} %"
        for name, share in shares.items()
        if _off(share)
    }
    total = [value for values in first.values() for value in values]
    asks = "in each category the stereotyped group is named first in 40 to 60 % of the scenes"
    value = f"{100 * total.count('stereotype') / len(total):.0f} % first" if total else ""
    return _judged("order", asks, bad=bad, of=len(counted), value=value)


def _off(share: float) -> bool:
    return not BALANCED[0] <= share <= BALANCED[1]


def _length(statements: Sequence[Statement]) -> Check:
    known = [pair for pair in map(length_difference, statements) if pair is not None]
    asks = f"the stereotype's option is neither the longer nor the shorter one: means within {CHARACTERS:g} character"
    asks += f" and {WORDS:g} words, the longer one in 40 to 60 % of the pairs that differ"
    if len(known) < ENOUGH:
        return _judged("length", asks, bad={}, of=0, value=f"fewer than {ENOUGH} pairs")
    characters, words = (sum(pair[index] for pair in known) / len(known) for index in (0, 1))
    differing = [pair[0] for pair in known if pair[0]]
    longer = sum(each > 0 for each in differing) / len(differing) if differing else 0.5
    measured = {
        "characters": (f"{characters:+.2f} on average", abs(characters) > CHARACTERS),
        "words": (f"{words:+.2f} on average", abs(words) > WORDS),
        "longer": (f"the longer one in {100 * longer:.0f} %", len(differing) >= ENOUGH and _off(longer)),
    }
    bad = {name: text for name, (text, is_bad) in measured.items() if is_bad}
    value = f"{characters:+.2f} characters, {words:+.2f} words, longer in {100 * longer:.0f} %"
    return _judged("length", asks, bad=bad, of=len(known), value=value)


def _place(statements: Sequence[Statement]) -> Check:
    places = [place for place in map(blank_place, statements) if place]
    shares = {place: places.count(place) / len(places) for place in dict.fromkeys(places)}
    counted = shares if len(places) >= ENOUGH else {}
    bad = {place: f"{100 * share:.0f} % of the blanks" for place, share in counted.items() if share > ONE_PLACE}
    asks = f"at most {100 * ONE_PLACE:g} % of the blanks are in one place of the sentence"
    value = ", ".join(f"{places.count(place)} {place}" for place in ("start", "middle", "end"))
    return _judged("place", asks, bad=bad, of=len(counted), worst=CheckResult.WARNING, value=value)


def _readability(statements: Sequence[Statement]) -> Check:
    grades = {statement.id: reading_grade(statement) for statement in statements}
    mean = sum(grades.values()) / len(grades)
    bad = {name: f"grade {value:.1f}" for name, value in grades.items() if value > HIGHEST_GRADE}
    if mean > MEAN_GRADE:
        bad["all"] = f"grade {mean:.1f} on average"
    asks = f"plain English: Flesch-Kincaid grade up to {MEAN_GRADE:g} on average, {HIGHEST_GRADE:g} for any statement"
    value = f"{mean:.1f} on average"
    return _judged("readability", asks, bad=bad, of=len(grades), worst=CheckResult.WARNING, value=value)


def _sizes(statements: Sequence[Statement]) -> Check:
    sizes = {name: len(members) for name, members in grouped(statements, lambda statement: statement).items()}
    bad = {name: f"{size} statements" for name, size in sizes.items() if size < MIN_STATEMENTS}
    asks = f"every category has the {MIN_STATEMENTS} statements under which no rate is given for it"
    value = f"smallest {min(sizes.values())}"
    return _judged("sizes", asks, bad=bad, of=len(sizes), worst=CheckResult.WARNING, value=value)


def _complete(statements: Sequence[Statement]) -> Check:
    bad = {}
    for statement in statements:
        lacking = {name for task in Task for name in missing_for(task, statement)}
        if lacking:
            bad[statement.id] = f"lacks {', '.join(sorted(lacking))}"
    asks = "every statement can be asked in all six tasks"
    return _judged("complete", asks, bad=bad, of=len(statements), worst=CheckResult.WARNING)


_CHECKS: Final[tuple[Callable[[Sequence[Statement]], Check], ...]] = (
    _blank, _scene, _question, _echo, _duplicates, _order, _length, _complete, _sizes, _place, _readability,
)  # fmt: skip


SCHEMA: Final = "biasmeter.pool/1"
#: The number of most similar pairs of claims that the report shows.
CLOSEST: Final = 10


def pool_document(statements: Sequence[Statement], name: str, *, shipped: bool) -> dict[str, Any]:
    """Return the report of a pool.

    Parameters
    ----------
    statements
        Statements of the pool, at least one.
    name
        Name and version of the pool, or the file that it was read from.
    shipped
        Whether it is the shipped pool, whose licence and limits are known.
    """
    return {
        "schema": SCHEMA,
        "pool": name,
        "shipped": shipped,
        "n": len(statements),
        "n_intersectional": sum(statement.intersectional for statement in statements),
        "regions": dict(Counter(statement.region for statement in statements if statement.region).most_common()),
        "sources": dict(Counter(statement.source or "not named" for statement in statements).most_common()),
        "categories": _categories(statements),
        "tasks": [_task(task, statements) for task in Task],
        "checks": [_check(check) for check in check_pool(statements)],
        "closest": [
            {"one": first, "other": second, "cosine": cosine}
            for cosine, first, second in similarities(statements)[:CLOSEST]
        ],
        "statements": [
            record_of(statement) | {"tasks": {task: list(missing_for(task, statement)) for task in Task}}
            for statement in statements
        ],
    }


def _task(task: Task, statements: Sequence[Statement]) -> dict[str, Any]:
    missing = [fields for statement in statements if (fields := missing_for(task, statement))]
    return {
        "task": task,
        "n": len(statements) - len(missing),
        "missing": dict(Counter(field for fields in missing for field in fields).most_common()),
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "asks": check.asks,
        "outcome": check.outcome,
        "value": check.value,
        "findings": dict(check.findings),
    }


def _categories(statements: Sequence[Statement]) -> list[dict[str, Any]]:
    first, places = grouped(statements, first_named), grouped(statements, blank_place)
    lengths = grouped(statements, length_difference)
    return [
        {
            "category": name,
            "n": len(members),
            "n_intersectional": sum(statement.intersectional for statement in members),
            "n_regional": sum(statement.region is not None for statement in members),
            "first": _counts(first.get(name, []), ("stereotype", "counter")),
            "blank": _counts(places.get(name, []), ("start", "middle", "end")),
            "longer_by": _means(lengths.get(name, [])),
            "grade": sum(reading_grade(statement) for statement in members) / len(members),
        }
        for name, members in grouped(statements, lambda statement: statement).items()
    ]


def _counts(values: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    return {name: values.count(name) for name in names}


def _means(differences: Sequence[tuple[int, int]]) -> Mapping[str, float] | None:
    """Return the mean difference in length of the two options, in characters and in words."""
    if not differences:
        return None
    characters, words = (sum(pair[index] for pair in differences) / len(differences) for index in (0, 1))
    return {"characters": characters, "words": words}
