"""`python -m tests.health`: how often each detector is right about the labelled sessions, and what readers say.

It exits with 1 if a precision or a recall is below 0.95, or if a detector has too few sessions.
"""

from __future__ import annotations

import sys

from agtrace.health.detectors import DETECTORS
from tests.health.evaluation import evaluate, table
from tests.health.notation import StoryError
from tests.health.readings import LOGS, examined, readings
from tests.health.readings import table as compared


def main() -> int:
    """Print the table, then every wrong label."""
    try:
        judged, scores = evaluate(DETECTORS)
    except StoryError as error:
        sys.exit(str(error))
    read = readings() if LOGS.is_dir() else []
    if read:
        sys.stdout.write(f"{compared(read, examined({one.session for one in read}))}\n\n")
    wrong = [line for one in judged for line in one.wrong()]
    sys.stdout.write("\n".join((table(scores, len(judged)), "", *wrong, f"{len(wrong)} wrong labels\n")))
    return 0 if all(one.good for one in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
