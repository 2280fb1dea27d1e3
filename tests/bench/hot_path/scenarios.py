"""What is asked of every proxy."""

import json
from dataclasses import dataclass
from typing import Any

REQUEST_BYTES = 1024
#: What the upstream adds to the events of text: the finish reason, the usage and the terminator.
_ENDING = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """A kind of load: so many connections, each sending the same request again when it has been answered."""

    name: str
    connections: int
    texts: int = 0  #: events of text in a stream; 0: no stream
    pace_ms: int = 0  #: between two of them; before an answer that is no stream
    ramp_ms: int = 0  #: over which the connections are opened, so that streams do not keep step
    clients: int = 1  #: each with a head and, where that is checked, a key of its own; in turn, whatever the connection
    refused: int = 0  #: of a hundred requests, refused by the deployment with status 400
    tls: bool = False  #: to the deployment
    title: str = ""  #: in the table of further loads

    @property
    def model(self) -> str:
        """The name that tells the upstream the shape of its answer."""
        return f"mock-{self.texts}-{self.pace_ms}" + (f"-{self.refused}" if self.refused else "")

    @property
    def events(self) -> int:
        """Events of one whole answer."""
        return self.texts + _ENDING if self.texts else 0


UNARY = Scenario(name="unary", connections=64)
#: As many requests a second to whoever can serve them: what is quicker does not get more, and waits for each by itself.
STEADY = Scenario(name="steady", connections=64, pace_ms=16, ramp_ms=16)
STREAMS = Scenario(name="streams", connections=100, texts=64, pace_ms=10, ramp_ms=100)
#: As `UNARY`, with one thing changed each.
FURTHER = (
    *(
        Scenario(name=f"clients-{count}", connections=64, clients=count, title=f"{count:,} clients in turn")
        for count in (10, 200, 1000)
    ),
    Scenario(name="tls", connections=64, tls=True, title="TLS to the deployment"),
    Scenario(name="refusals", connections=64, refused=20, title="one request in five refused by the deployment"),
)
MOST_CLIENTS = max(scenario.clients for scenario in FURTHER)
#: Slow, so that all streams are open at once long before the first ends.
OPEN_STREAMS = Scenario(name="open streams", connections=500, texts=64, pace_ms=100, ramp_ms=2000)
WARM_UP = (Scenario(name="warm-up", connections=8), Scenario(name="warm-up", connections=8, texts=64, ramp_ms=50))

MODELS = tuple(dict.fromkeys(scenario.model for scenario in (UNARY, STEADY, STREAMS, *FURTHER, OPEN_STREAMS, *WARM_UP)))


def chat(model: str, *, stream: bool) -> bytes:
    """A chat completion's request body of 1 KB."""
    body: dict[str, Any] = {"model": model, "temperature": 0.2, "max_tokens": 256}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    words = "Which of two neighbours should keep the key? "

    def with_text(text: str) -> bytes:
        said = [{"role": "system", "content": "Answer in one line."}, {"role": "user", "content": text}]
        return json.dumps(body | {"messages": said}).encode()

    return with_text((words * 30)[: REQUEST_BYTES - len(with_text(""))])
