"""Client keys: what one opens, for how long, and what is kept of it."""

from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from auditor.domain.keys import PREFIX, Key, Right, hash_secret, new_key_id, new_secret

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = Key(id="key_1", name="app", hash=bytes(32))


@pytest.mark.parametrize(
    ("expires_in", "usable"),
    [(None, True), (timedelta(microseconds=1), True), (timedelta(0), False), (timedelta(microseconds=-1), False)],
)
def test_a_key_opens_until_it_expires(expires_in: timedelta | None, usable: bool) -> None:
    expires_at = None if expires_in is None else NOW + expires_in
    assert replace(KEY, expires_at=expires_at).usable(NOW) is usable


def test_a_revoked_key_opens_nothing_however_long_it_would_have_lasted() -> None:
    assert not replace(KEY, revoked=True).usable(NOW)
    assert not replace(KEY, revoked=True, expires_at=NOW + timedelta(days=1)).usable(NOW)


def test_a_key_without_models_may_ask_for_all_and_one_with_models_for_those() -> None:
    assert KEY.allows_model("anything")
    chosen = replace(KEY, models=("gpt-4o", "claude"))
    assert [chosen.allows_model(model) for model in ("gpt-4o", "claude", "gpt-4", "gpt-4o-mini", "*", "")] == [
        True, True, False, False, False, False
    ]  # fmt: skip


def test_secrets_are_long_random_and_recognisable() -> None:
    made = {new_secret() for _ in range(1000)}
    assert len(made) == 1000
    # 32 bytes in URL-safe base64, without padding, are 43 characters.
    assert {(secret.startswith(PREFIX), len(secret.removeprefix(PREFIX))) for secret in made} == {(True, 43)}
    assert all(secret.isascii() and secret.isprintable() and " " not in secret for secret in made)


def test_ids_tell_nothing_of_the_secret() -> None:
    assert len({new_key_id() for _ in range(1000)}) == 1000
    assert new_key_id().startswith("key_")


def test_what_is_stored_is_the_sha256() -> None:
    assert hash_secret("sk-bias-abc") == sha256(b"sk-bias-abc").digest()
    assert hash_secret("é") == sha256("é".encode()).digest()


def test_bytes_that_are_no_utf8_are_hashed_as_they_came() -> None:
    """Header values arrive with such bytes as lone surrogates; they must not be an error."""
    assert hash_secret(b"\xff\xfe".decode("utf-8", "surrogateescape")) == sha256(b"\xff\xfe").digest()


def test_rights_are_the_words_of_the_command_line() -> None:
    assert {"pin", "origin", "audit-off"} <= {str(right) for right in Right}


def test_a_key_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        KEY.revoked = True  # type: ignore[misc] # the point of the test
