"""Mutated logs: changed in their records, their lines, their bytes, and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import zstandard

from tests.fuzz import odd
from tests.fuzz.sources import Source


@dataclass(slots=True)
class Mutant:
    """A log that was changed."""

    source: Source
    path: str
    """Its path below its folder."""
    content: bytes
    """Its content, before compression."""
    steps: list[str] = field(default_factory=list)
    """The changes made."""
    beside: bytes | None = None
    """The content of its `.meta.json`, if it has one."""
    compressed: bytes | None = None
    """The bytes of its file, if they aren't `content`."""
    intact: bool = True
    """Whether the file has all of `content`."""

    @property
    def data(self) -> bytes:
        """The bytes of its file."""
        return self.content if self.compressed is None else self.compressed


def mutant(sources: Sequence[Source], random: Random) -> Mutant:
    """Change one of these logs in a few places; the same random numbers yield the same mutant."""
    source = random.choice(sources)
    made = Mutant(source, source.path, source.content)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6))):
        kind = random.randrange(20)
        if kind < 11:
            _change_records(made, random)
        elif kind < 16:
            _change_lines(made, sources, random)
        elif kind < 19:
            _change_bytes(made, random)
        else:
            _change_form(made, random)
    _change_file(made, random)
    return made


def _change_records(made: Mutant, random: Random) -> None:
    """Spoil values of a few records, or of the document."""
    document = _decoded(made.content) if made.source.document else None
    if document is not None:
        made.steps.append(f"document: {odd.spoil(document, [document], random)}")
        made.content = odd.written(document, random) + b"\n"
        return
    lines = made.content.split(b"\n")
    records = [(number, record) for number, line in enumerate(lines) if (record := _decoded(line)) is not None]
    for number, record in random.sample(records, min(len(records), random.choice((1, 1, 2)))):
        made.steps.append(f"line {number + 1}: {odd.spoil(record, [other for _, other in records], random)}")
        lines[number] = odd.written(record, random)
    made.content = b"\n".join(lines)


def _change_lines(made: Mutant, sources: Sequence[Source], random: Random) -> None:
    lines = made.content.split(b"\n")
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    way = random.choice(
        ("drop", "repeat", "swap", "join", "cut", "blank", "foreign", "mixed", "again", "reverse", "rest")
    )
    match way:
        case "drop":
            del lines[at]
        case "repeat":
            lines[to:to] = [lines[at]] * random.choice((1, 2, 30))
        case "swap":
            lines[at], lines[to] = lines[to], lines[at]
        case "join":
            lines[at : at + 2] = [random.choice((b"", b" ", b",")).join(lines[at : at + 2])]
        case "cut":
            place = random.randrange(len(lines[at]) + 1)
            lines[at : at + 1] = random.choice(([lines[at][:place]], [lines[at][:place], lines[at][place:]]))
        case "blank":
            lines[at:at] = [
                random.choice((b"", b"  ", b"\r", b"\t", b"null", b"[]", b"{}", b"0", b'""', b"\xef\xbb\xbf"))
            ]
        case "foreign":
            other = random.choice(sources).lines
            lines[at:at] = other[: random.choice((1, 3, 99))]
        case "mixed":
            other = random.choice(sources).lines
            lines = [line for pair in zip(lines, other, strict=False) for line in pair]
        case "again":
            lines += lines[: random.randrange(len(lines) + 1)]
        case "reverse":
            lines[min(at, to) : max(at, to)] = lines[min(at, to) : max(at, to)][::-1]
        case "rest":
            lines[at:] = [lines[at][: random.randrange(len(lines[at]) + 1)]]
    made.steps.append(f"lines: {way}")
    made.content = b"\n".join(lines)


_INSERTED = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"\x1b",
    b"\x7f",
)


def _change_bytes(made: Mutant, random: Random) -> None:
    data = bytearray(made.content)
    way = random.choice(
        ("flip", "flip", "insert", "insert", "remove", "double", "crlf", "mark", "wide", "blanks", "nul")
    )
    at = random.randrange(len(data) + 1)
    end = at + random.choice((1, 5, 200))
    match way:
        case "flip":
            for _ in range(random.choice((1, 3, 20))):
                if data:
                    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        case "insert":
            data[at:at] = random.choice(_INSERTED) * random.choice((1, 1, 2, 300))
        case "remove":
            del data[at:end]
        case "double":
            data[at:at] = data[at:end]
        case "crlf":
            data = bytearray(data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b" \n ", b"\n\r"))))
        case "mark":
            data = bytearray(b"\xef\xbb\xbf" + random.choice((b"", b" ", b"\n")) + data)
        case "wide":
            data = bytearray(
                data.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-16-be", "utf-32-le")))
            )
        case "blanks":
            data = bytearray(data.replace(b'":', b'" : ').replace(b"\n", b" \n \t"))
        case "nul":
            data[at:end] = bytes(len(data[at:end]))
    made.steps.append(f"bytes: {way}")
    made.content = bytes(data)


def _change_form(made: Mutant, random: Random) -> None:
    """Turn a document into lines, or lines into a document."""
    lines = [record for line in made.content.split(b"\n") if (record := _decoded(line)) is not None]
    document = _decoded(made.content)
    if isinstance(document, dict):
        inner = next((value for value in document.values() if isinstance(value, list)), [])
        made.content = b"".join(odd.written(record, random) + b"\n" for record in [document, *inner])
    else:
        shapes = (
            lines,
            {"messages": lines},
            {"sessionId": "x", "messages": lines},
            {"session": {"id": "x"}, "items": lines},
        )
        made.content = json.dumps(random.choice(shapes), indent=random.choice((None, 1))).encode()
    made.steps.append("form")


def _change_file(made: Mutant, random: Random) -> None:
    """Change its name, the file next to it, or its compression."""
    kind = random.randrange(40)
    if kind == 0:
        made.path = random.choice(
            ("a\nb.jsonl", "潮🐟.jsonl", "x", ".jsonl", "100%_.json", "agent-.jsonl", "session-x.json")
        )
        made.steps.append("name")
    elif kind == 1:
        made.path = f"rollout-2026-10-01T10-00-00-{random.randrange(10**6)}.jsonl"
        made.steps.append("name of a rollout")
    elif kind == 2:
        made.path = made.path.rpartition("/")[0] + "/x/subagents/agent-abc.jsonl"
        meta = {"agentType": "x", "description": "y", "toolUseId": "z"}
        odd.spoil(meta, [meta], random)
        made.beside = random.choice((odd.written(meta, random), b"", b"{", b"[" * 100_000, b"\xff\xfe", b"7"))
        made.steps.append("meta.json")
    elif kind < 6:
        _compress(made, random)


def _compress(made: Mutant, random: Random) -> None:
    half = len(made.content) // 2
    pack = zstandard.ZstdCompressor(level=1, write_checksum=random.random() < 0.5).compress
    packed = random.choice((pack(made.content), pack(made.content[:half]) + pack(made.content[half:])))
    made.path = made.path.removesuffix(".zst") + ".zst"
    made.steps.append("compressed")
    if random.random() < 0.6:
        damaged = bytearray(packed)
        way = random.choice(("flip", "cut", "more"))
        if way == "flip":
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        elif way == "cut":
            del damaged[random.randrange(len(damaged)) :]
        else:
            damaged += random.choice((b"\0", b"x" * 99, b"\x28\xb5\x2f\xfd", packed[: len(packed) // 2]))
        packed, made.intact = bytes(damaged), False
        made.steps.append(f"damaged: {way}")
    made.compressed = packed


def _decoded(line: bytes) -> object:
    """Return the JSON object or array in bytes; None for anything else, or if it is nested too deeply."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None
