"""Start the log of a process: lines of text, or of JSON where ``BIASMETER_LOG_FORMAT`` is ``json``."""

import json
import logging
import os
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

VARIABLE: Final = "BIASMETER_LOG_FORMAT"
FORMATS: Final = ("text", "json")


class JsonFormatter(logging.Formatter):
    """Write a record as one line of JSON: ``time``, ``level``, ``program``, ``message``, and the ``exception`` if any.

    Parameters
    ----------
    program
        Such as ``biasmeter gateway``.
    """

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "program": self._program,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logging(program: str) -> None:
    """Write the log of this process to standard error, from the level INFO on.

    Parameters
    ----------
    program
        Such as ``biasmeter gateway``; it begins each line of text.
    """
    wanted = os.environ.get(VARIABLE, FORMATS[0])
    if wanted == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter(program))
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    else:
        logging.basicConfig(level=logging.INFO, format=f"{program}: %(message)s")
    if wanted not in FORMATS:
        logging.getLogger(__name__).warning("%s: %r is not one of %s", VARIABLE, wanted, ", ".join(FORMATS))
