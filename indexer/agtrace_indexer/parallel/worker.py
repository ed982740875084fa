"""A process that reads new logs into small indexes, for another process to merge.

`python -m agtrace_indexer.parallel.worker INDEX [archive]` answers each line of its input (a JSON array of objects with
the fields of `LogFile`) with a line of JSON (the size of the index, and the progress) and the bytes of a small index
made in memory. It ends when its input does. Sessions with tombstones next to INDEX aren't read.
"""

from __future__ import annotations

import gc
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import msgspec
import orjson
from msgspec.structs import asdict

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.index import shards
from agtrace_indexer.index.maintenance import delete_orphans, scrub_is_due
from agtrace_indexer.index.store import Store
from agtrace_indexer.index.tombstones import Tombstones
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.logs.files import Progress
from agtrace_indexer.parallel.processes import end_with_input
from agtrace_indexer.reader.reader import Reader


def serve(database: Path, archive: Archive, asked: BinaryIO, answers: BinaryIO) -> None:
    """Read the logs of one request after another, with the rules for secrets next to the index."""
    redact.use(database.parent)
    strings.start()
    forgotten = Tombstones.of(database)
    for line in asked:
        try:
            index, progress = read(msgspec.json.decode(line, type=list[LogFile]), forgotten, archive)
        except _TooMuch:
            index, progress = b"", Progress()
        answers.write(orjson.dumps({"size": len(index), "progress": asdict(progress)}) + b"\n")
        answers.write(index)
        answers.flush()
        gc.collect()


MOST = 64 * 1024 * 1024
"""The most bytes of content held at once. If there are more, the answer has no index, and they are read piecemeal."""


def read(files: list[LogFile], forgotten: Tombstones, archive: Archive) -> tuple[bytes, Progress]:
    """Read logs into an index in memory; return it as SQLite would write it to a file, with the progress."""
    with closing(shards.begin()) as connection:
        progress = Progress()
        store = Store(connection)
        store.begin()
        reader = Reader(store, progress, _refuse, batch=sys.maxsize, forgotten=forgotten, archive=archive)
        for found in files:
            reader.read(found, None, lambda head: [])
        if scrub_is_due(connection):  # a log named its id late: names from it that were stored before are deleted, too
            store.flush()
            delete_orphans(connection)
        store.flush()
        store.commit()
        return connection.serialize(), progress


class _TooMuch(BaseException):
    """There is more than fits in memory: the size of a compressed log's content isn't known beforehand.

    No `Exception`, which the reader would take for trouble with the log.
    """


def _refuse(progress: Progress) -> None:
    if progress.bytes_done > 2 * MOST:
        raise _TooMuch


if __name__ == "__main__":
    gc.disable()  # reading leaves no cycles, and looking for them takes a twelfth of its time
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the main one decides
    end_with_input()
    try:
        database = Path(sys.argv[1])
        serve(database, Archive(database, enabled=bool(sys.argv[2:])), sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        sys.stderr.close()
