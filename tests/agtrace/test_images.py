"""Images that a log has: they are shown from it, or from the archive, to their user only and as they are."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index

from agtrace.settings import load
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import AGTRACE, Said, agtrace_here, index_here
from tests.indexer import opencode_stories as opencode
from tests.indexer.test_codex_families import T0, Rollout, rotated
from tests.web.opening import opened

ONE = "6d1c2b3a-0000-4000-8000-000000000001"


def png(shade: int) -> bytes:
    """An image of one grey pixel."""
    chunks = (
        (b"IHDR", struct.pack(">2I5B", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes((0, shade)))),
        (b"IEND", b""),
    )
    written = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


WAVE, TIDE = png(3), png(200)
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(200))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def anthropic(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded(data)}}


def url(data: bytes) -> str:
    return f"data:image/png;base64,{encoded(data)}"


def claude(home: Path) -> None:
    """A prompt with two images of one size, and a result whose image the log has twice."""
    log = claude_log(home, ONE)
    log.write("user", [{"type": "text", "text": "Which?"}, anthropic(WAVE), anthropic(TIDE)]).say("The second.")
    log.write("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/p/t.jpg"}}])
    shown = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [anthropic(JPEG, "image/jpeg")]}
    log.write("user", [shown], toolUseResult={"type": "image", "file": {"base64": encoded(JPEG)}})


def codex(home: Path) -> None:
    """A prompt and a result in a rollout, another prompt in the one in which the thread goes on."""
    first = Rollout(home, T0)
    first.item("message", role="user", content=[{"type": "input_image", "image_url": url(WAVE)}]).turn("one", 100)
    second = rotated(first, 8).item(
        "message",
        role="user",
        content=[{"type": "input_text", "text": "two"}, {"type": "input_image", "image_url": url(TIDE)}],
    )
    second.calls("c", [{"type": "input_image", "image_url": url(JPEG)}], "view_image")  # type: ignore[arg-type]
    for log in (first, second):
        log.write()


def gemini(home: Path) -> None:
    """One document; slashes may be escaped."""
    said = [
        {"id": str(len(data)), "timestamp": "2026-03-08T09:30:00Z", "type": "user", "content": [
            {"inlineData": {"mimeType": "image/png", "data": encoded(data)}}, {"text": "See"}]}
        for data in (WAVE, JPEG)
    ]  # fmt: skip
    document = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": "2026-03-08T09:30:00Z",
                "lastUpdated": "2026-03-08T09:30:00Z", "kind": "main", "messages": said}  # fmt: skip
    path = home / "tmp" / "p" / "chats" / "session-1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document).replace("/", "\\/"))


def database(home: Path) -> None:
    """A row of OpenCode's."""
    part = {"type": "file", "mime": "image/png", "filename": "wave.png", "url": url(WAVE)}
    with opencode.database(home / "opencode" / "opencode.db", "DELETE") as connection:
        story = opencode.Story(opencode.session(), [opencode.user(1, opencode.text("Look"), part)])
        story.into_database(connection)
    connection.close()


LOGS: list[tuple[Callable[[Path], None], list[bytes]]] = [
    (claude, [WAVE, TIDE, JPEG]), (codex, [WAVE, TIDE, JPEG]), (gemini, [WAVE, JPEG]), (database, [WAVE]),
]  # fmt: skip


def shown(page: str) -> list[bytes]:
    """The images in a page, in order."""
    return [
        base64.b64decode(found) for found in re.findall(r'<img class="shown" src="data:image/\w+;base64,([^"]+)"', page)
    ]


def exported(*options: str) -> str:
    told = agtrace_here("export", "last", "--html", *options)
    assert told.code == 0, told.err
    return told.out


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize(("written", "images"), LOGS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_page_has_the_images_of_its_session_if_wanted_whether_its_log_is_there_or_gone(
    written: Callable[[Path], None], images: list[bytes], home: Path
) -> None:
    written(home)
    index_here(home)
    assert shown(exported()) == [] and "[image: image/png, " in exported()
    assert shown(exported("--images")) == images
    shutil.rmtree(home)
    home.mkdir()
    index(load().database, [])
    assert shown(exported("--images")) == images
    index(load().database, [], rebuild=True)
    assert shown(exported("--images")) == images


def test_an_event_gives_its_images_to_a_file_as_the_log_has_them(home: Path, tmp_path: Path) -> None:
    claude(home)
    index_here(home)
    for place, number, image in (("last:0", "1", WAVE), ("last:0", "2", TIDE), ("last:2", "1", JPEG)):
        run = subprocess.run([AGTRACE, "show", place, "--raw", number], capture_output=True, check=True)
        assert run.stdout == image
    assert (refused("last:0", "--raw", "3"), refused("last:1", "--raw")) == (
        "event 0 has no image 3 that can be shown", "event 1 has no image that can be shown",
    )  # fmt: skip


def refused(*options: str) -> str:
    told: Said = agtrace_here("show", *options)
    assert told.code
    return told.err.strip().removeprefix("agtrace: ")


def test_only_images_are_shown_and_none_that_may_be_another_one(home: Path) -> None:
    log = claude_log(home, ONE)
    log.write("user", [anthropic(b"<svg onload=alert(1)>" * 20, "image/png"), {"type": "text", "text": "a"}])
    log.write("user", [anthropic(WAVE, "image/svg+xml"), {"type": "text", "text": "b"}])
    size = len(encoded(WAVE)) * 3 // 4
    log.prompt(f"[image: image/png, {size} bytes] [image: image/png, {'9' * 9_000} bytes]")
    both = {"type": "tool_result", "tool_use_id": "t", "content": [anthropic(WAVE)]}
    log.write("user", [both], toolUseResult={"file": {"base64": encoded(TIDE)}})
    index_here(home)
    assert shown(exported("--images")) == [WAVE]
    assert '<img class="shown" src="data:image/png;base64,' in exported("--images")


def test_pages_of_a_server_show_images_and_its_agents_get_none(home: Path, compiled_rules: Path) -> None:
    claude(home)
    with opened(home.parent / "nobody", compiled_rules, logs=home) as site:
        page = site.page(f"/s/{ONE[:8]}") + site.page(f"/s/{ONE[:8]}/call/2")
        images = [
            site.client.get(path) for path in dict.fromkeys(re.findall(r'<img class="shown" src="([^"]+)"', page))
        ]
        assert [(image.content, image.headers["content-type"]) for image in images] == [
            (WAVE, "image/png"), (TIDE, "image/png"), (JPEG, "image/jpeg"),
        ]  # fmt: skip
        assert site.client.get(f"/s/{ONE[:8]}/image/0/2").status_code == 404
        assert site.stranger().get(f"/s/{ONE[:8]}/image/0/0").status_code == 401
    command = [sys.executable, "-m", "agtrace", "read", f"ax://session/{ONE[:8]}"]
    told = subprocess.run(command, env=site.environment, capture_output=True, check=True).stdout.decode()
    assert "image/jpeg" in told and encoded(JPEG)[:40] not in told


def test_forgetting_a_session_leaves_no_byte_of_its_images(home: Path, tmp_path: Path) -> None:
    claude(home)
    index_here(home)
    data = load().database.parent
    sign = encoded(JPEG)[:60].encode()
    assert any(sign in path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert agtrace_here("forget", ONE[:8], "--yes").code == 0
    assert not any(sign in path.read_bytes() for path in data.rglob("*") if path.is_file())
