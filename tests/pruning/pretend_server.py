"""A server for `agtrace run` that behaves as a test wants: `python pretend_server.py BEHAVIOUR...`.

It is well unless told otherwise: says on stderr where it listens, answers 200 to whatever it is asked, and ends at
SIGTERM. SIGUSR1 makes it end with exit code 4, SIGUSR2 close its ears.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from types import FrameType


def main(behaviours: set[str]) -> None:
    """Serve until somebody ends it."""
    if "exits" in behaviours:
        os.write(2, b"can't go on\n")
        os._exit(3)
    listening = socket.create_server(("127.0.0.1", 0))
    stubborn = "stubborn" in behaviours
    signal.signal(signal.SIGTERM, lambda *_: None if stubborn else os._exit(0))
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(4))
    if "garbage" in behaviours:
        os.write(
            2, b'\xff\xfe\n{"event": "mcp_pruner.ready"}\nmcp_pruner.ready\n{"event": "mcp_pruner.ready", "port": 0}\n'
        )
        os.write(1, b"to stdout " + os.environb[b"AGTRACE_HTTP_TOKEN"] + b"\n")
    if "silent" not in behaviours:
        ready = {"event": "mcp_pruner.ready", "host": "127.0.0.1", "port": listening.getsockname()[1]}
        os.write(2, json.dumps(ready).encode() + b"\n")
    if "leaves a child" in behaviours and os.fork() == 0:
        threading.Event().wait()
    status = b"503 Busy" if "not ready" in behaviours else b"200 OK"
    signal.signal(signal.SIGUSR2, lambda number, frame: close_ears(listening))
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # its ears are closed
            threading.Event().wait()
        with client:
            client.recv(4096)
            client.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def close_ears(listening: socket.socket, _frame: FrameType | None = None) -> None:
    """Refuse every connection from now on."""
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


if __name__ == "__main__":
    main(set(sys.argv[1:]))
