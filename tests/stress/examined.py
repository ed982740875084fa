"""`agtrace` in a process that examines the index continuously: `python -m tests.stress.examined [--often] mcp`.

Instead of a command, `answer_sizes` runs the benchmark of that name.

With `--often`, threads are switched every microsecond instead of every five milliseconds. An examination that finds
something ends the process with `FOUND`.
"""

from __future__ import annotations

import os
import sys
import threading

from agtrace.cli import main
from agtrace.index.trouble import damage_in
from agtrace.settings import load
from benchmarks import answer_sizes

FOUND = 99
ANSWER_SIZES = "answer_sizes"
_OFTEN = "--often"


def _examine() -> None:
    database = load().database
    while (found := damage_in(database)) is None:
        pass
    sys.stderr.write(f"{found}\n")
    sys.stderr.flush()
    os._exit(FOUND)


if __name__ == "__main__":
    if _OFTEN in sys.argv:
        sys.argv.remove(_OFTEN)
        sys.setswitchinterval(1e-6)
    threading.Thread(target=_examine, daemon=True).start()
    if sys.argv[1:2] == [ANSWER_SIZES]:
        sys.exit(answer_sizes.main(sys.argv[2:]))
    main()
