"""``biasmeter erase`` beside a running gateway, and ``biasmeter verify`` before and after."""

import re
from typing import Any

import aiohttp
from support.servers.product import Product
from support.stores.exchanges import exchange

from gateway.recording import codec
from gateway.recording.spool import SpoolWriter

CHAT = "/v1/chat/completions"
CANARY = "canary-52b1"


async def ask(product: Product, user: str, content: str) -> str:
    payload: dict[str, Any] = {"model": "gpt", "user": user, "messages": [{"role": "user", "content": content}]}
    async with aiohttp.ClientSession() as client, client.post(product.url + CHAT, json=payload) as answer:
        await answer.read()
        return str(answer.headers["x-biasmeter-exchange-id"])


def on_disk(product: Product) -> str:
    spool = product.data_dir / "gateway" / "spool"
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(spool.rglob("*")) if path.is_file())


async def stored(product: Product) -> set[str]:
    return {str(row["id"]) for row in await product.rows("SELECT id FROM exchanges")}


async def test_an_end_user_is_erased_from_store_and_spool_beside_the_running_gateway(product: Product) -> None:
    config = ("-c", str(product.config))
    with product.running("gateway"):
        kept = await ask(product, "u-1", "hello")
        erased = await ask(product, "u-2", CANARY)
        await product.shipped()
        assert CANARY in on_disk(product)  # shipped, but its segment still grows
        assert "length of the chain: " in product.run("verify", *config).stdout
        refused = product.run("erase", *config, "--user", "u-2", check=False)
        assert refused.returncode == 2
        assert refused.stderr.strip().endswith("there is nobody to ask; --yes erases")
        assert CANARY in on_disk(product)
        done = product.run("erase", *config, "--user", "u-2", "--yes")
        assert [line.split() for line in done.stdout.splitlines()[:4]] == [
            ["found", "rows"], ["exchange_content", "1"], ["exchanges", "1"], ["spool", "1"]
        ]  # fmt: skip
        assert CANARY not in on_disk(product)
        later = await ask(product, "u-1", "again")
        await product.shipped()
    assert await stored(product) == {kept, later}
    assert await product.rows("SELECT 1 FROM exchange_content WHERE id = $1", erased) == []
    ((record,),) = await product.rows("SELECT e::text FROM erasures e")
    assert "u-2" not in record
    assert "1 were erased and recorded as erased" in product.run("verify", *config).stdout
    assert product.run("erase", *config, "--user", "u-2").stdout == "found nothing\n"
    await product.rows("UPDATE exchanges SET model = 'other' WHERE id = $1", later)
    failed = product.run("verify", *config, check=False)
    assert failed.returncode == 1
    # The first two may be in one batch or in two.
    assert re.fullmatch(rf"biasmeter: exchange {later} of batch \d is altered", failed.stderr.strip())


async def test_what_the_store_does_not_have_yet_is_erased_in_the_spool(product: Product) -> None:
    config = ("-c", str(product.config))
    made = [exchange(key_id="key_1", request=CANARY.encode()), exchange(key_id="key_2")]
    writer = SpoolWriter(product.data_dir / "gateway" / "spool", "w")
    for one in made:
        writer.append(codec.encode(one), 1)
    writer.close()
    done = product.run("erase", *config, "--key", "key_1", "--yes")
    assert [line.split() for line in done.stdout.splitlines()[:2]] == [["found", "rows"], ["spool", "1"]]
    assert CANARY not in on_disk(product)
    with product.running("gateway"):
        await product.shipped()
    assert await stored(product) == {str(made[1].id)}


def test_a_selector_that_cannot_be_read_is_one_line(product: Product) -> None:
    for bad in (("--tag", "novalue"), ("--exchange", "x"), ("--user", "u", "--key", "k"), ()):
        refused = product.run("erase", "-c", str(product.config), *bad, check=False)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
