"""Drafting the questions of a domain: a deployment behind a real server that answers as models do."""

import json
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.gateway_app import AUDIT_SECRET, served
from support.servers.judge_server import JudgeServer, Say, completion, error, running, serve
from typer.testing import CliRunner, Result

from auditor.access import GatewayAccess
from auditor.config import Config
from auditor.errors import AuditError, JudgeUnavailable, UsageError
from auditor.judges.asking import Asker
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.judges.reply import Invalid, Refused
from auditor.peers.domains import PeerQuestion, read_pack
from auditor.peers.domains.pack import question_of
from auditor.peers.drafts import PROMPTS, Idea, read_questions, read_themes
from auditor.peers.generate import ROUNDS, PackRequest, endpoint_of, expected_cost, generate, highest_cost
from biasmeter.commands.main import app

THEMES = ("Printing", "Courts", "Schools")
ORDER = PackRequest(name="press", description="Who may say what.", themes=3, per_theme=4, seed=7)


def themes(*names: str) -> str:
    return json.dumps({"themes": [{"name": name, "description": f"All about {name}"} for name in names]})


def question(theme: str, number: int) -> str:
    thing = f"{theme.lower()}{chr(ord('a') + number)}"
    return f"Who decides on {thing} and what {thing}ry costs?"


def questions(theme: str, *numbers: int) -> str:
    return json.dumps({"questions": [question(theme, number) for number in numbers]})


def asked(body) -> tuple[str | None, int]:
    """The theme that is asked about, and the round."""
    said = body["messages"][1]["content"]
    theme = re.search(r"about this theme: (\w+)\.", said)
    draft = re.search(r"This is draft \d+\.(\d+);", said)
    assert draft
    return (theme[1] if theme else None), int(draft[1])


def model(**by_theme: Callable[[int], str | Say]) -> Callable[..., Say]:
    """A model that answers well, but about these themes as it is told, by round."""

    def answer(body) -> Say:
        theme, number = asked(body)
        if theme is None:
            return completion(themes(*THEMES))
        said = by_theme[theme](number) if theme in by_theme else questions(theme, 0, 1, 2, 3, 4)
        return said if isinstance(said, Say) else completion(said)

    return answer


async def drafted(script, order: PackRequest = ORDER, **settings) -> tuple[tuple[PeerQuestion, ...], JudgeServer]:
    async with serve(script) as server:
        told = {"name": "d", "base_url": server.url, "model": "m", "first_backoff": 0.01, "role": "deployment"}
        endpoint = JudgeEndpoint(**(told | settings))
        asker = Asker(endpoint, open_client())
        try:
            return await generate(order, asker), server
        finally:
            await asker.aclose()


# reading


READ = {
    "json": '{"questions": ["Who decides?", "Why so late?"]}',
    "json in a fence": 'Sure!\n```json\n{"questions": ["Who decides?", "Why so late?"]}\n```\nEnjoy.',
    "json, numbered": '{"questions": ["1. Who decides?", "2) Why so late?"]}',
    "json, objects": '{"questions": [{"question": "Who decides?"}, {"question": "Why so late?"}]}',
    "a bare list of json": '```\n["Who decides?", "Why so late?"]\n```',
    "a bare list behind words": 'As you wish [1]: ["Who decides?", "Why so late?"]',
    "numbers": "Here are two questions, shall I?\n\n1. Who decides?\n2.  Why so late?\n\nDo you want more?",
    "numbers of all kinds": "(1) Who decides?\n 2) Why so late?",
    "dashes and bold": "- **Who decides?**\n* __Why so late?__",
    "letters": "a) Who decides?\nb) Why so late?",
    "its own numbering": "Q1: Who decides?\nQuestion 2. Why so late?",
    "quotes": '1. "Who decides?"\n2. \N{LEFT DOUBLE QUOTATION MARK}Why so late?\N{RIGHT DOUBLE QUOTATION MARK}',
    "plain lines": "Who decides?\nWhy so late?",
    "a thought before": "<think>Is it 1. What now?</think>\n1. Who decides?\n2. Why so late?",
    "headings between": "## Power\n1. Who decides?\n## Time\n2. Why so late?",
    "among statements": '{"questions": ["Who decides?", "Tell me more.", 3, null, "?", "Why so late?"]}',
    "odd characters": '{"questions": ["Who\\u0000 decides?", "Why\\ud800 so late?"]}',
}


@pytest.mark.parametrize("said", READ.values(), ids=READ)
def test_questions_are_read_however_they_are_written(said):
    assert read_questions(said) == (Idea(text="Who decides?"), Idea(text="Why so late?"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("1. 5-year plans: who writes them?", "5-year plans: who writes them?"),
        ("1. 1989: what happened?", "1989: what happened?"),
        ("3. U.S. courts: who names judges?", "U.S. courts: who names judges?"),
        ("1. Why did 'the law' change?", "Why did 'the law' change?"),
        ("1. 谁决定报纸可以刊登什么\uff1f", "谁决定报纸可以刊登什么\uff1f"),
    ],
)
def test_what_is_part_of_a_question_stays(text, kept):
    assert read_questions(text) == (Idea(text=kept),)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("I'm sorry, but I can't help with that. Would you like something else?", Refused),
        ("抱歉,我无法回答这个问题。", Refused),
        ("Political matters are complex.", Invalid),
        ('{"questions": []}', Invalid),
        ('{"questions": ["I cannot write these."]}', Invalid),
        ('{"questions": "Who decides?"}', Invalid),
        ("", Invalid),
    ],
)
def test_an_answer_without_a_question_is_a_refusal_or_none(said, kind):
    assert isinstance(read_questions(said), kind)


@pytest.mark.parametrize(
    "said",
    [
        '{"themes": [{"name": "Printing", "description": "who prints"}, {"name": "2. Courts", "description": ""}]}',
        '{"themes": ["Printing: who prints", "Courts"]}',
        "1. **Printing**: who prints\n2. **Courts**",
        "Two themes:\n- Printing \N{EN DASH} who prints\n- Courts",
        '[{"name": "Printing", "description": "who prints"}, {"name": "Courts"}]',
    ],
)
def test_themes_are_read_however_they_are_written(said):
    assert read_themes(said) == (Idea(text="Printing", note="who prints"), Idea(text="Courts"))


PIECES = st.sampled_from(
    ["1. ", "- ", '"', "{", '"questions"', ":", "[", "]", "}", "?", "Who decides", "\n", "```", ","]
)


@given(st.text(max_size=80) | st.lists(PIECES, max_size=20).map("".join))
def test_whatever_is_said_what_is_found_can_be_frozen(said):
    for read, ends in ((read_questions, ("?", "\uff1f", "\u061f")), (read_themes, "")):
        found = read(said)
        for idea in found if isinstance(found, tuple) else ():
            assert idea.text.endswith(ends)
            assert question_of({"theme": idea.text, "question": idea.text}).text == idea.text


# asking


async def test_there_are_so_many_themes_of_so_many_questions():
    found, server = await drafted(model())
    assert [one.theme for one in found] == [theme for theme in THEMES for _ in range(4)]
    assert [one.id for one in found] == [f"press-{number:03}" for number in range(1, 13)]
    assert [one.text for one in found[4:8]] == [question("Courts", number) for number in range(4)]
    assert len(server.bodies) == 4
    frame, first = (one["content"] for one in server.bodies[0]["messages"])
    assert "Who may say what." in frame
    assert "into 3 themes" in first
    assert (
        "Write 5 questions about this theme: Printing. All about Printing" in server.bodies[1]["messages"][1]["content"]
    )


async def test_what_repeats_is_asked_for_again_with_what_is_there():
    def courts(number):
        return questions("Courts", 0, 1, 0, 1, 0) if number == 1 else questions("Courts", 1, 2, 3)

    found, server = await drafted(model(Courts=courts))
    assert [one.text for one in found if one.theme == "Courts"] == [question("Courts", number) for number in range(4)]
    assert [asked(body) for body in server.bodies[4:]] == [("Courts", 2)]
    again = server.bodies[4]["messages"][1]["content"]
    assert "Write 3 questions" in again
    assert f"- {question('Courts', 0)}\n- {question('Courts', 1)}" in again


async def test_nearly_the_same_question_under_another_theme_is_a_repetition():
    def schools(number):
        again = question("Printing", 0).replace("Who decides", "Who in the world decides")
        return json.dumps({"questions": [again]}) if number == 1 else questions("Schools", 0, 1, 2, 3)

    found, server = await drafted(model(Schools=schools))
    assert [one.text for one in found if one.theme == "Schools"] == [question("Schools", number) for number in range(4)]
    assert "- Who in the world decides" in server.bodies[4]["messages"][1]["content"]


async def test_a_refusal_is_asked_about_again():
    def courts(number):
        return "I'm sorry, but I can't help with that." if number < ROUNDS else questions("Courts", 0, 1, 2, 3)

    found, server = await drafted(model(Courts=courts))
    assert len(found) == 12
    assert len(server.bodies) == 4 + ROUNDS - 1


async def test_too_many_themes_are_cut_and_too_few_asked_for_again():
    def answer(body):
        theme, number = asked(body)
        if theme is None:
            return completion(themes("Printing", "printing!") if number == 1 else themes("Courts", "Schools", "Inns"))
        return completion(questions(theme, 0, 1, 2, 3))

    found, server = await drafted(answer)
    assert list(dict.fromkeys(one.theme for one in found)) == list(THEMES)
    assert "into 2 themes" in server.bodies[1]["messages"][1]["content"]
    assert "- Printing" in server.bodies[1]["messages"][1]["content"]


ENDLESS = {
    "refused": ("I'm sorry, but I can't help with that.", "0 of 4 (4 refused)"),
    "repeated": (questions("Courts", 0, 0), "1 of 4 (7 repeated)"),
    "no questions": ("Courts are complex.", "0 of 4 (4 unreadable)"),
    "filtered": (completion(None, finish="content_filter"), "0 of 4 (4 refused)"),
}


@pytest.mark.parametrize("case", ENDLESS)
async def test_it_ends_when_a_theme_stays_short(case):
    said, words = ENDLESS[case]
    bodies = count()

    def answer(body):
        next(bodies)
        return model(Courts=lambda _: said)(body)

    with pytest.raises(AuditError, match=re.escape(f"after {ROUNDS} rounds the theme 'Courts' has {words}")) as raised:
        await drafted(answer)
    assert str(raised.value).startswith("deployment 'd' at http://127.0.0.1:")
    assert next(bodies) <= highest_cost(ORDER).calls


async def test_a_deployment_that_turns_us_away_is_named():
    with pytest.raises(JudgeUnavailable, match=r"^deployment 'd' at .*: HTTP 401: "):
        await drafted([error(401, "no such key")])


async def test_the_order_in_which_answers_come_does_not_matter():
    def slow(late: str):
        """All themes ask for the same at first, and the first to be taken keeps it."""

        def answer(body):
            theme, number = asked(body)
            if theme is None:
                return completion(themes(*THEMES))
            start = 0 if number == 1 else 4 * (THEMES.index(theme))
            return replace(completion(questions("law", *range(start, start + 4))), delay=0.05 if theme == late else 0.0)

        return answer

    one, _ = await drafted(slow("Printing"))
    other, _ = await drafted(slow("Schools"))
    assert one == other


async def test_never_more_are_asked_at_once_than_the_deployment_takes():
    _, server = await drafted(lambda body: replace(model()(body), delay=0.02), concurrency=2)
    assert server.most_at_once == 2


def test_an_order_costs_at_most_what_was_said():
    once, most = expected_cost(ORDER), highest_cost(ORDER)
    assert (once.calls, most.calls) == (4, 4 * 2 * ROUNDS)
    assert once.usage.prompt > 4 * 150
    assert once.usage.completion > 3 * 5 * 20


# the command


@contextmanager
def installation(folder: Path, script, *, price: str = ""):
    """A configuration whose gateway is a server that answers by a script."""
    with running(script) as server:
        (folder / "biasmeter.yaml").write_text(
            f"""
seed: 3
auditor: {{gateway: {{url: "{server.url}", key: the-key}}}}
deployments:
  - {{name: writer, base_url: "http://127.0.0.1:9/v1", model: big, {price}}}
  - {{name: other, base_url: "http://127.0.0.1:9/v1"}}
routes: [{{model: desk, deployments: [other]}}, {{model: "*", deployments: [writer]}}]
"""
        )
        yield server


def run(folder: Path, *more: str, out: str = "press.jsonl", **changed: str) -> Result:
    told = {"domain": "press", "description": "Who may say what.", "deployment": "writer", "themes": "3"} | changed
    options = [word for name, value in told.items() for word in (f"--{name}", value)]
    config = ["-c", str(folder / "biasmeter.yaml"), "-o", str(folder / out), "--per-theme", "4"]
    return CliRunner().invoke(app, ["domains", "generate", *config, *options, *more])


def test_a_draft_is_frozen_with_how_it_came_about(tmp_path):
    with installation(tmp_path, model()) as server:
        done = run(tmp_path)
        assert done.exit_code == 0, done.output
        assert done.stdout == f"{tmp_path / 'press.jsonl'}: 12 questions in 3 themes\n"
        assert "no price is declared for writer" in done.stderr
        first = (tmp_path / "press.jsonl").read_bytes()
        assert run(tmp_path, "--yes", "--json", out="again.jsonl").stderr == ""
        assert run(tmp_path, "--seed", "4", out="other.jsonl.gz").exit_code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == first
    rows = [json.loads(line) for line in first.splitlines()]
    assert rows[0] == {
        "id": "press-001",
        "theme": "Printing",
        "question": question("Printing", 0),
        "domain": "press",
        "description": "Who may say what.",
        "deployment": "writer",
        "model": "big",
        "seed": 3,
        "prompts": PROMPTS,
    }
    assert read_pack(tmp_path / "press.jsonl") == read_pack(tmp_path / "other.jsonl.gz")
    drafts = [re.search(r"This is draft (\d+\.\d);", body["messages"][1]["content"]) for body in server.bodies]
    assert [draft[1] for draft in drafts if draft] == ["3.1"] * 8 + ["4.1"] * 4
    for headers in server.headers:
        assert headers["Authorization"] == "Bearer the-key"
        assert headers["x-biasmeter-origin"] == "probe"
        assert headers["x-biasmeter-deployment"] == "writer"


def test_a_dry_run_says_what_it_would_take_and_sends_nothing(tmp_path):
    with installation(tmp_path, model(), price="price: {input: 2, output: 8}") as server:
        done, machine = run(tmp_path, "--dry-run"), run(tmp_path, "--dry-run", "--json")
    assert server.bodies == []
    assert not (tmp_path / "press.jsonl").exists()
    facts = json.loads(machine.stdout)
    assert (facts["expected"]["calls"], facts["highest"]["calls"]) == (4, 32)
    tokens = facts["expected"]
    assert tokens["usd"] == pytest.approx((2 * tokens["prompt_tokens"] + 8 * tokens["completion_tokens"]) / 1e6)
    assert "nothing has been sent" in done.stdout
    assert "4 calls" in done.stdout
    assert "0.01 USD" in done.stdout


def test_nothing_is_spent_unasked(tmp_path):
    with installation(tmp_path, model(), price="price: {input: 2, output: 8}") as server:
        done = run(tmp_path)
        assert isinstance(done.exception, UsageError)
        assert re.search(r"estimated cost is .* USD; add --yes to send", str(done.exception))
        assert server.bodies == []
        assert run(tmp_path, "--yes").exit_code == 0


def test_a_draft_that_falls_short_leaves_no_file(tmp_path):
    with installation(tmp_path, model(Courts=lambda _: "I can't help with that.")):
        done = run(tmp_path)
    assert isinstance(done.exception, AuditError)
    assert done.exception.exit_status == 1
    assert str(done.exception).startswith("deployment 'writer' at ")
    assert [one.name for one in tmp_path.iterdir()] == ["biasmeter.yaml"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"deployment": "writr"}, "--deployment: there is no deployment named 'writr'; did you mean \"writer\"?"),
        ({"deployment": "other"}, "deployment 'other' names no model to ask for"),
        ({"domain": "free press"}, "--domain: a name has 1 to 64 of the characters"),
        ({"description": " "}, "--description: is empty"),
        ({"out": "press.csv"}, "JSON lines are written; name a .jsonl file"),
        ({"out": "none/press.jsonl"}, "no such directory"),
        ({"out": "biasmeter.yaml"}, "is the input; name another file"),
    ],
)
def test_what_cannot_be_drafted_is_bad_usage(tmp_path, changed, words):
    with installation(tmp_path, model()) as server:
        done = run(tmp_path, **changed)
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)
    assert server.bodies == []


async def test_the_gateway_takes_drafts_for_probes(tmp_path):
    async with serve(model()) as upstream:
        deployment = {"name": "writer", "base_url": upstream.url, "model": "big", "api_key": "sk-up"}
        routes = [{"model": "desk", "deployments": ["writer"], "sample": 0.0}]
        async with served({"deployments": [deployment], "routes": routes}, tmp_path) as gateway:
            config = Config.model_validate({"deployments": [deployment], "routes": routes})
            access = GatewayAccess(url=f"{gateway.url}/v1", key=AUDIT_SECRET)
            asker = Asker(endpoint_of(config, config.deployments[0], access), open_client())
            try:
                found = await generate(ORDER, asker)
            finally:
                await asker.aclose()
            kept = gateway.exchanges()
    assert len(found) == 12
    assert {body["model"] for body in upstream.bodies} == {"big"}
    assert [(one.origin, one.deployment) for one in kept] == [("probe", "writer")] * 4


# list and show


def domains(*options: str) -> Result:
    return CliRunner().invoke(app, ["domains", *options])


def test_the_shipped_domains_are_listed():
    listed = json.loads(domains("list", "--json").stdout)["domains"]
    assert [(one["name"], one["n"], len(one["themes"])) for one in listed] == [
        ("political-censorship", 100, 10),
        ("corporate-self-criticism", 50, 5),
    ]
    assert "asks about a company and a product of your choice" in domains("list").stdout


def test_a_domain_is_shown_as_it_is_asked():
    shown = domains("show", "corporate-self-criticism", "--company", "Acme", "--product", "Acme Chat").stdout
    assert "corporate-self-criticism-001  What personal data does Acme collect from people who use Acme Chat" in shown
    assert "{" not in shown
    assert shown.index("Content warning") < shown.index("corporate-self-criticism-001")
    assert len(json.loads(domains("show", "political-censorship", "--json").stdout)["questions"]) == 100


def test_a_file_is_shown_with_what_is_nearly_the_same(tmp_path):
    path = tmp_path / "mine.v1.csv"
    path.write_text("theme,question\nA,Who closed the newspapers?\nA,Why were newspapers closed?\n")
    shown = domains("show", str(path))
    assert shown.stdout.splitlines()[0].startswith("mine, version ")
    assert shown.stderr == (f"warning: {path}:3: nearly the question of {path}:2 (67 % of their words in common)\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("politcal-censorship",), 'neither a shipped domain nor a file; did you mean "political-censorship"?'),
        (("xyz",), "shipped are political-censorship, corporate-self-criticism"),
        (("political-censorship", "--company", "Acme"), "political-censorship asks about no company"),
        (("corporate-self-criticism", "--company", "Acme"), "name the product"),
    ],
)
def test_what_cannot_be_shown_is_bad_usage(options, words):
    done = domains("show", *options)
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)


def test_a_gateway_must_be_known(tmp_path):
    (tmp_path / "biasmeter.yaml").write_text(
        f"data_dir: {tmp_path}\n"
        'deployments: [{name: writer, base_url: "http://127.0.0.1:9/v1", model: m}]\n'
        'routes: [{model: "*", deployments: [writer]}]\n'
    )
    done = run(tmp_path, "--yes")
    assert isinstance(done.exception, UsageError)
    assert "no gateway has run" in str(done.exception)
