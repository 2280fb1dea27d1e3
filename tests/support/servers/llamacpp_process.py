"""llama.cpp's own HTTP server as a process: `python llamacpp_child.py MODEL LOG`, started by `llamacpp`.

It has a process to itself because it is native code with signal handlers and threads of its own.
"""

import os
import sys
import threading
from pathlib import Path

import xllamacpp  # type: ignore[import-untyped] # it ships none
from support.models.tiny_gguf import CONTEXT, NAME
from support.servers.child_processes import die_with_parent, say

SLOTS = 2
#: where a request names no limit, the answer ends here
MOST_TOKENS = 64


def parameters(model: Path) -> xllamacpp.CommonParams:
    """Settle the server: one thread of arithmetic, and the same answer to the same request at any time."""
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT * SLOTS
    params.n_parallel = SLOTS
    params.n_predict = MOST_TOKENS
    params.n_gpu_layers = 0
    params.fit_params = False
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 8
    # What is already cached would show in the counts, and differ from one call to the next.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    # Greedy unless asked otherwise; without the penalty random weights soon repeat one word.
    params.sampling.temp = 0.0
    params.sampling.penalty_repeat = 1.3
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.ui = False
    params.offline = True
    return params


def main() -> None:
    """Serve until killed."""
    model, log = map(Path, sys.argv[1:])
    die_with_parent()
    sys.stdout = os.fdopen(os.dup(1), "w")
    with log.open("ab") as file:  # native code logs to both descriptors, and the parent reads only one line
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    server = xllamacpp.Server(parameters(model))
    say(url=server.listening_address)
    threading.Event().wait()


if __name__ == "__main__":
    main()
