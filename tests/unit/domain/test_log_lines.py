"""Logs are lines of text, or of JSON by ``BIASMETER_LOG_FORMAT``."""

import json
import os
import subprocess
import sys
from datetime import datetime

PROGRAM = """
import logging
from auditor.domain.log_lines import start_logging
start_logging("biasmeter test")
logging.getLogger("one").info("ready on %s", "127.0.0.1")
try:
    raise ValueError("wrong\\nvalue")
except ValueError:
    logging.getLogger("two").exception("it failed: “%s”", "x\\ny")
"""


def lines(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return done.stderr.splitlines()


def test_text_begins_with_the_program() -> None:
    assert lines()[0] == "biasmeter test: ready on 127.0.0.1"


def test_json_has_one_line_a_record() -> None:
    ready, failed = (json.loads(line) for line in lines(BIASMETER_LOG_FORMAT="json"))
    assert datetime.fromisoformat(ready.pop("time")).tzinfo is not None
    assert ready == {"level": "info", "program": "biasmeter test", "message": "ready on 127.0.0.1"}
    assert failed["message"] == "it failed: “x\ny”"
    assert failed["exception"].endswith("ValueError: wrong\nvalue")


def test_an_unknown_format_is_named_and_text_is_used() -> None:
    assert lines(BIASMETER_LOG_FORMAT="xml")[:2] == [
        "biasmeter test: BIASMETER_LOG_FORMAT: 'xml' is not one of text, json",
        "biasmeter test: ready on 127.0.0.1",
    ]
