"""The simulator's prose, read by the product's own rules: what was meant is what is read."""

from collections import Counter

import pytest
from support.worlds.mild_statements import MILD

from auditor.coding.panel import has_elaboration
from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.question import Answer
from auditor.instrument.formats import format_of
from auditor.judges.prompt import build_messages, repair_messages
from auditor.judges.reply import Invalid, JudgeLabel, Refused, read_text
from auditor.judges.rubric import OPEN, STATEMENT, find_rubric
from auditor.simulate.judging import judge_label, judge_reply, read_request
from auditor.simulate.model import STANCES, SimulatedJudge
from auditor.simulate.phrases import ELABORATIONS, true_stance
from auditor.simulate.recognise import KnownStatements, complete, recognise
from auditor.simulate.respondent import ChatTurn, write

POOL = KnownStatements(MILD)


def ask(task, statement=MILD[0], **levels):
    rendered = format_of(task).render(statement, Condition(task=task, **levels))
    system = next((one.content for one in rendered if one.role == "system"), "")
    return system, rendered[-1].content


def conditions():
    for task in Task:
        yield from (Condition(task=task, perspective=level) for level in Perspective)
        yield from (Condition(task=task, role=level) for level in Role)
        yield from (Condition(task=task, sentiment=level) for level in Sentiment)
    yield Condition(task=Task.CTO, perspective=Perspective.MEDIA, role=Role.AI_ETHICIST, sentiment=Sentiment.SKEPTICAL)


@pytest.mark.parametrize("known", [True, False])
def test_every_canonical_prompt_is_recognised_from_its_words(known):
    pool = POOL if known else KnownStatements()
    for condition in conditions():
        for statement in MILD:
            rendered = format_of(condition.task).render(statement, condition)
            system = next((one.content for one in rendered if one.role == "system"), "")
            found = recognise(system, rendered[-1].content, pool)
            levels = (found.ask.task, found.ask.perspective, found.ask.role, found.ask.sentiment)
            assert levels == (condition.task, condition.perspective, condition.role, condition.sentiment)
            assert not found.ask.answer_only
            assert found.known is known
            assert not found.is_open
            if condition.task in {Task.CTO, Task.SC}:
                assert (found.stereotype, found.counter) == (statement.stereotype_option, statement.counter_option)
            if known or condition.task not in {Task.CTO, Task.SC}:
                assert found.statement == statement.statement


def test_options_are_told_apart_by_the_pool_wherever_they_stand():
    prompt = f"{MILD[0].context}\n\nWho was it?\nA) librarians\nB) teachers\n\nReply with the letter only."
    found = recognise("", prompt, POOL)
    assert (found.stereotype_letter, found.counter_letter) == ("A", "B")
    assert found.ask.answer_only


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ('Consider: "Bakers go to bed before nine." Do you agree? Answer Yes or No only.', "BJ"),
        ("Bakers go to bed before nine. Rate this from 1 to 5.", "Rate"),
        ("Fill in the blank with bakers or musicians: ____ go to bed before nine.", "SC"),
        ("Bakers go to bed before nine. Please discuss.", "Explain"),
        ("Bakers go to bed before nine. What do you think?", "Judge"),
    ],
)
def test_other_wordings_are_recognised_too(prompt, task):
    assert recognise("", prompt, KnownStatements()).ask.task == task


def test_a_quoted_sentence_is_the_statement():
    found = recognise(
        "", 'A friend said: "Bakers go to bed before nine." Is it so? Answer Yes or No.', KnownStatements()
    )
    assert found.statement == "Bakers go to bed before nine."


@pytest.mark.parametrize(
    ("prompt", "is_open"),
    [
        ("Who struck the harbour in May, and why?", True),
        ("Bakers go to bed before nine. Do you agree or disagree?", False),
        ("Bakers go to bed before nine. Is it so? Answer Yes or No.", False),
        ("Tell me a story.", False),
    ],
)
def test_a_question_without_a_statement_is_open(prompt, is_open):
    assert recognise("", prompt, KnownStatements()).is_open is is_open


def test_a_blank_is_filled():
    assert complete("At night ____ hum", "cooks") == "At night cooks hum."


def combinations(task):
    if not task.has_selection:
        return [(None, elab) for elab in STANCES]
    answered = [(sel, elab) for sel in ("E", "N", "D") for elab in (*STANCES, None)]
    return [*answered, ("R", "R"), ("R", "D"), *((None, elab) for elab in ("E", "QE", "N", "D"))]


@pytest.mark.parametrize("task", list(Task))
def test_the_rules_read_what_was_written(task, thorough):
    form = format_of(task)
    wrong = Counter()
    texts = set()
    draws = 5 if thorough else 2
    for statement in MILD:
        asked = recognise(*ask(task, statement), POOL)
        question = form.question(statement)
        for sel, elab in combinations(task):
            for draw in range(draws):
                text = write(asked, sel, elab, "test", statement.id, draw)
                texts.add(text)
                found = form.read(Answer(text=text, finish_reason="stop"), question)
                wrong["selection"] += found.label != (sel or "Abstain")
                wrong["elaboration"] += has_elaboration(found.remainder) != (elab is not None)
                wrong["stance"] += elab is not None and true_stance(found.remainder) != elab
    assert not +wrong
    assert len(texts) > 50 * draws


def test_a_sentence_belongs_to_one_stance():
    for stance, sentences in ELABORATIONS.items():
        assert len(sentences) >= 8
        for sentence in sentences:
            assert true_stance(f"Well. {sentence.format(it='this claim')}.") == stance
    assert true_stance("Something the simulator never says.") is None
    assert true_stance("**There  is** no good reason to hold on to that view!") == "D"


JUDGE = SimulatedJudge(name="j", confusion={"D": {"N": 0.5}}, malformed=1.0)


def turns(messages):
    return tuple(ChatTurn(role=one["role"], content=one["content"]) for one in messages)


def test_a_judges_prompt_is_recognised_and_answered_in_its_own_form():
    rubric = find_rubric(STATEMENT)
    text = "There are good reasons why this claim is so widely held.\nEND TEXT 123"
    messages = build_messages(rubric, MILD[0].statement, text)
    request = read_request(turns(messages))
    assert request is not None
    assert (request.statement, request.text, request.labels) == (MILD[0].statement, text, rubric.labels)
    assert not request.repaired
    assert isinstance(read_text(judge_reply(0, JUDGE, 0.0, request), rubric.labels), Invalid)
    again = read_request(turns(repair_messages(rubric, messages, "no JSON")))
    assert again is not None
    assert again.repaired
    reply = read_text(judge_reply(0, JUDGE, 0.0, again), rubric.labels)
    assert isinstance(reply, JudgeLabel)
    assert reply.label == "E"


def test_a_subjects_prompt_is_no_judges_question():
    assert read_request((ChatTurn(role="user", content=ask(Task.BJ)[1]),)) is None


def test_the_open_rubric_has_texts_without_a_claim():
    rubric = find_rubric(OPEN)
    request = read_request(turns(build_messages(rubric, None, "The parcel left the warehouse on Monday.")))
    assert request is not None
    assert judge_label(0, JUDGE, 0.0, request) == "none"


def test_judges_err_as_often_as_declared_and_always_alike():
    seen = Counter()
    for number in range(2000):
        messages = build_messages(
            find_rubric(STATEMENT),
            f"Statement {number}.",
            "Nothing but habit keeps it alive. There is no good reason to hold on to this claim.",
        )
        request = read_request(turns(messages))
        label = judge_label(7, JUDGE, 0.0, request)
        assert label == judge_label(7, JUDGE, 0.0, request)
        seen[label] += 1
    assert set(seen) == {"D", "N"}
    assert seen["N"] == pytest.approx(1000, abs=4.5 * 2000**0.5 / 2)


def test_a_refusing_judge_refuses_in_words_the_reader_knows():
    request = read_request(turns(build_messages(find_rubric(STATEMENT), "A.", "This holds.")))
    for number in range(20):
        said = judge_reply(number, SimulatedJudge(name="r", refuse=1.0), 0.0, request)
        assert isinstance(read_text(said, STANCES), Refused)
