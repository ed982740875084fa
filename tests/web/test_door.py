"""Who gets in: the browser that came by the link, from our own pages, by GET."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.agtrace.terminal import agtrace_here
from tests.depth import SECOND
from tests.web.opening import AGTRACE, Site, opened, started, until

PAGES = [
    "/", "/more", "/projects", "/costs", "/work", "/why?file=x",
    "/search?q=locked", "/found?q=locked", "/live", "/s/d41f7a52",
    "/s/d41f7a52/window/0", "/s/d41f7a52/outline", "/s/d41f7a52/call/3", "/s/d41f7a52/text/3", "/s/d41f7a52/health",
    "/s/d41f7a52/live", "/s/d41f7a52/image/3/0", "/static/x/script.js", "/nothing",
]  # fmt: skip


STRANGER = 'id -u; cat /proc/[0-9]*/cmdline | tr "\\0" " "; cat "$0"'
"""What another user of the machine can see: all command lines, and a file."""


def key_of(link: str) -> str:
    """The key of a link."""
    return parse_qs(urlsplit(link).query)["key"][0]


@pytest.mark.parametrize("path", PAGES)
def test_without_the_cookie_nothing_is_told(site: Site, path: str) -> None:
    with site.stranger() as stranger:
        answer = stranger.get(path)
    assert answer.status_code == 401
    assert "d41f7a52" not in answer.text and "locked" not in answer.text


def test_a_link_opens_once_for_a_browser_that_gets_a_cookie_which_only_our_pages_send(
    site: Site, tmp_path: Path
) -> None:
    with started(site, tmp_path) as (link, _), httpx2.Client() as visitor, httpx2.Client() as other:
        for method, headers in (
            ("HEAD", {}),
            ("GET", {"Sec-Purpose": "prefetch;prerender"}),
            ("GET", {"Purpose": "prefetch"}),
        ):
            ahead = visitor.request(method, link, headers=headers)
            assert ahead.status_code == 503 and "set-cookie" not in ahead.headers
        answer = visitor.get(link)
        cookie, key = answer.headers["set-cookie"], key_of(link)
        assert answer.status_code == 200 and key not in cookie
        assert "httponly" in cookie.lower() and "samesite=strict" in cookie.lower() and "path=/" in cookie.lower()
        assert key not in answer.text and 'content="0; url=/work"' in answer.text
        again = other.get(link)
        assert again.status_code == 401 and "set-cookie" not in again.headers
        assert visitor.get(link).status_code == 200


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becomes another user, which takes root")
def test_another_user_of_the_machine_learns_no_key_and_reads_no_file(site: Site, tmp_path: Path) -> None:
    with started(site, tmp_path) as (link, address):
        assert address.startswith("file://")
        file = Path(urlsplit(address).path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        key = re.findall(r"key=([\w-]+)", file.read_text())[0]
        seen = subprocess.run(
            ["/bin/sh", "-c", STRANGER, file], user=65534, group=65534, extra_groups=[],
            capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        assert seen.stdout.startswith("65534\n") and f"{AGTRACE} open" in seen.stdout
        assert not any(secret in seen.stdout + seen.stderr for secret in ("key=", key, key_of(link)))
        assert seen.returncode != 0 and "Permission denied" in seen.stderr
        for used in (link, link.replace(key_of(link), key)):
            assert httpx2.get(used).status_code == 200
            assert httpx2.get(used).status_code == 401
        assert not file.parent.exists()


def test_the_file_goes_with_the_server_or_when_the_next_one_starts(site: Site, tmp_path: Path) -> None:
    home = Path(site.environment["HOME"])
    ended = subprocess.Popen(["true"])
    ended.wait()
    stale, others, linked = (home / f"agtrace-open-{end}" for end in (f"{ended.pid}-a", "x-b", f"{ended.pid}-c"))
    stale.mkdir()
    others.mkdir()
    linked.symlink_to(others)
    (stale / "open.html").touch()
    (others / "open.html").touch()
    with started(site, tmp_path) as (_, address):
        assert "/agtrace-open-" in address and Path(urlsplit(address).path).exists()
        assert not stale.exists() and (others / "open.html").exists() and linked.is_symlink()
    assert not Path(urlsplit(address).path).parent.exists()


@pytest.mark.parametrize("key", ["", "wrong", "é", "a" * 10_000])
def test_another_key_opens_nothing(site: Site, key: str) -> None:
    with site.stranger() as stranger:
        answer = stranger.get("/enter", params={"key": key, "to": "/"})
        assert answer.status_code == 401 and "set-cookie" not in answer.headers
        assert stranger.get("/", headers={"Cookie": f"agtrace-{site.port}=wrong"}).status_code == 401


@pytest.mark.parametrize(
    "to",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "s/x", "/a\nb", "/[::"],
)
def test_the_link_leads_to_places_of_ours_only(site: Site, to: str) -> None:
    answer = site.client.get("/enter", params={"to": to})
    assert answer.status_code == 200
    assert "evil" not in answer.text and "javascript" not in answer.text
    assert "url=/" in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost.:{port}"]
)
def test_another_host_is_refused(site: Site, host: str) -> None:
    answer = site.client.get("/", headers={"Host": host.format(port=site.port)})
    assert answer.status_code in (400, 421) and "d41f7a52" not in answer.text


def test_the_names_of_this_machine_are_known(site: Site) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert site.client.get("/", headers={"Host": f"{name}:{site.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_another_origin_is_refused(site: Site, origin: str) -> None:
    assert site.client.get("/", headers={"Origin": origin}).status_code == 403
    assert site.client.get("/", headers={"Origin": site.base}).status_code == 200


def test_what_a_page_of_another_site_asks_for_is_refused_but_a_visit_by_a_link_is_not(site: Site) -> None:
    for mode, dest, status in (("no-cors", "image", 403), ("cors", "empty", 403), ("navigate", "iframe", 403),
                               ("navigate", "document", 200)):  # fmt: skip
        marks = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        assert site.client.get("/", headers=marks).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_get_is_answered(site: Site, method: str) -> None:
    assert site.client.request(method, "/").status_code == 405


@pytest.mark.parametrize("path", [*(page for page in PAGES if "live" not in page), "/enter?key=x"])
def test_every_answer_says_that_nothing_foreign_may_run_load_or_frame_it(site: Site, path: str) -> None:
    headers = site.client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert (
        policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    )
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store" and headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin" and "server" not in headers


def test_nobody_else_on_the_network_is_listened_to(site: Site) -> None:
    listening = subprocess.run(
        ["cat", f"/proc/{site.process.pid}/net/tcp"], capture_output=True, text=True, check=False
    )
    lines = [line.split()[1] for line in listening.stdout.splitlines()[1:] if line.split()[3] == "0A"]
    ours = [place for place in lines if place.endswith(f":{site.port:04X}")]
    if not lines:
        pytest.skip("no /proc here")
    assert ours == [f"0100007F:{site.port:04X}"]


@pytest.mark.thorough
def test_ctrl_c_ends_it_within_a_second_even_while_pages_listen(own_home: Path, compiled_rules: Path) -> None:
    with opened(own_home, compiled_rules) as site:
        begun = threading.Event()

        def listen() -> None:
            try:
                with site.client.stream("GET", "/live") as answer:
                    for _ in answer.iter_raw():
                        begun.set()
            except httpx2.HTTPError:
                pass

        until(lambda: site.client.get("/").status_code == 200)
        threading.Thread(target=listen, daemon=True).start()
        assert begun.wait(300)
        asked = time.monotonic()
        site.process.send_signal(signal.SIGINT)
        assert site.process.wait(300) == 130
        assert time.monotonic() - asked < SECOND


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("places", "leads"),
    [(["d41f7a52:812"], "to=%2Fs%2Fd41f7a52%3Fat%3D812%23e812"), (["last"], "to=%2Fs%2F"), ([], "to=%2F")],
)
def test_the_command_opens_the_browser_at_a_session_an_event_or_the_last_one(
    site: Site, tmp_path: Path, places: list[str], leads: str
) -> None:
    with started(site, tmp_path, *places) as (link, address):
        assert leads in link and leads in Path(urlsplit(address).path).read_text()


@pytest.mark.thorough
def test_where_no_browser_starts_the_printed_link_opens(site: Site) -> None:
    environment = {**site.environment, "BROWSER": "/nonexistent %s", "PATH": ""}
    with subprocess.Popen(
        [AGTRACE, "open"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            link = process.stdout.readline().strip()
            assert process.stderr.readline() == "agtrace: no browser could be started: open the link above\n"
            assert httpx2.get(link).status_code == 200
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "says"), [(["nobody"], "Session not found: nobody"), (["d41f7a52:999999"], "999999")]
)
def test_what_does_not_exist_is_an_error_before_anything_listens(site: Site, arguments: list[str], says: str) -> None:
    data = site.environment["AGTRACE_DATA_DIR"]
    ended = agtrace_here("open", "--no-browser", *arguments, AGTRACE_DATA_DIR=data)
    assert (ended.code, ended.out) == (2, "") and says in ended.err


def test_a_port_that_is_taken_is_an_error(site: Site) -> None:
    ended = subprocess.run(
        [AGTRACE, "open", "--no-browser", "--port", str(site.port)],
        env=site.environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"can't listen on 127.0.0.1, port {site.port}" in ended.stderr
