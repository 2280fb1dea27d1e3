"""What the shipper holds after large batches: no more than it had, but for what its allocator keeps."""

import os
import signal

import aiohttp
from support.servers.process_memory import resident
from support.servers.product import Product
from support.waiting import eventually

#: MiB. glibc keeps free memory at the end of its heap, up to twice the largest buffer that it has given back.
_KEPT = 12


async def test_the_shipper_lets_go_of_a_batch_that_it_has_stored(product: Product) -> None:
    product.settings["gateway"]["workers"] = 1
    product.write()
    with product.running("gateway") as running:
        (shipper,) = running.pids("gateway.ship")
        await _shipped_at_once(product, shipper, requests=20, size=1 << 10)
        before = resident(shipper)
        for _ in range(3):
            await _shipped_at_once(product, shipper, requests=40, size=200 << 10)
        await eventually(lambda: resident(shipper) < before + _KEPT, patience=5)


async def _shipped_at_once(product: Product, shipper: int, *, requests: int, size: int) -> None:
    """Make requests while the shipper is stopped, so that it finds all of them in the spool."""
    payload = {"model": "gpt", "messages": [{"role": "user", "content": "a long question " * (size // 16)}]}
    os.kill(shipper, signal.SIGSTOP)
    async with aiohttp.ClientSession() as client:
        for _ in range(requests):
            async with client.post(product.url + "/v1/chat/completions", json=payload) as answer:
                await answer.read()
    os.kill(shipper, signal.SIGCONT)
    await product.shipped()
