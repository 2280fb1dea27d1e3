"""Which header fields cross the gateway: what is named, and nothing else, in either direction."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from pydantic import SecretStr

from auditor.config import Deployment
from gateway.headers import exchange_headers, naming_lines, request_id, returned_lines, upstream_headers

ID = "01890a5d-ac96-774b-bcce-b302099a8057"
OPEN = Deployment(name="open", base_url="http://127.0.0.1:1/v1")
KEYED = OPEN.model_copy(update={"api_key": SecretStr("sk-upstream")})
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

CANARIES = {
    "Authorization": "Bearer sk-client",
    "Proxy-Authorization": "Basic c2VjcmV0",
    "Cookie": "session=secret",
    "X-Secret": "canary",
    "X-Forwarded-For": "10.0.0.1",
    "Forwarded": "for=10.0.0.1",
    "X-Stainless-OS": "Linux",
    "X-Stainless-Retry-Count": "0",
    "X-Biasmeter-Origin": "probe",
    "X-Biasmeter-Tags": "tenant=a",
    "Api-Key": "secret",
    "X-Api-Key": "secret",
    "OpenAI-Organization": "org-client",
    "Host": "gateway.internal",
    "Connection": "keep-alive, x-secret",
    "Keep-Alive": "timeout=5",
    "Transfer-Encoding": "chunked",
    "Content-Length": "17",
    "TE": "trailers",
    "Trailer": "x-sum",
    "Upgrade": "h2c",
    "Expect": "100-continue",
    "Accept-Encoding": "br",
    "User-Agent": "secret-app/1.0",
    "Referer": "http://internal/",
    "Origin": "http://internal",
}
USUAL = {"Content-Type": "application/json", "Accept": "text/event-stream", "OpenAI-Beta": "x", "Idempotency-Key": "k"}


def asked(client: dict[str, str], deployment: Deployment = KEYED, also: tuple[str, ...] = ()) -> dict[str, str]:
    return upstream_headers(CIMultiDict(client), deployment, "req_1", also)


def test_only_what_is_named_reaches_the_deployment() -> None:
    assert asked(CANARIES | USUAL) == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "openai-beta": "x",
        "idempotency-key": "k",
        "accept-encoding": "identity",
        "user-agent": "biasmeter",
        "x-request-id": "req_1",
        "authorization": "Bearer sk-upstream",
    }


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}-[a-z]{1,8}", fullmatch=True), st.just("canary"), max_size=8))
def test_no_unknown_name_crosses(client: dict[str, str]) -> None:
    assert "canary" not in asked(client).values()


def test_without_a_key_of_its_own_a_deployment_gets_none() -> None:
    assert "authorization" not in asked(CANARIES, OPEN)


def test_what_the_configuration_names_is_forwarded_too() -> None:
    assert asked({"X-Team": "a", "X-Other": "b"}, also=("x-team", "x-absent"))["x-team"] == "a"
    assert "x-other" not in asked({"X-Team": "a", "X-Other": "b"}, also=("x-team",))


def test_control_characters_of_a_deployment_s_values_are_removed() -> None:
    said = [("content-type", "text/\x1b[31mplain\x7f"), ("retry-after", "1\x01"), ("x-ms-region", "a\tb é\udcff")]
    assert returned_lines(said) == (
        b"\r\ncontent-type: text/[31mplain\r\nretry-after: 1\r\nx-ms-region: a\tb \xc3\xa9\xff"
    )


@pytest.mark.parametrize(
    "name",
    ["authorization", "proxy-authorization", "cookie", "host", "connection", "transfer-encoding", "content-length",
     "accept-encoding", "content-encoding", "upgrade", "te", "expect", "keep-alive", "trailer"],
)  # fmt: skip
def test_not_even_the_configuration_can_forward_keys_and_framing(name: str) -> None:
    """forward_headers: [authorization] would hand the client's key to whoever serves the model."""
    plain = asked({}, OPEN)
    assert asked({name: "canary"}, OPEN, also=(name,)) == plain


@pytest.mark.parametrize("name", ["authorization", "Authorization", "AUTHORIZATION"])
def test_a_deployment_s_own_headers_are_set_once_whatever_their_case(name: str) -> None:
    fixed = {name: "Basic b3du", "Api-Key": "own", "User-Agent": "ours"}
    own = OPEN.model_copy(update={"headers": {key: SecretStr(value) for key, value in fixed.items()}})
    made = asked(CANARIES, own)
    assert made["authorization"] == "Basic b3du"
    assert made["api-key"] == "own"
    assert made["user-agent"] == "ours"
    assert len({one.lower() for one in made}) == len(made)
    # The deployment's key is the stronger word.
    keyed = own.model_copy(update={"api_key": SecretStr("sk-upstream")})
    assert asked(CANARIES, keyed)["authorization"] == "Bearer sk-upstream"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, {"authorization": "Bearer sk-upstream"}),
        ({"api_version": "2024-10-21"}, {"api-key": "sk-upstream"}),
        ({"api_key_header": "Api-Key"}, {"api-key": "sk-upstream"}),
        ({"api_key_header": "x-goog-api-key", "api_version": "1"}, {"x-goog-api-key": "sk-upstream"}),
        ({"api_key_header": "Authorization", "api_version": "1"}, {"authorization": "Bearer sk-upstream"}),
    ],
)
def test_a_deployment_s_key_goes_into_one_header(fields: dict[str, str], key: dict[str, str]) -> None:
    deployment = Deployment.model_validate(KEYED.model_dump() | {"api_key": "sk-upstream"} | fields)
    made = asked(CANARIES | USUAL, deployment)
    assert {name: value for name, value in made.items() if "sk-upstream" in value} == key
    assert key.keys() == made.keys() - asked(CANARIES | USUAL, OPEN).keys()


def test_a_trace_is_continued_with_the_same_id_and_a_new_parent() -> None:
    made = [asked({"traceparent": TRACE, "tracestate": "a=1"}) for _ in range(2)]
    version, trace, parent, flags = made[0]["traceparent"].split("-")
    assert (version, trace, flags) == ("00", "0af7651916cd43dd8448eb211c80319c", "01")
    assert len(parent) == 16
    assert int(parent, 16)
    assert len({"b7ad6b7169203331", *(one["traceparent"].split("-")[2] for one in made)}) == 3
    assert made[0]["tracestate"] == "a=1"


def test_a_later_version_of_a_trace_is_continued_as_ours() -> None:
    made = asked({"traceparent": TRACE.replace("00-", "cc-", 1) + "-what-the-future-will-be-like"})
    assert made["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert made["traceparent"].endswith("-01")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "garbage",
        TRACE.upper(),
        TRACE[:-1],
        TRACE + "0",
        " " + TRACE,
        TRACE.replace("00-", "ff-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        TRACE + "\r\nx-secret: 1",
    ],
)
def test_what_is_no_trace_is_not_continued(given: str) -> None:
    made = asked({"traceparent": given, "tracestate": "a=1"})
    assert "traceparent" not in made
    assert "tracestate" not in made


def test_only_what_is_named_reaches_the_client() -> None:
    upstream = [
        ("content-type", "application/json"), ("retry-after", "7"), ("retry-after-ms", "7000"),
        ("x-ratelimit-remaining-tokens", "9"), ("x-should-retry", "true"), ("openai-processing-ms", "12"),
        ("content-encoding", "gzip"),
        ("set-cookie", "canary"), ("server", "canary"), ("x-secret", "canary"), ("connection", "canary"),
        ("transfer-encoding", "canary"), ("content-length", "canary"), ("keep-alive", "canary"), ("date", "canary"),
        ("strict-transport-security", "canary"), ("alt-svc", "canary"), ("location", "canary"),
        ("access-control-allow-origin", "canary"), ("www-authenticate", "canary"), ("via", "canary"),
        ("openai-organization", "canary"), ("openai-project", "canary"), ("anthropic-organization-id", "canary"),
    ]  # fmt: skip
    assert returned_lines(upstream) == "".join(f"\r\n{name}: {value}" for name, value in upstream[:7]).encode()


def test_what_names_an_exchange_is_the_gateway_s_own_word() -> None:
    upstream = [("x-request-id", "theirs"), ("x-biasmeter-attempts", "99"), ("x-biasmeter-deployment", "theirs")]
    assert returned_lines(upstream) == b""
    own = exchange_headers(ID, "req_1", "gpt-eu", 2)
    assert own == {
        "x-request-id": "req_1", "x-biasmeter-exchange-id": str(ID), "x-biasmeter-deployment": "gpt-eu",
        "x-biasmeter-attempts": "2",
    }  # fmt: skip
    assert naming_lines(ID, "req_1", "gpt-eu", 2) == "".join(f"\r\n{name}: {own[name]}" for name in own).encode()


@pytest.mark.parametrize("given", ["a", "req-123", "~!@#$%^&*()", "x" * 200])
def test_a_sane_request_id_is_kept(given: str) -> None:
    assert request_id(CIMultiDict({"X-Request-Id": given}), ID) == given


@pytest.mark.parametrize("given", [None, "", " ", "a b", "a\tb", "a\n", "\r\nx: 1", "é", "\udcff", "\x7f", "x" * 201])
def test_any_other_is_replaced(given: str | None) -> None:
    client = {} if given is None else {"x-request-id": given}
    assert request_id(CIMultiDict(client), ID) == f"req_{UUID(ID).hex}"
