"""Canaries in copies: wherever one stands and however it is written, none is left, and all around it is."""

import base64
import gzip
import json
import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.documents.hostile_texts import HOSTILE
from support.paths import SHARED
from support.stores.exchanges import exchange

from auditor.domain.exchange import Exchange, Origin
from gateway.recording.redaction import Redactor
from gateway.recording.redaction.rules import RULES
from gateway.recording.redaction.search import Searcher, replace_spans

pytestmark = pytest.mark.usefixtures("both_searches")

ALL = ("keys", "email", "phone", "card")
REDACTOR = Redactor(ALL)
SEARCHER = Searcher(ALL)
CANARIES = {
    "sk-proj-Zq3vT8xLmN4pR7wK2yB9": "[key]",
    "mira.canary@example.com": "[email]",
    "+49 151 23456789": "[phone]",
    "4111 1111 1111 1111": "[card]",
}
KEY, EMAIL, PHONE, CARD = CANARIES
canaries = st.sampled_from(list(CANARIES))
AROUND = st.text(st.sampled_from("abcxyzé€😀\u2028 .,;!?\n\t\"'\\{}[]"), max_size=30)
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n7bq1Zx==\n-----END RSA PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkwIiw.SflKxwRJSMeKKF2QT4fwpM"
DATA = SHARED / "data"


def redacted(text: str) -> str:
    return replace_spans(text, SEARCHER.find(text))


# -- what is found, and what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-Zq3vT8xLmN4pR7wK2yB9",
        "sk-bias-abcdefghijklmnopQRSTUV",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0abcdefghijkl",
        "xoxb-123456789012-abcdefABCDEF",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz123456",
        TOKEN,
        PEM,
    ],
)
def test_keys_are_found(text: str) -> None:
    assert redacted(f"Use {text}, please") == "Use [key], please"
    assert redacted(f"KEY='{text}'") == "KEY='[key]'"
    assert redacted(text) == "[key]"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdefghij0123456789.uvwxyz+/==", "Authorization: Bearer [key]"),
        ("curl -d 'password=hunter2x&user=me'", "curl -d 'password=[key]&user=me'"),
        ("DB_PASSWORD = 'p4ssw0rd!x'", "DB_PASSWORD = '[key]'"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[key]"),
        ("my password: hunter2x.", "my password: [key]"),
        ('{"api_key": "0123abcd", "n": 1}', '{"api_key": "[key]", "n": 1}'),
    ],
)
def test_of_what_is_assigned_only_the_secret_goes(text: str, left: str) -> None:
    assert redacted(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "task-oriented-dialogue-systems-2024 and risk-averse",
        "sk-learn-is-the-name-of-a-package",
        "ask for AKIA or ASIA, hf_model_names_with_underscores",
        "chatcmpl-BxYz0123456789abcdefGHIJKLMNO",
        "password=os.environ['PW'] and password: see below; tokens=128000",
        "eyJ is how JSON in base64 begins",
        "the bearer of this letter",
        "-----BEGIN PUBLIC KEY-----",
    ],
)
def test_words_are_no_keys(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("text", ["a@b.co", "josé.o'neil+tag@sub.exämple.de", "x_y%z@example.museum"])
def test_addresses_are_found(text: str) -> None:
    assert redacted(f"<{text}>, mailto:{text}. ({text})") == "<[email]>, mailto:[email]. ([email])"


@pytest.mark.parametrize("text", ["user@localhost", "lodash@4.17.21", "@app.route", "a @ b.com", "x@y.z", "@@@"])
def test_other_signs_at_are_no_addresses(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "+49 (0)30 1234567", "+15551234567", "+1 (212) 555-0123", "+44 20 7946 0958", "0049 30 1234567",
        "(212) 555-0123", "(212)555-0123", "212-555-0123", "212.555.0123", "1-800-555-0199",
        "212\u2011555\u20110123", "06 12 34 56 78", "06\u202f12\u202f34\u202f56\u202f78", "0470 12 34 56",
        "020 7946 0958",
        "07700 900123", "(030) 1234567", "030/1234567", "03-1234-5678", "0412 345 678",
        "138-0013-8000", "(11) 91234-5678",
    ],
)  # fmt: skip
def test_telephone_numbers_are_found(text: str) -> None:
    assert redacted(f"Call {text}.") == "Call [phone]."
    assert redacted(text) == "[phone]"
    assert redacted(json.dumps({"x": text})) == '{"x": "[phone]"}'


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "4111\u00a01111\u00a01111\u00a01111",
        "5555555555554444", "2223003122003222", "378282246310005", "3782 822463 10005", "6011111111111117",
        "30569309025904", "3530111333300000", "6212345678901232", "4111 1111 1111 1111 110",
    ],
)  # fmt: skip
def test_card_numbers_are_found(text: str) -> None:
    assert redacted(f"card: {text}, exp 12/30") == "card: [card], exp 12/30"
    assert redacted(json.dumps({"x": text})) == '{"x": "[card]"}'


def test_what_stands_beside_a_card_number_is_not_part_of_it() -> None:
    assert redacted("4111 1111 1111 1111 123") == "[card] 123"
    assert redacted("chatcmpl-4111111111111111, req_4111111111111111") == "chatcmpl-[card], req_[card]"
    assert redacted("12 4111 1111 1111 1111") == "12 [card]"


@pytest.mark.parametrize(
    "text",
    [
        "1700000000", "1700000000000", "1700000000000000000", "2024-11-21", "2024-11-21 10:15:30",
        "2024-11-21T10:15:30+02:00",
        "01/02/2024 10:30", "01.02.2024 1015", "192.168.100.200", "10.0.0.1:8080", "v1.2.3-4567",
        "550e8400-e29b-41d4-a716-446655440000",
        "1,000,000.50", "1 000 000", "100-2000", "2019-2020", "555-1234", "3.141592653589793", "0.4111111111111111",
        "4111111111111112", "x4111111111111111", "123-45-6789", "978-3-16-148410-0",
        "+1000000", "chatcmpl-1700000000000000", "deadbeef4111111111111111",
        "4-8-15-16-23-42", "2001 2002 2003 2004", "$1,234,567,890",
    ],
)  # fmt: skip
def test_other_numbers_are_neither(text: str) -> None:
    assert redacted(f"of {text}, that is") == f"of {text}, that is"


FRAGMENTS = st.sampled_from([
    *"0123456789", "00", "12", "555", "4111", "1111", "+", "+4", " ", "-", ".", "/", "(", ")", "\u00a0",
    "\u2011", "\u2013", "@", "a", "b.co", ".de", "é", "=", ":", '"', "password", "API_KEY", "client_secret", "Bearer ",
    "bearer ", "x1", "Q", "sk-", "ghp_", "AKIA", "eyJ", "hf_", "xoxb-", "abcdefghij", "ABCDEFGHIJ", "1234567890", "\n",
    "_", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
])  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=30).map("".join))
@example("01234 56 78")
@settings(max_examples=2000, deadline=None)
def test_what_is_found_is_suspected(text: str) -> None:
    for rule in RULES:
        if any(True for _ in rule.find(text)):
            assert rule.suspects(text.encode())
            assert rule.suspects(json.dumps(text, ensure_ascii=False).encode())


@pytest.mark.parametrize("rule", ALL)
def test_each_rule_takes_out_its_own(rule: str) -> None:
    alone = Searcher((rule,))
    text = ", ".join(CANARIES)
    left = {"keys": "[key]", "email": "[email]", "phone": "[phone]", "card": "[card]"}[rule]
    expected = ", ".join(what if what == left else canary for canary, what in CANARIES.items())
    assert replace_spans(text, alone.find(text)) == expected
    assert alone.suspects(text.encode())


def test_real_answers_are_left_alone() -> None:
    """Of thousands of answers of models, hardly any is touched; what is found there are addresses and numbers."""
    path = DATA / "decodingtrust/responses.jsonl.gz"
    if not path.exists():
        pytest.skip("the recorded answers are not here")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    changed = sum(redacted(text) != text for text in texts)
    assert (len(texts), changed) == (38_970, 5)


# -- however it is written -------------------------------------------------------------------------------------------


@st.composite
def spelled(draw: st.DrawFn, text: str) -> str:
    """Write a text as the inside of a JSON string, some characters escaped though they need not be."""
    escaped = draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    return "".join(
        "".join(f"\\u{unit:04x}" for unit in memoryview(letter.encode("utf-16-le")).cast("H"))
        if hidden
        else json.dumps(letter, ensure_ascii=False)[1:-1]
        for letter, hidden in zip(text, escaped, strict=True)
    )


@given(st.data(), canaries, AROUND, AROUND)
@settings(max_examples=300, deadline=None)
def test_a_canary_in_json_is_taken_out_and_nothing_else(
    data: st.DataObject, canary: str, before: str, after: str
) -> None:
    """In a message, as an object's key, in a tool's arguments; what is around stays byte for byte."""
    start, middle, end = (data.draw(spelled(text)) for text in (f"{before} ", canary, f" {after}"))
    document = data.draw(
        st.sampled_from([
            '{"messages":[{"role":"system","content":"%s"}],"n": 1.50, "seed":1700000000}',
            '\n[{"%s":null}, {"a" : ["", true, {}]}]',
            '{"content":null,"user":"%s","x":"\\u00e9\\\\"}',
        ])
    )  # fmt: skip
    kept = REDACTOR.redact(exchange(request=(document % (start + middle + end)).encode()))
    assert kept.request == (document % (start + CANARIES[canary] + end)).encode()
    json.loads(kept.request)


@given(st.data(), canaries, AROUND, AROUND)
@settings(max_examples=200, deadline=None)
def test_a_canary_in_json_inside_json_is_taken_out(data: st.DataObject, canary: str, before: str, after: str) -> None:
    arguments = '{"to": "' + data.draw(spelled(f"{before} {canary} {after}")) + '"}'
    kept = REDACTOR.redact(exchange(request=json.dumps({"arguments": arguments}).encode()))
    assert kept.request is not None
    assert json.loads(json.loads(kept.request)["arguments"])["to"] == f"{before} {CANARIES[canary]} {after}"


@given(canaries, AROUND, AROUND)
@settings(deadline=None)
@example(EMAIL, "\\", "\\")
def test_a_canary_in_plain_text_is_taken_out(canary: str, before: str, after: str) -> None:
    kept = REDACTOR.redact(exchange(response=f"Error:{before} {canary} {after}".encode()))
    assert kept.response == f"Error:{before} {CANARIES[canary]} {after}".encode()


@given(canaries, st.integers(0, 60))
def test_a_copy_that_was_cut_is_redacted_as_far_as_it_goes(canary: str, more: int) -> None:
    whole = json.dumps({"messages": [{"content": f"é {canary} is mine"}], "n": 1}, ensure_ascii=False).encode()
    end = whole.index(canary.encode()) + len(canary)
    kept = REDACTOR.redact(exchange(request=whole[: end + more], truncated=True))
    assert kept.request == whole[: end + more].replace(canary.encode(), CANARIES[canary].encode())


def test_half_a_character_at_the_end_of_a_copy_stays() -> None:
    cut = f'{{"a": "{EMAIL} €'.encode()[:-1]
    assert REDACTOR.redact(exchange(request=cut)).request == cut.replace(EMAIL.encode(), b"[email]")


def test_json_stays_json_where_a_number_is_taken_out() -> None:
    payload = {"card": 4111111111111111, "seed": 4111111111111112, "said": "4111111111111111 or", "t": 0.1}
    kept = kept_request(payload)
    assert kept == {"card": "[card]", "seed": 4111111111111112, "said": "[card] or", "t": 0.1}


def kept_request(payload: Any) -> Any:
    return json.loads(REDACTOR.redact(exchange(request=json.dumps(payload).encode())).request or b"")


def test_a_picture_is_passed_over_and_what_is_beside_it_is_not() -> None:
    picture = "data:image/png;base64," + base64.b64encode(random.Random(0).randbytes(300_000)).decode()
    plain = exchange(request=json.dumps({"url": picture}).encode())
    assert REDACTOR.redact(plain) is plain
    assert kept_request({"url": picture, "text": EMAIL}) == {"url": picture, "text": "[email]"}


def test_log_probabilities_go_where_they_spell_what_was_taken_out() -> None:
    choice = {"message": {"content": EMAIL}, "logprobs": {"content": [{"token": "mira"}, {"token": ".canary"}]}}
    kept = REDACTOR.redact(exchange(response=json.dumps({"choices": [choice], "n": 1}).encode()))
    assert json.loads(kept.response or b"") == {
        "choices": [{"message": {"content": "[email]"}, "logprobs": None}],
        "n": 1,
    }


# -- exchanges -------------------------------------------------------------------------------------------------------


def test_an_exchange_without_anything_is_the_same_object() -> None:
    plain = exchange(model="gpt-4o-mini-2024-07-18", request_id="019ca945-0a00-777f-8b1c-58992bbd031d")
    assert REDACTOR.redact(plain) is plain


def test_beside_an_id_that_the_gateway_has_made_the_other_facts_are_redacted() -> None:
    number = UUID("41111111-1111-1111-4111-111111111111")
    kept = REDACTOR.redact(exchange(id=number, request_id=f"req_{number.hex}", model=KEY))
    assert (kept.model, kept.request_id) == ("[key]", f"req_{number.hex}")


@pytest.mark.parametrize("origin", [origin for origin in Origin if origin is not Origin.CLIENT])
def test_audit_traffic_stays_whole(origin: Origin) -> None:
    ours = exchange(origin=origin, model=KEY, request=EMAIL.encode(), response=b"\x1f\x8b", content_encoding="gzip")
    assert REDACTOR.redact(ours) is ours


def test_no_rules_take_nothing_out() -> None:
    whole = exchange(model=KEY, request=EMAIL.encode(), response=b"\x1f\x8b", content_encoding="gzip")
    assert Redactor(()).redact(whole) is whole


@pytest.mark.parametrize("canary", CANARIES)
def test_every_fact_in_words_is_redacted(canary: str) -> None:
    words = {"model", "request_id", "ref", "finish_reason", "error_type", "content_encoding"}
    told = exchange(tags={"team": f"a {canary}", "other": "b"}, response=None, **dict.fromkeys(words, canary))
    kept = REDACTOR.redact(told)
    assert {getattr(kept, name) for name in words} == {CANARIES[canary]}
    assert kept.tags == {"team": f"a {CANARIES[canary]}", "other": "b"}
    assert kept.redacted
    assert told.model == canary


def test_no_fact_in_words_was_forgotten() -> None:
    """A new field of an exchange that holds text must be redacted, or be listed here as ours."""
    ours = {"endpoint", "route", "deployment", "config_hash", "key_id"}
    texts = {name for name, kind in Exchange.__annotations__.items() if kind in {str, str | None}}
    told = exchange(**dict.fromkeys(texts, EMAIL), response=None)
    kept = REDACTOR.redact(told)
    assert {name for name in texts if getattr(kept, name) == EMAIL} == ours


def test_what_cannot_be_read_is_not_kept() -> None:
    kept = REDACTOR.redact(exchange(response=gzip.compress(b"hello"), content_encoding="gzip"))
    assert (kept.response, kept.redacted) == (b"", True)
    plain = exchange(content_encoding="identity")
    assert REDACTOR.redact(plain) is plain


def test_half_surrogates_are_no_obstacle() -> None:
    assert REDACTOR.redact(exchange(model=f"\udcff {EMAIL}")).model == "\udcff [email]"


# -- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", HOSTILE)
def test_time_is_linear_in_the_text(part: str, thorough: bool) -> None:
    """A search that went over the text again and again would not end within the limit by far."""
    length = 200_000 if thorough else 20_000
    text = (part * length)[:length].encode()
    for content in (text, b'{"x":"' + text, b"data: " + text):
        REDACTOR.redact(exchange(stream=True, request=content, response=content))
