"""Who may ask, and for what: the whole table of keys and stores, and the headers that need a right."""

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from auditor.domain.exchange import Origin
from auditor.domain.keys import Key, Right, hash_secret
from gateway import snapshot
from gateway.auth import AUDIT, ORIGIN, PARENT, PIN, REF, TAGS, Authenticator, Directives
from gateway.errors import BadRequest, Forbidden, Saturated, Unauthorised
from gateway.snapshot import SnapshotReader

LATER = datetime.now(UTC) + timedelta(days=1)
EARLIER = datetime.now(UTC) - timedelta(seconds=1)
KEYS = {
    "known": Key(id="key_1", name="known", hash=hash_secret("sk-known"), expires_at=LATER),
    "expired": Key(id="key_2", name="expired", hash=hash_secret("sk-expired"), expires_at=EARLIER),
    "revoked": Key(id="key_3", name="revoked", hash=hash_secret("sk-revoked"), revoked=True),
}
AUDITOR = Key(id="auditor", name="auditor", hash=hash_secret("sk-auditor"), rights=frozenset(Right))


def authenticator(
    folder: Path,
    *,
    keys: list[Key] | None,
    age: float | None = 0.0,
    keys_required: bool = False,
    open_to_all: bool = False,
    tags: frozenset[str] = frozenset(),
) -> Authenticator:
    """A doorkeeper whose snapshot holds `keys` and was confirmed `age` seconds ago; without keys there is none."""
    path = folder / "keys.json"
    if keys is not None:
        snapshot.write(path, keys)
        if age is not None:
            snapshot.confirm(path)
            os.utime(snapshot.confirmation(path), (time.time() - age,) * 2)
    reader = SnapshotReader(path)
    reader.refresh()
    return Authenticator(reader, keys_required=keys_required, open_to_all=open_to_all, tags=tags, audit_key=AUDITOR)


def bearer(name: str | None) -> CIMultiDict[str]:
    return CIMultiDict({} if name is None else {"Authorization": f"Bearer sk-{name}"})


def answer(door: Authenticator, name: str | None) -> str:
    """How a caller is answered: its key's name, 'anonymous', or the status."""
    try:
        key = door.identify(bearer(name))
    except (Unauthorised, Saturated) as error:
        return str(error.http_status)
    return key.name if key else "anonymous"


CALLERS = ("known", "expired", "revoked", "unknown", None)
#: snapshot, age of its confirmation, whether the gateway can be reached from elsewhere → the answer to each caller.
TABLE = [
    # Keys exist. Known keys work however old the snapshot is; of an unknown one nothing can be said without the store.
    ("keys", 0.0, False, ("known", "401", "401", "401", "401")),
    ("keys", 0.0, True, ("known", "401", "401", "401", "401")),
    ("keys", 60.0, False, ("known", "401", "401", "503", "401")),
    ("keys", 60.0, True, ("known", "401", "401", "503", "401")),
    # No key was ever made: on loopback nobody needs one, elsewhere nobody has one.
    ("none", 0.0, False, ("anonymous",) * 5),
    ("none", 60.0, False, ("anonymous",) * 5),
    ("none", 0.0, True, ("401",) * 5),
    ("none", 60.0, True, ("503", "503", "503", "503", "401")),
    # The store has not been reached since the start: whether keys exist is not known.
    ("unread", None, False, ("503",) * 5),
    ("unread", None, True, ("503", "503", "503", "503", "401")),
]


@pytest.mark.parametrize(("known", "age", "reachable", "answers"), TABLE)
def test_the_table_of_callers(
    tmp_path: Path, known: str, age: float | None, reachable: bool, answers: tuple[str, ...]
) -> None:
    keys = {"keys": list(KEYS.values()), "none": [], "unread": None}[known]
    door = authenticator(tmp_path, keys=keys, age=age, keys_required=reachable)
    assert {caller: answer(door, caller) for caller in CALLERS} == dict(zip(CALLERS, answers, strict=True))


@pytest.mark.parametrize("keys", [None, [], list(KEYS.values())])
@pytest.mark.parametrize("age", [0.0, 60.0])
def test_an_open_gateway_serves_everybody_and_still_knows_its_keys(
    tmp_path: Path, keys: list[Key] | None, age: float
) -> None:
    door = authenticator(tmp_path, keys=keys, age=age, open_to_all=True)
    ours = {"known": "known", "expired": "401", "revoked": "401"} if keys else {}
    expected = dict.fromkeys(CALLERS, "anonymous") | ours
    assert {caller: answer(door, caller) for caller in CALLERS} == expected


def test_once_a_key_was_made_everybody_needs_one_though_it_is_revoked(tmp_path: Path) -> None:
    door = authenticator(tmp_path, keys=[KEYS["revoked"]])
    assert [answer(door, caller) for caller in (None, "revoked", "unknown")] == ["401"] * 3


def test_a_key_of_the_newest_snapshot_is_known_at_once(tmp_path: Path) -> None:
    """Otherwise the workers of a host would answer differently until each has read the snapshot again."""
    door = authenticator(tmp_path, keys=[KEYS["revoked"]])
    assert answer(door, "known") == "401"
    snapshot.write(tmp_path / "keys.json", [KEYS["revoked"], KEYS["known"]])
    assert answer(door, "known") == "known"


def test_the_first_key_closes_the_gateway_for_the_next_request_without_one(tmp_path: Path) -> None:
    door = authenticator(tmp_path, keys=[])
    assert answer(door, None) == "anonymous"
    snapshot.write(tmp_path / "keys.json", [KEYS["known"]])
    assert answer(door, None) == "401"


@pytest.mark.parametrize("keys", [None, [], list(KEYS.values())])
def test_the_auditor_of_this_host_is_known_without_the_store(tmp_path: Path, keys: list[Key] | None) -> None:
    assert answer(authenticator(tmp_path, keys=keys, age=60.0, keys_required=True), "auditor") == "auditor"


def test_how_long_to_wait_and_nothing_of_the_key_is_told(tmp_path: Path) -> None:
    door = authenticator(tmp_path, keys=list(KEYS.values()), age=60.0)
    with pytest.raises(Saturated) as stale:
        door.identify(bearer("canary"))
    assert (stale.value.http_status, stale.value.code) == (503, "key_store_unavailable")
    assert int(stale.value.headers()["retry-after"]) > 0
    assert "x-should-retry" not in stale.value.headers()
    with pytest.raises(Unauthorised) as wrong:
        authenticator(tmp_path, keys=list(KEYS.values())).identify(bearer("canary"))
    assert wrong.value.headers() == {"x-should-retry": "false"}
    assert wrong.value.code == "invalid_api_key"
    for error in (stale.value, wrong.value):
        assert b"canary" not in error.body()


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\t", "\x1c", "\x85"])
def test_no_other_space_than_that_of_ascii_parts_the_scheme_from_the_key(tmp_path: Path, space: str) -> None:
    door = authenticator(tmp_path, keys=list(KEYS.values()))
    for value in (f"Bearer{space}sk-known", f"Bearer {space}sk-known", f"Bearer sk-known{space}"):
        with pytest.raises(Unauthorised):
            door.identify(CIMultiDict({"authorization": value}))


def test_a_key_for_the_audit_alone_leaves_the_gateway_open(tmp_path: Path) -> None:
    reader = Key(id="key_4", name="reader", hash=hash_secret("sk-reader"), rights=frozenset({Right.AUDIT}))
    door = authenticator(tmp_path, keys=[reader])
    assert [answer(door, caller) for caller in (None, "unknown")] == ["anonymous", "anonymous"]
    door = authenticator(tmp_path, keys=[reader, KEYS["revoked"]])
    assert [answer(door, caller) for caller in (None, "unknown")] == ["401", "401"]


@pytest.mark.parametrize("open_to_all", [True, False])
@pytest.mark.parametrize(
    ("rights", "is_served"),
    [
        ({Right.AUDIT}, False),
        ({Right.VIEWER}, False),
        ({Right.ADMIN}, False),
        ({Right.ADMIN, Right.AUDIT, Right.VIEWER}, False),
        (set(), True),
        ({Right.ADMIN, Right.PIN}, True),
        (set(Right), True),
    ],
)
def test_a_key_that_opens_only_the_auditor_is_served_nothing(
    tmp_path: Path, rights: set[Right], *, is_served: bool, open_to_all: bool
) -> None:
    key = Key(id="key_4", name="person", hash=hash_secret("sk-person"), rights=frozenset(rights))
    door = authenticator(tmp_path, keys=[key], open_to_all=open_to_all)
    if is_served:
        assert answer(door, "person") == "person"
        return
    with pytest.raises(Forbidden) as refusal:
        door.identify(bearer("person"))
    assert refusal.value.code == "key_not_for_clients"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:4000", "127.0.0.1:4000", "127.1.2.3", "[::1]:4000", None])
@pytest.mark.parametrize("open_to_all", [True, False])
def test_without_a_key_programs_of_this_machine_are_served(
    tmp_path: Path, host: str | None, *, open_to_all: bool
) -> None:
    door = authenticator(tmp_path, keys=[], open_to_all=open_to_all)
    headers = {} if host is None else {"host": host}
    assert door.identify(headers) is None
    if host is not None:
        assert door.identify(headers | {"origin": f"http://{host}"}) is None


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "rebound.example:4000"}, "foreign_host"),
        ({"host": "127.0.0.1.example"}, "foreign_host"),
        ({"host": "localhost:4000:4000"}, "foreign_host"),
        ({"host": ""}, "foreign_host"),
        ({"host": "127.0.0.1:4000", "origin": "https://page.example"}, "foreign_origin"),
        ({"host": "127.0.0.1:4000", "origin": "http://127.0.0.1:3000"}, "foreign_origin"),
        ({"host": "127.0.0.1:4000", "origin": "null"}, "foreign_origin"),
        ({"origin": "http://"}, "foreign_origin"),
    ],
)
def test_without_a_key_web_pages_are_refused_on_a_loopback_address(
    tmp_path: Path, headers: dict[str, str], code: str
) -> None:
    for open_to_all in (False, True):
        with pytest.raises(Forbidden) as refused:
            authenticator(tmp_path, keys=[], open_to_all=open_to_all).identify(headers)
        assert refused.value.code == code
    # With a key, and where other machines reach the gateway under any name, they are served.
    known = headers | {"authorization": "Bearer sk-known"}
    assert authenticator(tmp_path, keys=list(KEYS.values())).identify(known) is not None
    assert authenticator(tmp_path, keys=[], open_to_all=True, keys_required=True).identify(headers) is None


@pytest.mark.parametrize(
    "value",
    ["Bearer sk-known", "bearer sk-known", "BEARER   sk-known  "],
)
def test_the_scheme_is_read_as_http_says(tmp_path: Path, value: str) -> None:
    door = authenticator(tmp_path, keys=list(KEYS.values()))
    key = door.identify(CIMultiDict({"authorization": value}))
    assert key is not None
    assert key.id == "key_1"


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "sk-known", "Basic sk-known", "Bearer sk-known extra", "Bearersk-known",
     "Bearer SK-KNOWN", "Bearer \udcff", "Bearer " + "x" * 10_000],
)  # fmt: skip
def test_anything_else_is_no_key(tmp_path: Path, value: str) -> None:
    door = authenticator(tmp_path, keys=list(KEYS.values()))
    with pytest.raises(Unauthorised):
        door.identify(CIMultiDict({"authorization": value}))


# --- headers ---------------------------------------------------------------------------------------------------------

ID = "01890a5d-ac96-774b-bcce-b302099a8057"
VALID = {PIN: "gpt-eu", ORIGIN: "probe", REF: "plan-1/7", PARENT: ID, AUDIT: "off"}
NEEDS = {PIN: Right.PIN, ORIGIN: Right.ORIGIN, REF: Right.ORIGIN, PARENT: Right.ORIGIN, AUDIT: Right.AUDIT_OFF}
ALL_RIGHTS = replace(KEYS["known"], rights=frozenset(Right))


def directives(folder: Path, headers: dict[str, str], key: Key | None = ALL_RIGHTS, tags: str = "") -> Directives:
    door = authenticator(folder, keys=[], tags=frozenset(tags.split()))
    return door.directives(CIMultiDict(headers), key)


def test_without_such_headers_it_is_a_client(tmp_path: Path) -> None:
    for key in (None, ALL_RIGHTS):
        assert directives(tmp_path, {"x-other": "1"}, key) == Directives()
    assert Directives().origin is Origin.CLIENT


def test_all_at_once(tmp_path: Path) -> None:
    assert directives(tmp_path, {name.upper(): value for name, value in VALID.items()}) == Directives(
        origin=Origin.PROBE, pin="gpt-eu", ref="plan-1/7", parent=UUID(ID), audit=False
    )


@pytest.mark.parametrize("origin", Origin)
def test_every_origin_can_be_said(tmp_path: Path, origin: Origin) -> None:
    assert directives(tmp_path, {ORIGIN: origin.value}).origin is origin


@pytest.mark.parametrize("name", VALID)
def test_each_header_needs_its_right(tmp_path: Path, name: str) -> None:
    others = frozenset(Right) - {NEEDS[name]}
    for key in (None, replace(ALL_RIGHTS, rights=frozenset()), replace(ALL_RIGHTS, rights=others)):
        with pytest.raises(Forbidden) as refused:
            directives(tmp_path, {name: VALID[name]}, key)
        assert (refused.value.http_status, refused.value.code, refused.value.param) == (403, "header_not_allowed", name)
        assert name in str(refused.value)
        assert str(NEEDS[name]) in str(refused.value)
    enough = replace(ALL_RIGHTS, rights=frozenset({NEEDS[name]}))
    assert directives(tmp_path, {name: VALID[name]}, enough) != Directives()


def test_a_right_is_asked_for_before_the_value_is_read(tmp_path: Path) -> None:
    with pytest.raises(Forbidden):
        directives(tmp_path, {ORIGIN: "nonsense"}, None)


MALFORMED = {
    ORIGIN: ["", "Probe", "client,probe", "auditor", "\udcff"],
    REF: ["", " ", "a b", "x" * 65, "é", "a\tb", "a\n", "\udcff", "\x7f"],
    PARENT: ["", "x", ID[:-1], ID + "0", ID.replace("-", ""), "{" + ID + "}", "urn:uuid:" + ID, ID + "\n",
             ID.replace("0", "_", 1), "+" + ID[1:], ID.replace("1", "\uff11", 1)],
    AUDIT: ["", "on", "OFF", "false", "off "],
    TAGS: ["a", "=b", "a=b,", ",", "a=b,,c=d", "a b=c", "é=b", "a=" + "x" * 129, "a" * 65 + "=b", "a=b\n", "a=\0",
           "a=\x7f", "a=\x85", "a=\udcff"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MALFORMED.items() for value in values])
def test_a_malformed_value_is_named_and_not_quoted(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(BadRequest) as refused:
        directives(tmp_path, {name: value}, tags="a b c")
    error = refused.value
    assert (error.http_status, error.code, error.param) == (400, "invalid_header", name)
    assert name in str(error)
    assert len(value) < 3 or value not in str(error)
    assert error.body().isascii()


@pytest.mark.parametrize("ref", ["x", "x" * 64, "plan/1:a=b,c", "!~"])
def test_a_ref_may_be_anything_that_prints(tmp_path: Path, ref: str) -> None:
    assert directives(tmp_path, {REF: ref}).ref == ref


def test_a_parent_may_be_written_in_capitals(tmp_path: Path) -> None:
    assert directives(tmp_path, {PARENT: ID.upper()}).parent == UUID(ID)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("", {}),
        ("tenant=a", {"tenant": "a"}),
        ("tenant=a,team=b", {"tenant": "a", "team": "b"}),
        (" tenant=a , team= b ", {"tenant": "a", "team": "b"}),
        ("tenant=,team=b", {"tenant": "", "team": "b"}),
        ("tenant=a=b;c", {"tenant": "a=b;c"}),
        ("tenant=a,other=secret", {"tenant": "a"}),
        ("other=secret", {}),
        ("tenant=a,tenant=b", {"tenant": "b"}),
        ("tenant=é 日本", {"tenant": "é 日本"}),
        ("tenant=" + "x" * 128, {"tenant": "x" * 128}),
        ("Tenant=a", {}),
    ],
)
def test_declared_tags_are_kept_and_no_others_and_need_no_right(
    tmp_path: Path, value: str, kept: dict[str, str]
) -> None:
    assert directives(tmp_path, {TAGS: value}, None, tags="tenant team").tags == kept


@given(st.sampled_from([*VALID, TAGS]), st.text(max_size=70))
def test_any_value_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str, value: str) -> None:
    try:
        made = directives(tmp_path_factory.mktemp("keys"), {name: value}, tags="a b")
    except BadRequest as error:
        assert error.param == name  # noqa: PT017 -- either outcome is right
        return
    # What is kept can be written and stored.
    for text in (made.ref or "", *made.tags, *made.tags.values()):
        assert "\0" not in text
        text.encode()
