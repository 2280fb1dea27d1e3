"""``biasmeter verify --sign`` and ``--head``: what a head that was signed and kept elsewhere shows about the store."""

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.servers.product import Product
from support.stores.audited_store import fetch, ship
from support.stores.exchanges import NOON, exchange

from auditor.documents.chain_head import ChainHeadDocument, is_signed, new_key
from auditor.documents.codec import decode
from auditor.domain.ids import floor_id
from auditor.store.engine import metadata

PRIVATE, PUBLIC = new_key()
#: Remove whatever the chain says about exchanges.
EMPTY_CHAIN = (
    "TRUNCATE chain",
    "UPDATE chain_base SET position = 0, digest = decode(repeat('00', 32), 'hex')",
)


async def store_batches(url: str, first: int, count: int) -> None:
    """Ship batches of two exchanges, one a minute."""
    for place in range(first, first + count):
        await ship(url, [exchange(NOON + timedelta(minutes=place, seconds=second)) for second in (0, 1)])


@pytest.fixture
async def signed(product: Product) -> Product:
    """Three batches, and a head of them."""
    assert product.database_url is not None
    await store_batches(product.database_url, 0, 3)
    product.environment["BIASMETER_SIGNING_KEY"] = PRIVATE
    done = product.run("verify", "--sign", "head.json")
    assert done.stdout.splitlines()[-1] == f"head.json: signed with the key {PUBLIC}"
    assert PRIVATE not in done.stdout + (product.folder / "head.json").read_text()
    return product


def compare(product: Product, *options: str) -> tuple[int, str]:
    """Check ``head.json``: the status, and what is printed: one line, and one of counts if the head is in the chain."""
    done = product.run("verify", "--head", "head.json", *options, check=False)
    assert (done.stdout + done.stderr).count("\n") == (1 if done.returncode else 2)
    return done.returncode, done.stdout + done.stderr.removeprefix("biasmeter: ")


def gone(erased: int, expired: int) -> str:
    """The line of counts below a head that was signed before anything was gone."""
    return (
        f"of its exchanges {erased} are erased (0 when it was signed), {expired} have expired (0 when it was signed)\n"
    )


async def test_a_signed_head_is_found_in_the_chain_that_grew(signed: Product) -> None:
    head = decode((signed.folder / "head.json").read_bytes(), ChainHeadDocument, "head.json")
    ((digest,),) = await signed.rows("SELECT digest FROM chain WHERE position = 3")
    assert (head.length, head.digest, head.public_key) == (3, digest.hex(), PUBLIC)
    ((newest,),) = await signed.rows("SELECT id FROM exchanges ORDER BY id DESC LIMIT 1")
    assert (head.newest, head.erased, head.expired) == (str(newest), 0, 0)
    status, said = compare(signed)
    assert status == 0
    assert said.startswith("the chain of 3 batches contains the head of 3, signed ")
    assert f" by the key {PUBLIC}, which was not compared: see --public-key\n" in said
    await store_batches(str(signed.database_url), 3, 2)
    for written in (PUBLIC, PUBLIC.upper(), base64.b64encode(bytes.fromhex(PUBLIC)).decode()):
        assert compare(signed, "--public-key", written) == (
            0,
            f"the chain of 5 batches contains the head of 3, signed {head.signed_at} by the key {PUBLIC}\n{gone(0, 0)}",
        )


async def test_the_newest_batches_that_were_removed_are_missed(signed: Product) -> None:
    for statement in (
        "DELETE FROM exchanges WHERE id IN (SELECT id FROM exchanges ORDER BY id DESC LIMIT 2)",
        "DELETE FROM chain WHERE position = 3",
    ):
        await signed.rows(statement)
    assert signed.run("verify").returncode == 0  # the chain itself does not show it
    status, said = compare(signed, "--public-key", PUBLIC)
    assert status == 1
    assert re.fullmatch(r"the newest batches are gone: the chain has 2, and had 3 on \S+\n", said)
    await store_batches(str(signed.database_url), 3, 1)  # as long as before, by other exchanges
    assert compare(signed)[1].startswith("the chain was rebuilt: batch 3 is not the one")


async def test_a_chain_that_was_rebuilt_around_an_altered_row_is_found(signed: Product) -> None:
    url = str(signed.database_url)
    rows = [dict(row) for row in await fetch(url, "SELECT * FROM exchanges ORDER BY id")]
    for statement in (*EMPTY_CHAIN, "DELETE FROM exchanges"):
        await fetch(url, statement)
    names = list(rows[0])
    for place in range(0, 6, 2):
        values = [{**row, "status": 500} if place == 0 else row for row in rows[place : place + 2]]
        places = ", ".join(
            f"({', '.join(f'${1 + len(names) * row + column}' for column in range(len(names)))})" for row in range(2)
        )
        await fetch(
            url,
            f"INSERT INTO exchanges ({', '.join(names)}) VALUES {places}",
            *(row[name] for row in values for name in names),
        )
    assert signed.run("verify").stdout.startswith("length of the chain: 3 batches")
    status, said = compare(signed, "--public-key", PUBLIC)
    assert (status, said.partition(" is not ")[0]) == (1, "the chain was rebuilt: batch 3")


async def test_an_altered_row_is_named_and_no_head_is_signed(signed: Product) -> None:
    ((changed,),) = await signed.rows("SELECT id FROM exchanges ORDER BY id LIMIT 1")
    await signed.rows("UPDATE exchanges SET status = 500 WHERE id = $1", changed)
    said = f"exchange {changed} of batch 1 is altered\n"
    assert compare(signed) == (1, said)
    failed = signed.run("verify", "--sign", "other.json", check=False)
    assert (failed.returncode, failed.stderr) == (1, f"biasmeter: {said}")
    assert not (signed.folder / "other.json").exists()


async def test_what_retention_has_removed_is_counted_until_it_has_passed_the_head(signed: Product) -> None:
    def keep_facts_until(minute: float) -> None:
        seconds = int((datetime.now(UTC) - NOON - timedelta(minutes=minute)).total_seconds())
        signed.settings["retention"] = {"content": f"{seconds}s", "facts": f"{seconds}s"}
        signed.write()

    async def expire(position: int, minute: float) -> None:
        await signed.rows("UPDATE chain_base SET expired_before = $1", floor_id(NOON + timedelta(minutes=minute)))
        await signed.rows("DELETE FROM exchanges WHERE id < (SELECT expired_before FROM chain_base)")
        await signed.rows(FORGET, position)
        await signed.rows("DELETE FROM chain WHERE position <= $1", position)

    keep_facts_until(1.5)
    await expire(0, 0.5)
    assert compare(signed)[1].endswith(gone(0, 2))
    await expire(1, 1.5)
    assert compare(signed)[1].endswith(gone(0, 2))  # those of batches that are gone are not counted
    await store_batches(str(signed.database_url), 3, 1)
    keep_facts_until(2.5)
    await expire(3, 2.5)
    assert compare(signed)[1].endswith(gone(0, 0))
    keep_facts_until(3.5)
    await expire(4, 3.5)
    said = (
        "the head of batch 3 cannot be compared: the chain begins behind batch 4, because retention removed older ones"
    )
    assert compare(signed) == (1, f"{said}\n")


#: Move the beginning of the chain behind a batch.
FORGET = """
    UPDATE chain_base b SET (position, newest, digest) = (c.position, c.newest, c.digest)
    FROM chain c WHERE c.position = $1
"""
FORGET_1 = FORGET.replace("$1", "1")
OLDEST = "(SELECT min(id::text)::uuid FROM saved_exchanges)"
#: What an honest erasure leaves behind.
RECORD = (
    "INSERT INTO erasures VALUES ('erasure_1', now(), 'eve', 'exchange', '', '{}', true)",
    f"INSERT INTO erased_exchanges VALUES ({OLDEST}, 'erasure_1', 3)",
)
REMOVE_1 = "DELETE FROM exchanges WHERE id <= (SELECT newest FROM saved_chain WHERE position = 1)"
GONE_1 = (FORGET_1, "DELETE FROM chain WHERE position = 1", REMOVE_1)
GONE_3 = (FORGET.replace("$1", "3"), "TRUNCATE chain", "DELETE FROM exchanges")
ZERO = "'00000000-0000-0000-0000-000000000000'"
COLUMNS = ", ".join(column.name for column in metadata.tables["exchanges"].columns)
ALTERED = COLUMNS.replace("model", "'other'")
NEW_ID = "'019ca945-0000-7000-8000-000000000001'::uuid"
INVENTED = COLUMNS.replace("id", NEW_ID, 1)
#: Expiry of exchanges that were older than all there are.
OLD = f"newest = {ZERO}, expired_before = '00000000-0000-7000-8000-000000000000'"
#: What somebody who writes to every table and cannot sign may try, and what verification against the head says.
ATTACKS = {
    "an altered row with a record of its erasure": (
        ("UPDATE exchanges SET status = 500 WHERE id = " + OLDEST, *RECORD), "exchange .* of batch 1 is altered"
    ),
    "an erased row that is back, altered, past the trigger": (
        (
            f"DELETE FROM exchanges WHERE id = {OLDEST}",
            *RECORD,
            f"INSERT INTO exchanges_20260301 ({COLUMNS}) SELECT {ALTERED} FROM saved_exchanges WHERE id = {OLDEST}",
        ),
        "exchange .* of batch 1 is altered",
    ),
    "an invented row with a record of its erasure": (
        (
            f"INSERT INTO exchanges_20260301 ({COLUMNS}) SELECT {INVENTED} FROM saved_exchanges WHERE id = {OLDEST}",
            RECORD[0],
            f"INSERT INTO erased_exchanges VALUES ({NEW_ID}, 'erasure_1', 3)",
        ),
        "exchange .* was inserted",
    ),
    "the oldest batch forgotten": (GONE_1, "the batches up to 1 are gone, and exchange .* has not expired"),
    "the oldest batch forgotten, as if it had been older": (
        (*GONE_1, f"UPDATE chain_base SET {OLD}"),
        "the chain is broken: batch 2",
    ),
    "the oldest batch expired before its time": (
        (*GONE_1, "UPDATE chain_base SET expired_before = (SELECT newest FROM saved_chain WHERE position = 2)"),
        r"exchanges before .* have expired, by the store's record, and retention.facts keeps those from \S+ on",
    ),
    "rows expired before their time": (
        (REMOVE_1, "UPDATE chain_base SET expired_before = (SELECT newest FROM saved_chain WHERE position = 2)"),
        "exchanges before .* have expired, by the store's record",
    ),
    "rows expired in a year that no calendar has": (
        ("UPDATE chain_base SET expired_before = 'ffffffff-ffff-ffff-ffff-ffffffffffff'", "DELETE FROM exchanges"),
        "exchanges before ffffffff-ffff-ffff-ffff-ffffffffffff have expired, by the store's record",
    ),
    "all that was signed forgotten": (GONE_3, "the batches up to 3 are gone, and exchange .* has not expired"),
    "all that was signed forgotten, as if it had been older": (
        (*GONE_3, f"UPDATE chain_base SET {OLD}"),
        "the chain was rebuilt: batch 3",
    ),
    "more than was signed forgotten": (
        (*GONE_3, f"UPDATE chain_base SET position = 4, digest = sha256(digest), {OLD}"),
        "the batches up to 4 are gone, and exchange .* has not expired",
    ),
    "no record of what has expired": (
        ("DELETE FROM chain_base", "DELETE FROM chain WHERE position = 1", REMOVE_1), "the chain is broken: batch 1"
    ),
}  # fmt: skip
#: What a signed head cannot forbid: removals with a record of an erasure. It counts them.
COUNTED = {
    "a removed row with a record of its erasure": (f"DELETE FROM exchanges WHERE id = {OLDEST}", *RECORD),
    "a removed row that was stored again, altered": (
        f"DELETE FROM exchanges WHERE id = {OLDEST}", *RECORD,
        f"INSERT INTO exchanges ({COLUMNS}) SELECT {ALTERED} FROM saved_exchanges WHERE id = {OLDEST}",
    ),
}  # fmt: skip
_SAVED = ("exchanges", "chain", "chain_base")


async def test_what_may_be_tried_without_the_key_is_named_or_counted(signed: Product) -> None:
    signed.settings["retention"] = {"facts": "20000d"}
    signed.write()
    for table in _SAVED:
        await signed.rows(f"CREATE TABLE saved_{table} AS TABLE {table}")
    assert compare(signed, "--public-key", PUBLIC)[0] == 0
    for case, (statements, message) in ATTACKS.items():
        await attack(signed, statements)
        status, said = compare(signed, "--public-key", PUBLIC)
        assert status == 1, case
        assert re.match(message, said), (case, said)
    for case, statements in COUNTED.items():
        await attack(signed, statements)
        status, said = compare(signed, "--public-key", PUBLIC)
        assert (status, said.splitlines(keepends=True)[1]) == (0, gone(1, 0)), case


async def attack(signed: Product, statements: tuple[str, ...]) -> None:
    """Run statements on the store as it was signed."""
    await signed.rows("TRUNCATE exchanges, chain, chain_base, erasures, erased_exchanges")
    await signed.rows("ALTER TABLE exchanges DISABLE TRIGGER USER")
    for table in _SAVED:
        await signed.rows(f"INSERT INTO {table} TABLE saved_{table}")
    await signed.rows("ALTER TABLE exchanges ENABLE TRIGGER USER")
    for statement in statements:
        await signed.rows(statement)


CHANGES = {
    "length": lambda head: head | {"length": 2},
    "digest": lambda head: head | {"digest": "0" * 64},
    "newest": lambda head: head | {"newest": "00000000-0000-0000-0000-000000000000"},
    "erased": lambda head: head | {"erased": 1},
    "expired": lambda head: head | {"expired": 1},
    "time": lambda head: head | {"signed_at": "2027-01-01T00:00:00+00:00"},
    # One signature in 256 ends with any given byte, so the last digit becomes the next one.
    "signature": lambda head: head | {"signature": head["signature"][:-1] + f"{int(head['signature'][-1], 16) ^ 1:x}"},
    "key": lambda head: head | {"public_key": new_key()[1]},
}


async def test_an_altered_head_is_refused(signed: Product) -> None:
    path = signed.folder / "head.json"
    head = json.loads(path.read_text())
    for case, change in CHANGES.items():
        path.write_text(json.dumps(change(head)))
        said = (1, "head.json: the signature is not of this content; the file was altered\n")
        assert compare(signed) == said, case


async def test_a_head_of_another_key_is_refused(signed: Product) -> None:
    other = new_key()[1]
    said = f"head.json: the key {PUBLIC} signed it, not the one of --public-key\n"
    assert compare(signed, "--public-key", other) == (1, said)


def test_the_signature_is_of_the_file_without_its_line(signed: Product) -> None:
    lines = (signed.folder / "head.json").read_bytes().splitlines(keepends=True)
    head = decode(b"".join(lines), ChainHeadDocument, "head.json")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    Ed25519PublicKey.from_public_bytes(bytes.fromhex(PUBLIC)).verify(
        bytes.fromhex(head.signature), b"".join(line for line in lines if b'"signature"' not in line)
    )
    assert is_signed(head)


def test_bad_keys_and_files_are_one_line_that_does_not_show_them(product: Product) -> None:
    refused = product.run("verify", "--sign", "head.json", check=False)
    assert (refused.returncode, refused.stderr) == (
        2,
        "biasmeter: --sign needs a private key in BIASMETER_SIGNING_KEY; make one with: biasmeter verify --new-key\n",
    )
    wrong = "is not a key: 32 bytes, written in base64 or as hexadecimal digits\n"
    for bad in ("", "secret", PRIVATE[:-2], PRIVATE + "00", "z" * 64, "é" * 44, base64.b64encode(bytes(31)).decode()):
        product.environment["BIASMETER_SIGNING_KEY"] = bad
        refused = product.run("verify", "--sign", "head.json", check=False)
        assert (refused.returncode, refused.stderr) == (2, f"biasmeter: BIASMETER_SIGNING_KEY {wrong}")
    refused = product.run("verify", "--head", "head.json", "--public-key", "x", check=False)
    assert (refused.returncode, refused.stderr) == (2, f"biasmeter: --public-key {wrong}")
    assert compare(product) == (2, "head.json: no such file\n")
    (product.folder / "head.json").write_text("{}")
    assert compare(product) == (1, "head.json: /: lacks the key 'schema'\n")
    for wrong_options in (("--sign", "a", "--head", "b"), ("--new-key", "--sign", "a"), ("--public-key", PUBLIC)):
        refused = product.run("verify", *wrong_options, check=False)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_a_new_key_signs(product: Product, tmp_path: Path) -> None:
    made = dict(
        re.findall(r"(?m)^(?:# )?(\S+|public key)[=:] ?([0-9a-f]{64})$", product.run("verify", "--new-key").stdout)
    )
    product.environment["BIASMETER_SIGNING_KEY"] = base64.b64encode(
        bytes.fromhex(made["BIASMETER_SIGNING_KEY"])
    ).decode()
    product.run("verify", "--sign", "head.json")
    assert compare(product, "--public-key", made["public key"])[0] == 0
