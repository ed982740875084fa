#!/usr/bin/env python3
"""An agent for `agtrace run`, copied under an agent's name: writes down what it is given, then does as stdin says.

A number on stdin is the exit code to end with, `-15` a signal to die of, `told` makes it write down its file again,
the end of stdin ends it. Signals that it gets are written to stdout by name.
"""

import json
import os
import resource
import signal
import sys

OUT = os.environ["AGENT_OUT"]


def say(*words: object) -> None:
    """Write a line to stdout."""
    os.write(1, " ".join(map(str, words)).encode() + b"\n")


def file() -> str | None:
    """Return the content of the file that it was given."""
    for word in sys.argv:
        if word.startswith("--mcp-config="):
            path = word.partition("=")[2]
            try:
                with open(path) as given:
                    return f"{os.stat(path).st_mode & 0o777:o} {given.read()}"
            except OSError as error:
                return str(error)
    return None


def main() -> None:
    """Do as stdin says."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGUSR1):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: say(signal.Signals(number).name))
    given = {"arguments": sys.argv[1:], "environment": dict(os.environ), "file": file(), "pid": os.getpid()}
    with open(f"{OUT}.new", "w") as out:
        json.dump(given, out)
    os.rename(f"{OUT}.new", OUT)
    say("here")
    for line in sys.stdin:
        word = line.strip()
        if word == "told":
            say("told", file())
        elif word.startswith("-"):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if -int(word) != signal.SIGKILL:
                signal.signal(-int(word), signal.SIG_DFL)
            os.kill(os.getpid(), -int(word))
        else:
            sys.exit(int(word))


if __name__ == "__main__":
    main()
