"""The health report as a page, in a browser: what it shows, what it never does, and its size."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agtrace_schema.analysis import (
    AgentHealth,
    ContextPoint,
    Evidence,
    Report,
    ReportedModel,
    ReportedTool,
    ScorePart,
    SessionEnding,
    Timeline,
    TimelineEntry,
)
from agtrace_schema.answers import Made
from msgspec.structs import replace

from agtrace.conversation.document import visible
from agtrace.report.page.overview import charts
from agtrace.report.page.page import html, pack, thinned
from agtrace.report.report import without_dollars
from agtrace.report.wording import ENDINGS
from tests.agtrace.health_reports import around, insight, report, session

HOSTILE = (
    '</script><script>window.__pwned=1</script><img src=x onerror="window.__pwned=2"><!-- \'"}],{\\ {{7*7}} '
    "\x1b[31mred\x07\x9b2J \u202egnp.exe\u2066 \u2028 &lt;b&gt; javascript:alert(1)"
)
SHOWN = (
    '</script><script>window.__pwned=1</script><img src=x onerror="window.__pwned=2"><!-- \'"}],{\\ {{7*7}} '
    "␛[31mred␇⟨U+009B⟩2J ⟨U+202E⟩gnp.exe⟨U+2066⟩ ⟨U+2028⟩ &lt;b&gt; javascript:alert(1)"
)
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8").strip().rstrip(";")
MARKS = [
    *(f"--ending-{name}" for name in ENDINGS), *(f"--series-{n}" for n in range(1, 6)), "--score-good", "--score-fair",
    "--score-low", "--accent", "--quiet-bar", "--bad", "--info", "--line-strong",
]  # fmt: skip


# -- what stands in the file -----------------------------------------------------------------------


def _unpacked(page: str) -> list[Any]:
    """What is compressed in a page: its rows, then its groups of details."""
    packed = re.findall(r'<script type="text/plain" id="[\w-]+">([^<]*)</script>', page)
    return [json.loads(zlib.decompress(base64.b64decode(text))) for text in packed if text]


@pytest.fixture(scope="module")
def two_thousand() -> str:
    return html(report(2000, entries=20))


@pytest.mark.thorough
def test_a_page_of_two_thousand_sessions_has_all_of_them_in_less_than_five_megabytes(two_thousand: str) -> None:
    assert len(two_thousand.encode()) < 5_000_000
    rows, *groups = _unpacked(two_thousand)
    assert len(rows) == 2000 == len({row[0] for row in rows})
    assert sum(map(len, groups)) == 2000


@pytest.mark.thorough
def test_where_details_weigh_too_much_timelines_thin_out_then_the_healthiest_lose_them_and_it_is_said() -> None:
    sessions = report(48, entries=120).sessions
    whole = pack(sessions, 10_000_000)
    weight = sum(map(len, whole.groups))
    assert (whole.thinned, whole.without_timeline, whole.without_details) == (0, 0, 0)
    thin = pack(sessions, int(weight * 0.85))
    assert thin.thinned and not thin.without_timeline
    bare = pack(sessions, int(weight * 0.3))
    assert bare.without_timeline and not bare.without_details
    empty = pack(sessions, int(weight * 0.1))
    assert empty.without_details and empty.groups[0] and not empty.groups[-1]
    for packed, share in ((thin, 0.85), (bare, 0.3), (empty, 0.1)):
        assert sum(map(len, packed.groups)) <= weight * share


def test_a_thinned_timeline_keeps_turns_marks_and_failures_and_the_order() -> None:
    entries = [
        TimelineEntry(kind="tool", start=n, end=n + (5 if n == 7 else 1), event_index=n, failed=n % 40 == 13)
        for n in range(100)
    ]
    entries += [TimelineEntry(kind="turn", start=100, end=101, event_index=100)]
    kept = [entry.event_index for entry in thinned(entries, 5)]
    assert kept == [7, 13, 53, 93, 100]


def test_what_cannot_be_seen_is_shown_as_text_and_words_stay_as_they_are() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("a\r\nb\tc — ünï 日本 می‌خواهم 👩‍👩‍👧") == "a\nb\tc — ünï 日本 می‌خواهم 👩‍👩‍👧"


@pytest.mark.parametrize(("days", "step", "most"), [(30, "day", 31), (200, "week", 30), (900, "month", 31)])
def test_the_chart_of_sessions_is_by_day_week_or_month_and_counts_every_dated_session(
    days: int, step: str, most: int
) -> None:
    made = report(60, entries=5, days=days)
    chart = next(chart for chart in charts(made) if chart.name == "sessions")
    assert chart.columns[0] == step.capitalize() and len(chart.rows) <= most
    assert sum(sum(numbers) for _, numbers in chart.rows) == 60 - made.undated


def test_an_unknown_cost_is_no_cost_of_nothing() -> None:
    used = [
        ReportedModel(day="2026-11-18", model="a", total_tokens=30, cost_usd=1.5),
        ReportedModel(day="2026-11-18", model="b", total_tokens=10),
        ReportedModel(day="2026-11-19", model="b", total_tokens=10),
    ]
    made = replace(around([session()]), models=used)
    chart = next(chart for chart in charts(made) if chart.name == "dollars")
    assert chart.rows == [("2026-11-18", [1.5, None]), ("2026-11-19", [0, None])]
    assert chart.says == "a $1.50, b unknown"
    table = re.search(r"<caption>Cost .*?</table>", html(made), re.DOTALL)
    assert table and table[0].count("$0.00") == 1 and table[0].count(">unknown<") == 2


@pytest.mark.parametrize(
    ("tokens_made", "why"),
    [("partial", "token figures of some responses are missing"), ("exact", "some responses have no known price")],
)
def test_what_is_at_least_so_much_is_marked_and_says_why(tokens_made: Made, why: str) -> None:
    least = session(score=40, total_tokens=40_600_000, tokens_made=tokens_made, cost_usd=5.3, cost_made="partial")
    made = around([least])
    figures = replace(made.figures, tokens_made=tokens_made, cost_usd=5.3, cost_made="partial")
    page = html(replace(made, figures=figures))
    assert re.search(rf"<dd>≥\u202f\$5\.30</dd>\s*<dd class=\"about\">at least; {why}", page)
    assert re.search(r'class="cell-cost">≥\u202f\$5\.30<', page)
    assert bool(re.search(r"<dt>Tokens</dt>\s*<dd>≥", page)) is (tokens_made == "partial")


@pytest.mark.thorough
def test_the_list_and_the_head_of_a_session_mark_what_is_at_least_so_much(opened: Opener) -> None:
    least = session(total_tokens=40_600_000, tokens_made="partial", cost_usd=5.3, cost_made="partial")
    page = opened(html(around([least])))
    assert page.inner_text("#rows-shown .cell-cost") == "≥\u202f$5.30"
    page = opened(html(around([least])), place=f"#s={least.session_id}")
    assert "Tokens ≥\u202f40.6M" in page.inner_text("#session") and "Cost ≥\u202f$5.30" in page.inner_text("#session")


def test_the_page_says_why_sessions_have_no_score() -> None:
    reasons = ["no tool was called", "no tool was called", "it still grows"]
    made = around([session(), *(session(score=None, unscored=why) for why in reasons)])
    chart = next(chart for chart in charts(made) if chart.name == "scores")
    assert chart.note == "3 sessions without a score: 2 × no tool was called; 1 × it still grows"
    alone = next(chart for chart in charts(around([session(score=None, unscored="x")])) if chart.name == "scores")
    assert alone.note == "1 session without a score: x"


def test_a_model_has_the_same_colour_in_both_charts_and_the_rest_is_one_series() -> None:
    used = [ReportedModel(day="2026-11-19", model=f"m{n}", total_tokens=100 - n, cost_usd=float(n)) for n in range(8)]
    made = {chart.name: chart for chart in charts(replace(around([session()]), models=used))}
    assert made["tokens"].columns == made["dollars"].columns == ["Day", "m0", "m1", "m2", "m3", "m4", "3 other models"]
    assert made["dollars"].rows == [("2026-11-19", [0, 1, 2, 3, 4, 18])]


# -- in a browser ----------------------------------------------------------------------------------


Opener = Callable[..., Any]


def worked(page: Any) -> float:
    """The seconds of processor time that the process of a page has taken so far."""
    asking = page.context.new_cdp_session(page)
    asking.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in asking.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ProcessTime"])


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    """Opens a page in a window of its own; at the end none has fetched, reported or refused anything."""
    troubles: list[str] = []
    contexts = []

    def open_page(written: str, *, place: str = "", script: bool = True, **options: Any) -> Any:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(written, encoding="utf-8")
        context = browser.new_context(java_script_enabled=script, **options)
        contexts.append(context)
        context.set_default_timeout(300_000)
        page = context.new_page()
        page.on(
            "request",
            lambda asked: asked.url.startswith((path.as_uri(), "data:image/svg")) or troubles.append(asked.url),
        )
        page.on("console", lambda said: troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.goto(path.as_uri() + place)
        if script:
            page.wait_for_selector("#rows-shown tr, #session-title", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def seventy() -> tuple[Report, str]:
    made = report(70, entries=25)
    return made, html(made)


@pytest.mark.thorough
def test_two_thousand_sessions_are_there_in_less_than_two_seconds(two_thousand: str, opened: Opener) -> None:
    """Of the processor's time, whatever else the machine does."""
    page = opened(two_thousand)
    page.locator("#rows-shown tr").first.wait_for(state="visible")
    assert 0 < worked(page) < 2
    assert page.inner_text("#found") == "2,000 sessions"
    page.fill("#search", "no session says this")
    assert page.inner_text("#found") == "0 of 2,000 sessions: nothing matches; press Clear to show all"


@pytest.mark.thorough
def test_sessions_are_found_by_words_and_every_filter(seventy: tuple[Report, str], opened: Opener) -> None:
    made, written = seventy
    page = opened(written)

    def shown() -> int:
        return int(re.findall(r"^[\d,]+", page.inner_text("#found"))[0])

    def counted(wanted: Callable[[Any], object]) -> int:
        return sum(bool(wanted(item)) for item in made.sessions)

    filters: list[tuple[str, str, Callable[[Any], object]]] = [
        ("#search", "FLAKY queue", lambda item: "flaky" in item.title),
        ("#by-provider", "codex", lambda item: item.provider == "codex"),
        ("#by-ending", "finished", lambda item: item.ending.ending == "finished"),
        ("#by-project", "/home/ada/infra", lambda item: item.project == "/home/ada/infra"),
        ("#by-finding", "detector:redone", lambda item: "redone" in {one.detector for one in item.insights}),
        ("#by-finding", "severity:0", lambda item: "Critical" in {one.severity for one in item.insights}),
        ("#since", "2026-11-10", lambda item: (item.start_time or "") >= "2026-11-10"),
        ("#lasted", "60", lambda item: (item.duration_seconds or 0) >= 3600),
        ("#cost", "5", lambda item: (item.cost_usd or 0) >= 5),
        ("#below", "60", low := lambda item: item.score is not None and item.score < 60),
    ]
    assert shown() == page.locator("#rows-shown tr").count() + 20 == 70
    for place, value, wanted in filters:
        choose = page.select_option if place.startswith("#by-") else page.fill
        choose(place, value)
        assert 70 > shown() == counted(wanted) > 0, place
        if place != "#below":
            choose(place, "")
            page.wait_for_selector("text=/^70 sessions$/")
    page.select_option("#by-provider", "codex")
    assert shown() == counted(lambda item: low(item) and item.provider == "codex") > 0
    page.click("#filters button")
    page.wait_for_selector("text=/^70 sessions$/")
    for order, first in (("cost", lambda item: item.cost_usd or 0), ("newest", lambda item: item.start_time or "")):
        page.select_option("#order", order)
        assert page.locator("#rows-shown a").first.inner_text() == max(made.sessions, key=first).title


@pytest.mark.thorough
@pytest.mark.parametrize(("chart", "filter"), [("projects", "#by-project"), ("detectors", "#by-finding")])
def test_a_click_on_a_bar_lists_its_sessions(
    seventy: tuple[Report, str], opened: Opener, chart: str, filter: str
) -> None:
    page = opened(seventy[1])
    page.wait_for_selector("#chart-scores[style*=width]")  # the last one that is drawn
    x, y = page.evaluate(
        f"""(() => {{
            const drawn = Chart.getChart("chart-{chart}");
            const shown = (bar, n) => bar.width > 2 && drawn.data.labels[n] !== "no project";
            const {{ x, y, base }} = drawn.getDatasetMeta(0).data.find(shown);
            return [(x + base) / 2, y];
        }})()"""
    )
    page.locator(f"#chart-{chart}").click(position={"x": x, "y": y})
    page.wait_for_url("**#sessions")
    assert page.input_value(filter) != ""
    assert 0 < int(page.inner_text("#found").partition(" of ")[0]) < 70


@pytest.mark.thorough
def test_a_report_without_dollars_has_none(opened: Opener) -> None:
    page = opened(html(without_dollars(report(70, entries=25))))
    assert "$" not in page.inner_text("#report") and "Cost" not in page.inner_text("#report")
    assert page.locator("#order option[value=cost]").count() == 0
    page.locator("#rows-shown a").first.click()
    page.wait_for_selector("#session-title")
    assert "Cost" not in page.inner_text("#session .facts")


@pytest.mark.thorough
def test_a_session_is_opened_read_and_left_by_keyboard(seventy: tuple[Report, str], opened: Opener) -> None:
    made, written = seventy
    chosen = made.sessions[1]
    page = opened(written)
    press = page.keyboard.press
    press("/")
    press("ArrowDown")
    press("j")
    assert page.evaluate("document.activeElement.textContent") == chosen.title
    press("Enter")
    page.wait_for_selector("#session-title")
    assert page.inner_text("#session-title") == chosen.title
    assert page.url.endswith(f"#s={chosen.session_id}")
    for part in chosen.parts:
        assert part.why in page.inner_text(".parts")

    found = next(item for item in chosen.insights if item.evidence)
    message = page.locator(".finding", has_text=found.message).first
    assert not message.locator("pre").first.is_visible()
    message.locator("summary").focus()
    press("Enter")
    assert message.locator("pre").first.inner_text() == found.evidence[0].quote
    assert found.evidence[0].ref in message.inner_text()
    assert f"agtrace show {chosen.session_id}:{found.evidence[0].event_index}" in message.inner_text()

    page.focus(".timeline svg")
    press("ArrowRight")
    assert "agtrace show" in page.inner_text(".told") and page.locator(".timeline .chosen").count() == 1
    press("j")
    page.locator("#session-title", has_text=made.sessions[2].title).wait_for()
    press("Escape")
    page.wait_for_selector("#session", state="hidden")
    assert page.evaluate("document.activeElement.textContent") == chosen.title
    press("?")
    assert page.is_visible("#keys")
    press("Escape")
    assert not page.is_visible("#keys")


@pytest.mark.thorough
def test_findings_that_are_not_shown_are_counted_and_a_command_shows_them(opened: Opener) -> None:
    odd = session(
        session_id="a;reboot", insights=[insight(severity="Warning")], total_insights=63,
        detectors={"refused_again": 61, "redone": 2}, severities={"Warning": 60, "Info": 3},
    )  # fmt: skip
    page = opened(html(around([odd])))
    assert page.inner_text("#rows-shown .marks").split() == ["60", "warnings", "3", "info"]
    page.select_option("#by-finding", "detector:redone")
    assert page.inner_text("#found") == "1 session"
    page.click("#rows-shown a")
    page.wait_for_selector("#session-title")
    said = page.inner_text(".findings")
    assert "1 of 63 findings are shown" in said and "Warning (1 of 60)" in said
    assert "agtrace show 'ax://analysis/a;reboot'" in said


@pytest.mark.thorough
def test_a_session_has_an_address_and_back_leads_to_the_list(seventy: tuple[Report, str], opened: Opener) -> None:
    made, written = seventy
    page = opened(written, place=f"#s={made.sessions[3].session_id}")
    assert page.inner_text("#session-title") == made.sessions[3].title
    page.click(".to-list")
    page.click("#rows-shown a >> nth=4")
    page.locator("#session-title", has_text=made.sessions[4].title).wait_for()
    page.go_back()
    page.wait_for_selector("#session", state="hidden")
    assert page.evaluate("scrollY") > 500
    page.click("#rows-shown a >> nth=4")
    page.wait_for_selector("#session-title")
    page.click("nav >> text=Overview")
    page.wait_for_selector("#session", state="hidden")
    assert page.evaluate("scrollY") < 500


@pytest.mark.thorough
def test_a_report_that_means_harm_is_shown_as_text_and_runs_nothing(opened: Opener) -> None:
    written = html(_said_everywhere(HOSTILE))
    assert UNSEEN.search(written) is None and UNSEEN.search(json.dumps(_unpacked(written), ensure_ascii=False)) is None
    page = opened(written, viewport={"width": 390, "height": 800})
    assert SHOWN in page.locator("#worst th bdi").first.text_content()
    assert SHOWN in page.locator("#rows-shown th bdi").first.text_content()
    assert SHOWN in page.locator("#rows-shown .cell-worst bdi").first.text_content()
    assert SHOWN in page.locator(".chart-tools tbody th").text_content()
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    page.click("#rows-shown a")
    page.wait_for_selector("#session-title")
    for summary in page.locator("#session summary").all():
        summary.click()
    page.wait_for_selector(".timeline + .told")
    page.focus(".timeline svg")
    page.keyboard.press("ArrowRight")
    for place in (
        "#session-title",
        ".facts",
        ".parts .why",
        ".reason",
        ".told",
        ".finding .says",
        ".finding pre",
        "#session .behind",
    ):
        assert SHOWN in page.locator(place).first.text_content(), place
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    assert page.evaluate("window.__pwned") is None
    assert page.locator("img").count() == 0 and page.locator("main script").count() == 0


@pytest.mark.thorough
def test_what_got_into_the_page_would_not_run_and_nothing_could_be_fetched(browser: Any, tmp_path: Path) -> None:
    """The policy holds by itself: here something did get in."""
    inside = "<script>window.__pwned=1</script><img src=x onerror='window.__pwned=2'><p style='color:red'>x</p>"
    path = tmp_path / "report.html"
    path.write_text(html(around([session()])).replace("</main>", f"{inside}</main>"), encoding="utf-8")
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text))
    page.goto(path.as_uri())
    page.wait_for_selector("#rows-shown tr")
    assert page.evaluate("window.__pwned") is None
    fetched = "fetch('https://example.com/').then(() => 'sent', () => 'refused')"
    assert page.evaluate(fetched) == "refused"
    for what in ("script", "image", "style", "connect"):
        assert any(what in text for text in refused), (what, refused)
    page.close()


@pytest.mark.thorough
def test_every_text_and_every_mark_stands_out_from_its_ground_in_both_themes(
    seventy: tuple[Report, str], opened: Opener
) -> None:
    """WCAG 2.2, 1.4.3 and 1.4.11: 4.5 to 1 for texts, 3 to 1 for marks."""
    page = opened(seventy[1], reduced_motion="reduce")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert page.evaluate(f"{CONTRAST}.paleTexts()") == []
        assert page.evaluate(f"{CONTRAST}.paleMarks({MARKS})") == []
    page.click("#rows-shown a")
    page.wait_for_selector("#session-title")
    for summary in page.locator("#session summary").all():
        summary.click()
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        assert page.evaluate(f"{CONTRAST}.paleTexts()") == []


@pytest.mark.thorough
def test_a_key_turns_the_page_and_its_charts_from_light_to_dark(seventy: tuple[Report, str], opened: Opener) -> None:
    page = opened(seventy[1], color_scheme="light")
    look = "[getComputedStyle(document.body).backgroundColor, document.getElementById('chart-sessions').toDataURL()]"
    page.wait_for_selector("#chart-dollars[style]")
    light = page.evaluate(look)
    page.keyboard.press("t")
    dark = page.evaluate(look)
    assert light[0] != dark[0] and light[1] != dark[1]
    assert page.inner_text("#theme") == "Light"


@pytest.mark.thorough
def test_nothing_scrolls_sideways_on_a_tablet_or_a_phone(seventy: tuple[Report, str], opened: Opener) -> None:
    page = opened(seventy[1], viewport={"width": 1400, "height": 800})
    for place in ("report", "session"):
        for width in (820, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.scrollingElement.scrollWidth") <= width, place
        if place == "report":
            page.click("#rows-shown a")
            page.wait_for_selector("#session-title")


@pytest.mark.thorough
def test_figures_tables_and_the_worst_sessions_are_there_without_a_script(
    seventy: tuple[Report, str], opened: Opener
) -> None:
    page = opened(seventy[1], script=False)
    assert page.inner_text("#worst tbody tr th a >> nth=0") == seventy[0].sessions[0].title
    assert "70" in page.inner_text(".figures")
    page.click(".chart-tools summary")
    assert "Bash" in page.inner_text(".chart-tools table")
    assert not page.is_visible("#filters") and page.is_visible("text=Without JavaScript")


@pytest.mark.thorough
def test_what_is_unknown_is_said_to_be_unknown(opened: Opener) -> None:
    bare = session(
        score=None, unscored="nobody asked for anything", parts=[], insights=[], timeline=None,
        project=None, model=None, start_time=None, duration_seconds=None, total_tokens=None,
        ending=SessionEnding(ending="unknown", reason="the log has no response"),
    )  # fmt: skip
    page = opened(html(around([bare])), place=f"#s={bare.session_id}")
    text = page.inner_text("#session")
    for words in (
        "Project unknown",
        "Model unknown",
        "time unknown",
        "Lasted unknown",
        "Tokens unknown",
        "Cost unknown",
    ):
        assert words in text
    assert "Nobody asked for anything" in text and "Where the time went is unknown" in text
    assert "There is no timeline" in text and "Nothing found" in text


def _said_everywhere(text: str) -> Report:
    """A report in which every text that comes from a log is this one."""
    entry = TimelineEntry(kind="turn", start=0, end=9, event_index=0, name=text)
    made = around(
        [
            session(
                title=text,
                project=text,
                model=text,
                parts=[ScorePart(part="outcome", lost=3, of=30, why=text)],
                ending=SessionEnding(ending="error_left", reason=text, event_index=2),
                insights=[
                    insight(message=text, evidence=[Evidence(event_index=1, ref=f"ax://event/{text}/1", quote=text)])
                ],
                agents=[AgentHealth(session_id=text, score=3, findings=1, tool_calls=2, failed_calls=1)],
                timeline=Timeline(
                    entries=[entry, replace(entry, kind="tool", failed=True)],
                    context=[ContextPoint(at=1, tokens=5)],
                ),
            )
        ]
    )
    tool = ReportedTool(tool=text, calls=2, failed=1, sessions=1)
    return replace(made, selection=text, tools=[tool], compared=text, behind=text)
