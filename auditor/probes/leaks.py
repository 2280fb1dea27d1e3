"""Ask a deployment to continue the pieces of ``instrument.leaks``, through the gateway."""

import asyncio
from collections.abc import Callable

from auditor.instrument.leaks import LeakPiece, pieces
from auditor.judges.endpoint import EndpointClient, JudgeEndpoint, open_client
from auditor.judges.reply import Refused, read_completion


async def ask_pieces(endpoint: JudgeEndpoint, on_answer: Callable[[], None] = lambda: None) -> dict[str, str]:
    """Return the replies by id of the piece. A refusal is an empty reply; a rejected request has none.

    Parameters
    ----------
    endpoint
        The deployment. No sampling parameter is sent, as with other probes.
    on_answer
        Called after each answer.

    Raises
    ------
    JudgeUnavailable
        The deployment cannot be reached.
    """
    client = EndpointClient(endpoint, open_client(endpoint.concurrency))

    async def ask(piece: LeakPiece) -> tuple[str, str] | None:
        message = {"role": "user", "content": piece.prompt}
        reply = await client.post({"model": endpoint.model, "messages": [message]})
        on_answer()
        if reply.status != 200:
            return None
        completion = read_completion(reply.body, lambda text: text)
        if isinstance(completion, str):
            return piece.id, completion
        return piece.id, "" if isinstance(completion, Refused) else completion.content

    try:
        replies = await asyncio.gather(*map(ask, pieces()))
    finally:
        await client.aclose()
    return dict(reply for reply in replies if reply is not None)
