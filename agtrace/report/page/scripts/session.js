// One session: its score and the reasons, its ending, where its time went, its timeline, its findings with evidence.

const PART_WORDS = {
  corrections: "Corrections", outcome: "Outcome", checks: "Checks", failures: "Failures",
};
const LENS_WORDS = { TokenUsage: "tokens and context" };
const TIME_WORDS = { tools: "tools", model: "model", human: "human", unknown: "unknown" };

const card = (title, ...content) => el("section", { class: "card", "aria-label": title }, el("h2", {}, title), content);

function fact(name, value) {
  return value === null || value === undefined ? null : el("span", {}, `${name} `, el("b", {}, value));
}

function ring(score) {
  const around = 2 * Math.PI * 52;
  return svg(
    "svg",
    {
      class: `ring ${grade(score)}`,
      viewBox: "0 0 120 120",
      role: "img",
      "aria-label": score === null ? "no score" : `score ${score} of 100`,
    },
    svg("circle", { class: "ring-ground", cx: 60, cy: 60, r: 52 }),
    svg("circle", {
      class: "ring-value",
      cx: 60,
      cy: 60,
      r: 52,
      "stroke-dasharray": `${(around * (score ?? 0)) / 100} ${around}`,
      transform: "rotate(-90 60 60)",
    }),
    svg("text", { x: 60, y: 62, "text-anchor": "middle", "dominant-baseline": "middle" }, score ?? "–"),
  );
}

function headOf(row, details) {
  const shows = showCommand(row.id);
  const opens = command("open", row.id);
  const cost = row.cost === null ? "unknown" : atLeast(dollars(row.cost), row.cost_made) + (row.cost_made === "estimated" ? " (estimated)" : "");
  return el(
    "header",
    { class: "head" },
    el(
      "div",
      {},
      el("h1", { id: "session-title" }, foreign(row.title || "Untitled")),
      el(
        "p",
        { class: "facts" },
        fact("Agent", providerName(row.provider)),
        details && details.kind !== "main" ? fact("Kind", foreign(details.kind)) : null,
        fact("Project", row.project === null ? "unknown" : foreign(row.project)),
        fact("Model", row.model === null ? "unknown" : foreign(row.model)),
        fact("Began", minute(row.start)),
        fact("Lasted", row.duration === null ? "unknown" : duration(row.duration)),
        details?.active_seconds === undefined ? null : fact("Active", duration(details.active_seconds)),
        fact("Turns", plain(row.turns)),
        fact("Failed", `${plain(row.failed)} of ${counted(row.calls, "tool call")}`),
        fact("Tokens", row.tokens === null ? "unknown" : atLeast(short(row.tokens), row.tokens_made)),
        facts.dollars ? fact("Cost", cost) : null,
      ),
      el("p", { class: "id" }, el("code", {}, opens), copyButton(opens, "the command that opens this session in the browser")),
      el("p", { class: "id" }, el("code", {}, shows), copyButton(shows, "the command that shows this session")),
    ),
    ring(row.score),
  );
}

function placeAmong(percentile) {
  if (percentile === undefined) return "";
  return percentile === 0 ? ", the lowest score of these sessions" : `, more than ${percentile} % of these sessions`;
}

function partsCard(row, details) {
  if (row.score === null)
    return card("No score", el("p", { class: "reason" }, foreign(capital(details.unscored ?? "too little is known"))));
  const items = details.parts.map((part) => {
    const lost = svg("rect", { class: "lost", width: (100 * part.lost) / (part.of || 1), height: 9 });
    return el(
      "li",
      {},
      el("span", {}, PART_WORDS[part.part] ?? part.part),
      svg(
        "svg",
        { viewBox: "0 0 100 9", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "whole", width: 100, height: 9 }),
        lost,
      ),
      el(
        "span",
        { class: `points${part.lost ? "" : " none"}` },
        part.lost ? `−${part.lost} of ${part.of}` : `0 of ${part.of}`,
      ),
      el("span", { class: "why" }, foreign(part.why)),
    );
  });
  return card(`Why ${row.score} of 100${placeAmong(details.percentile)}`, el("ul", { class: "parts" }, items));
}

function timeSplit(time) {
  const known = Object.keys(TIME_WORDS)
    .map((name) => [name, time?.[`${name}_seconds`]])
    .filter(([, seconds]) => seconds);
  const whole = known.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (!whole) return el("p", { class: "reason" }, "Where the time went is unknown: the log has no times.");
  let begun = 0;
  const pieces = known.map(([name, seconds]) => {
    const piece = svg("rect", {
      class: `time-${name}`,
      x: (1000 * begun) / whole,
      width: (1000 * seconds) / whole,
      height: 14,
    });
    begun += seconds;
    return piece;
  });
  const legend = known.map(([name, seconds]) =>
    el(
      "li",
      {},
      svg(
        "svg",
        { class: "dot", viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" },
        svg("rect", { class: `time-${name}`, width: 10, height: 10, rx: 3 }),
      ),
      `${TIME_WORDS[name]} `,
      el("b", {}, duration(seconds)),
      ` ${percent(seconds / whole)}`,
    ),
  );
  return [
    svg("svg", { class: "split", viewBox: "0 0 1000 14", preserveAspectRatio: "none", "aria-hidden": "true" }, pieces),
    el("ul", { class: "legend" }, legend),
  ];
}

function endingCard(row, details) {
  const { ending, reason, event_index: event } = details.ending;
  return card(
    "How it ended",
    el("p", { class: "ended" }, ended(ending)),
    el("p", { class: "reason" }, foreign(capital(reason))),
    event === undefined
      ? null
      : el("p", { class: "reference" }, eventReference(row.id, event, "the command that shows the last event")),
    el("hr"),
    el("h2", {}, "Where its time went"),
    timeSplit(details.time),
  );
}

function agentsCard(agents) {
  const rows = agents.map((agent) => [
    el("code", {}, foreign(agent.session_id)),
    agent.score === undefined ? el("span", { class: "unknown" }, "not scored") : scored(agent.score),
    agent.findings,
    `${agent.failed_calls} of ${counted(agent.tool_calls, "call")}`,
  ]);
  const made = card(
    `Sub-agents (${agents.length})`,
    table("What they did counts towards the score above.", ["Sub-agent", "Score", "Findings", "Failed"], rows),
  );
  made.classList.add("wide");
  return made;
}

function contextCard(timeline) {
  const canvas = el("canvas", { role: "img" });
  const fullest = timeline.context.reduce((most, point) => Math.max(most, point.tokens), 0);
  const share = timeline.window
    ? `, ${percent(fullest / timeline.window)} of a window of ${short(timeline.window)}`
    : "; the size of the window is unknown";
  canvas.setAttribute("aria-label", `The context window over time: at most ${short(fullest)} tokens${share}`);
  const made = card(
    "Context window",
    el("p", { class: "hint" }, `At most ${short(fullest)} tokens${share}`),
    el("div", { class: "canvas" }, canvas),
    tableBehind("Context after each response", ["After", "Tokens"], () =>
      timeline.context.map((point) => [duration(point.at), plain(point.tokens)]),
    ),
  );
  made.classList.add("wide");
  const scale = scaleOf(timeline.entries, 0, 1000);
  return [made, () => drawn(canvas, () => contextConfiguration(timeline.context, timeline.window, scale))];
}

const SHAPES = { Critical: "M8 0l8 8l-8 8l-8 -8z", Warning: "M8 1l8 14h-16z", Info: "M8 1a7 7 0 1 0 .01 0z" };

function severityHeading(severity, shown, all) {
  const shape = svg(
    "svg",
    { class: severity, viewBox: "0 0 16 16", width: 15, height: 15, "aria-hidden": "true" },
    svg("path", { d: SHAPES[severity] }),
  );
  return el("h3", { class: "severity" }, shape, `${severity} (${shown === all ? all : `${shown} of ${plain(all)}`})`);
}

function evidenceItem(row, [event, quote, reference]) {
  const ref = reference ?? `ax://event/${row.id}/${event}`;
  const id = /^ax:\/\/event\/(.+)\/\d+$/.exec(ref)?.[1] ?? row.id;
  return el("li", {}, el("pre", {}, foreign(quote)), evidenceReferences(ref, id, event));
}

function findingElement(row, found) {
  const where = [
    LENS_WORDS[found.lens] ?? found.lens.toLowerCase(),
    detectorWords(found.detector),
    found.turn_index === undefined ? null : `turn ${found.turn_index}`,
  ];
  const about = el("p", { class: "about" }, where.filter(Boolean).join(" · "));
  if (found.session_id) about.append(" · in sub-agent ", foreign(found.session_id));
  const seen = found.evidence.length;
  const summary = `Evidence: ${counted(seen, "event")}${found.count > seen ? ` of ${plain(found.count)}` : ""}`;
  const evidence = seen
    ? el(
        "details",
        {},
        el("summary", {}, summary),
        el(
          "ol",
          {},
          found.evidence.map((one) => evidenceItem(row, one)),
        ),
      )
    : null;
  return el(
    "div",
    { class: `finding ${found.severity}` },
    el("p", { class: "says" }, foreign(found.message)),
    about,
    evidence,
  );
}

function findingsOf(row, details) {
  const groups = facts.severities
    .map((severity, n) => [severity, details.insights.filter((found) => found.severity === severity), n])
    .filter(([, those]) => those.length);
  const shown = details.insights.length;
  const every = command("show", `ax://analysis/${row.id}`);
  const left =
    shown < details.total_insights
      ? el(
          "p",
          { class: "reference" },
          `${shown} of ${plain(details.total_insights)} findings are shown; this command shows all:`,
          el("code", {}, every),
          copyButton(every, "the command that shows all findings"),
        )
      : null;
  return el(
    "section",
    { class: "findings", "aria-labelledby": "findings-title" },
    el("h2", { id: "findings-title" }, groups.length ? "Findings" : "Nothing found"),
    left,
    groups
      .map(([severity, those, n]) => [
        severityHeading(severity, those.length, row.severities[n]),
        ...those.map((found) => findingElement(row, found)),
      ])
      .flat(),
    groups.length ? null : el("p", { class: "reason" }, "No detector found anything in this session."),
  );
}

// The session's conversation, if the page has it: folded, as it may be long.
function conversationOf(row) {
  const found = [...document.querySelectorAll("template.talk")].find(({ dataset }) => dataset.session === row.id);
  if (!found) return [];
  const whole = el("details", { class: "card wide whole-conversation" }, el("summary", {}, el("h2", {}, "Conversation")));
  const fill = () => whole.append(el("div", { class: "conversation" }, found.content.cloneNode(true)));
  whole.addEventListener("toggle", fill, { once: true });
  return [whole];
}

function wayBack(row) {
  const neighbour = (step, text) => {
    const place = list.found.indexOf(row) + step;
    const other = list.found.includes(row) ? list.found[place] : undefined;
    if (!other) return null;
    const link = el("a", { href: `#s=${encodeURIComponent(other.id)}`, class: step > 0 ? "next" : "previous" }, text);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      location.replace(link.href); // Back leads to the list, however many sessions were visited
    });
    return link;
  };
  return el(
    "div",
    { class: "back" },
    el("a", { href: "#sessions", class: "to-list" }, "← All sessions"),
    el("nav", { "aria-label": "Neighbouring sessions" }, neighbour(-1, "Previous"), neighbour(1, "Next")),
  );
}

// The cards of a session, and the function that draws their chart once it is visible.
function healthCards(row, details) {
  const cards = el("div", { class: "cards" }, partsCard(row, details), endingCard(row, details));
  let chart = () => () => {};
  if (details.timeline?.kinds.length) {
    const timeline = unfolded(details.timeline, details.names);
    cards.append(timelineCard(timeline, row.id));
    if (timeline.context.length) {
      const [made, start] = contextCard(timeline);
      cards.append(made);
      chart = start;
    }
  } else {
    const why = details.dropped
      ? "The timeline was left out to keep this file small."
      : "There is no timeline: the log has no times.";
    cards.append(el("p", { class: "empty card wide" }, why));
  }
  if (details.agents?.length) cards.append(agentsCard(details.agents));
  return [cards, chart];
}

// Fills the article of a session; returns the function that draws its chart once it is visible.
function fillSession(article, row, details) {
  article.replaceChildren(wayBack(row), headOf(row, details));
  if (!details) {
    article.append(
      el(
        "p",
        { class: "empty" },
        "To keep this file small, the details of this session were left out: ",
        el("code", {}, command("analyze", row.id)),
        " shows them.",
      ),
    );
    return () => () => {};
  }
  const [cards, chart] = healthCards(row, details);
  article.append(cards, findingsOf(row, details), ...conversationOf(row));
  return chart;
}
