"""Images that a log has: they are shown from it, or from the archive, to their user only and as they are."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index

from agtrace.settings import load
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import AGTRACE, agtrace_here, index_here
from tests.contents import contents
from tests.indexer import opencode_stories as opencode
from tests.indexer.test_codex_families import T0, Rollout, rotated
from tests.web.opening import opened

ONE = "6d1c2b3a-0000-4000-8000-000000000001"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nG{}AAAABJRU5ErkJggg=="
WAVE, TIDE = (base64.b64decode(DOT.format(end)) for end in ("NgBgAABQAE69OlZg", "M4AQAAygDJmcpdfg"))
"""Images of one grey pixel, of the same size."""
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(200))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def url(data: bytes) -> str:
    return f"data:image/png;base64,{encoded(data)}"


def anthropic(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded(data)}}


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
    second = rotated(first, 8)
    said = [{"type": "input_text", "text": "two"}, {"type": "input_image", "image_url": url(TIDE)}]
    second.item("message", role="user", content=said)
    second.calls("c", [{"type": "input_image", "image_url": url(JPEG)}], "view_image")  # type: ignore[arg-type]
    second.calls("d", f"Exit code: 0\nOutput:\n{url(TIDE)} needle")
    first.write()
    second.write()


def gemini(home: Path) -> None:
    """One document, with escaped slashes."""
    at = "2026-03-08T09:30:00Z"
    said = [
        {"id": str(len(data)), "timestamp": at, "type": "user", "content": [
            {"inlineData": {"mimeType": "image/png", "data": encoded(data)}}, {"text": "See"}]}
        for data in (WAVE, JPEG)
    ]  # fmt: skip
    facts = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": at, "lastUpdated": at, "kind": "main"}
    path = home / "tmp" / "p" / "chats" / "session-1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**facts, "messages": said}).replace("/", "\\/"))


def database(home: Path) -> None:
    """A row of OpenCode's."""
    part = {"type": "file", "mime": "image/png", "filename": "wave.png", "url": url(WAVE)}
    connection = opencode.database(home / "opencode" / "opencode.db", "DELETE")
    opencode.Story(opencode.session(), [opencode.user(1, opencode.text("Look"), part)]).into_database(connection)
    connection.close()


LOGS: list[tuple[Callable[[Path], None], list[bytes]]] = [
    (claude, [WAVE, TIDE, JPEG]), (codex, [WAVE, TIDE, JPEG]), (gemini, [WAVE, JPEG]), (database, [WAVE]),
]  # fmt: skip


def shown(*options: str) -> list[bytes]:
    """The images in the page of the last session, in order."""
    told = agtrace_here("export", "last", "--html", *options)
    found = re.findall(r'<img class="shown" src="data:image/\w+;base64,([^"]+)"', told.out)
    assert told.code == 0 and told.out.count("<img") == len(found)
    return [base64.b64decode(image) for image in found]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize(("written", "images"), LOGS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_page_has_the_images_if_wanted_though_their_log_is_gone_but_not_once_it_is_forgotten(
    written: Callable[[Path], None], images: list[bytes], home: Path
) -> None:
    written(home)
    index_here(home)
    stored, data = str(contents(load().database)), load().database.parent
    assert "[image: image/png, " in stored and not any(encoded(image)[20:] in stored for image in images)
    assert shown() == []
    assert shown("--images") == images
    shutil.rmtree(home)
    home.mkdir()
    index(load().database, [])
    assert shown("--images") == images
    index(load().database, [], rebuild=True)
    assert shown("--images") == images
    if written is not database:  # whose rows are compressed
        assert any(encoded(WAVE)[20:40].encode() in path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert agtrace_here("forget", "last", "--yes").code == 0
    assert not any(encoded(WAVE)[20:40].encode() in path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert not [path for path in (data / "archive").rglob("*") if path.is_file()]


def test_an_event_gives_its_images_to_a_file_as_the_log_has_them(home: Path) -> None:
    claude(home)
    index_here(home)
    for place, number, image in (("last:0", "1", WAVE), ("last:0", "2", TIDE), ("last:2", "1", JPEG)):
        assert subprocess.check_output([AGTRACE, "show", place, "--raw", number]) == image
    assert "event 0 has no image 3 that can be shown" in agtrace_here("show", "last:0", "--raw", "3").err
    assert "event 1 has no image that can be shown" in agtrace_here("show", "last:1", "--raw").err


def test_only_images_are_shown_and_none_that_may_be_another_one(home: Path) -> None:
    log = claude_log(home, ONE)
    log.write("user", [anthropic(b"<svg onload=alert(1)>" * 20), {"type": "text", "text": "a"}])
    log.write("user", [anthropic(WAVE, "image/svg+xml"), {"type": "text", "text": "b"}])
    log.prompt(f"[image: image/png, {len(encoded(WAVE)) * 3 // 4} bytes] [image: image/png, {'9' * 9_000} bytes]")
    result = {"type": "tool_result", "tool_use_id": "t", "content": [anthropic(WAVE)]}
    log.write("user", [result], toolUseResult={"file": {"base64": encoded(TIDE)}})
    index_here(home)
    assert shown("--images") == [WAVE]


def test_pages_of_a_server_show_images_and_agents_get_none(home: Path, compiled_rules: Path) -> None:
    claude(home)
    with opened(home.parent / "nobody", compiled_rules, logs=home) as site:
        page = site.page(f"/s/{ONE[:8]}") + site.page(f"/s/{ONE[:8]}/call/2")
        paths = dict.fromkeys(re.findall(r'<img class="shown" src="([^"]+)"', page))
        images = [site.client.get(path) for path in paths]
        assert [(image.headers["content-type"], image.content) for image in images] == [
            ("image/png", WAVE), ("image/png", TIDE), ("image/jpeg", JPEG),
        ]  # fmt: skip
        assert site.client.get(f"/s/{ONE[:8]}/image/0/2").status_code == 404
    told = subprocess.check_output([AGTRACE, "show", f"ax://session/{ONE[:8]}"], env=site.environment).decode()
    assert "image/jpeg" in told and encoded(JPEG)[:40] not in told
