// The timeline of a session: lanes of turns, model responses, tool calls and sub-agents, to scale, with marks above.

const LANES = [
  { name: "Marks", kinds: ["compaction", "api_error"], height: 22, rows: 1 },
  { name: "Turns", kinds: ["turn"], height: 24, rows: 1 },
  { name: "Model", kinds: ["step"], height: 14, rows: 1 },
  { name: "Tools", kinds: ["tool"], height: 14, rows: 3 },
  { name: "Agents", kinds: ["agent"], height: 14, rows: 4 },
];
const KIND_WORDS = {
  turn: "Turn",
  step: "Response",
  tool: "Tool call",
  agent: "Sub-agent",
  compaction: "Compaction",
  api_error: "API error",
};
const GUTTER = 58;
const BETWEEN = 10;

// The row of each entry in its lane: entries at the same time go below each other, while there are rows.
function stacked(entries, most) {
  const free = [];
  for (const entry of entries) {
    let row = free.findIndex((end) => end <= entry.start);
    if (row < 0) row = free.length < most ? free.length : free.indexOf(Math.min(...free));
    free[row] = Math.max(entry.end, free[row] ?? 0);
    entry.row = row;
  }
  return Math.max(free.length, 1);
}

function lanesOf(entries) {
  let y = 4;
  return LANES.map((lane) => ({ ...lane, entries: entries.filter((entry) => lane.kinds.includes(entry.kind)) }))
    .filter((lane) => lane.entries.length)
    .map((lane) => {
      const rows = stacked(lane.entries, lane.rows);
      const placed = { ...lane, y, whole: rows * (lane.height + 2) };
      y += placed.whole + BETWEEN;
      return placed;
    });
}

function told(entry) {
  const length = entry.end > entry.start ? `, for ${duration(entry.end - entry.start)}` : "";
  const name = entry.name === null ? "" : ` ${entry.name}`;
  const number = entry.kind === "turn" ? ` ${entry.turn}:` : "";
  return [
    `${KIND_WORDS[entry.kind]}${number}`,
    name,
    entry.failed ? ", failed" : "",
    `, after ${duration(entry.start)}${length}`,
  ];
}

// A mark as wide as its duration, and at least wide enough to be seen.
function bar(entry, lane, scale) {
  const x = scale.x(entry.start);
  const y = lane.y + entry.row * (lane.height + 2);
  if (entry.kind === "compaction") return svg("path", { d: `M${x - 7} ${y + 3}h14l-7 13z` });
  if (entry.kind === "api_error") return svg("path", { d: `M${x - 5} ${y + 4}l10 10m0-10l-10 10` });
  const width = Math.max(scale.x(entry.end) - x, 2);
  return svg("rect", { x, y, width, height: lane.height, rx: Math.min(3, width / 2) });
}

function failure(entry, lane, scale) {
  const x = scale.x(entry.start);
  const y = lane.y + entry.row * (lane.height + 2) + lane.height / 2;
  return svg("path", { class: "failure", d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`, "pointer-events": "none" });
}

function drawEntry(entry, lane, scale) {
  const mark = bar(entry, lane, scale);
  mark.setAttribute("class", `mark ${entry.kind}${entry.failed ? " failed" : ""}`);
  entry.mark = mark;
  const parts = [mark];
  if (entry.failed) parts.push(failure(entry, lane, scale));
  const width = scale.x(entry.end) - scale.x(entry.start);
  if (entry.kind === "turn" && width > 14 + 7 * String(entry.turn).length) {
    parts.push(svg("text", { class: "turn-number", x: scale.x(entry.start) + 6, y: lane.y + 16 }, entry.turn));
  }
  return parts;
}

function drawBreaks(scale, height) {
  return scale.pauses.map((gap) => {
    const x = scale.x(gap.start);
    const middle = x + scale.gapWidth / 2;
    const length = duration(gap.end - gap.start);
    return svg(
      "g",
      {},
      svg("title", {}, `a pause of ${length}`),
      svg("rect", { class: "break", x: x + 1, y: 0, width: Math.max(scale.gapWidth - 2, 1), height }),
      svg("path", { class: "break-line", d: `M${middle} 0V${height}`, fill: "none" }),
      scale.gapWidth < 15
        ? null
        : svg(
            "text",
            {
              class: "break-text",
              x: middle,
              y: height / 2,
              "text-anchor": "middle",
              "dominant-baseline": "central",
              transform: `rotate(-90 ${middle} ${height / 2})`,
            },
            length,
          ),
    );
  });
}

function draw(entries, width) {
  const lanes = lanesOf(entries);
  const height = lanes.reduce((end, lane) => Math.max(end, lane.y + lane.whole), 0) + 4;
  const scale = scaleOf(entries, GUTTER, width - GUTTER - 12);
  const label = `Timeline with ${counted(entries.length, "entry", "entries")}; use the left and right arrow keys to go through them`;
  const picture = svg("svg", {
    width,
    height: height + 22,
    viewBox: `0 0 ${width} ${height + 22}`,
    tabindex: 0,
    role: "group",
    "aria-label": label,
  });
  for (const lane of lanes) {
    picture.append(
      svg("rect", {
        class: "lane",
        x: GUTTER,
        y: lane.y - 2,
        width: width - GUTTER - 8,
        height: lane.whole + 2,
        rx: 5,
      }),
    );
    picture.append(svg("text", { class: "lane-name", x: 0, y: lane.y + Math.min(lane.whole, 24) / 2 + 4 }, lane.name));
  }
  picture.append(...drawBreaks(scale, height));
  for (const { x, label: text } of ticksOf(scale, GUTTER, width - GUTTER - 12)) {
    picture.append(
      svg("path", { class: "grid", d: `M${x} 0V${height}` }),
      svg("text", { class: "tick", x, y: height + 15 }, text),
    );
  }
  for (const lane of lanes) for (const entry of lane.entries) picture.append(...drawEntry(entry, lane, scale));
  return picture;
}

function shapes() {
  const shown = (name, ...parts) =>
    el("li", {}, svg("svg", { width: 14, height: 12, viewBox: "0 0 14 12", "aria-hidden": "true" }, parts), name);
  const box = (kind) => svg("rect", { class: kind, y: 1, width: 14, height: 10, rx: 3 });
  return el(
    "ul",
    { class: "shapes timeline-shapes" },
    shown("model response", box("step")),
    shown("tool call", box("tool")),
    shown("failed", box("failed"), svg("path", { class: "failure", d: "M7 1l5 5l-5 5l-5 -5z" })),
    shown("sub-agent", box("agent")),
    shown("compaction", svg("path", { class: "compaction", d: "M0 0h14l-7 12z" })),
    shown("API error", svg("path", { class: "api_error", d: "M2 1l10 10m0-10l-10 10" })),
    el("li", {}, "dashed: pause left out"),
  );
}

// The card with the timeline: zoom, arrow keys, a description of the selected entry, and its table.
function timelineCard(timeline, id) {
  const { entries } = timeline;
  const ordered = [...entries].sort((a, b) => a.start - b.start);
  const frame = el("div", { class: "timeline" });
  const line = el(
    "p",
    { class: "told", role: "status", "aria-live": "polite" },
    "Hover over a mark, or use the arrow keys.",
  );
  let zoom = 1;
  let chosen = -1;

  const choose = (n, follow) => {
    ordered[chosen]?.mark.classList.remove("chosen");
    chosen = Math.max(0, Math.min(n, ordered.length - 1));
    const entry = ordered[chosen];
    entry.mark.classList.add("chosen");
    const [kind, name, ...rest] = told(entry);
    line.replaceChildren(kind, foreign(name), ...rest, " · ");
    line.append(...eventReference(id, entry.event));
    if (follow) entry.mark.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  };
  const redraw = () => {
    const picture = draw(entries, Math.max(frame.clientWidth, 300) * zoom);
    const places = new Map(ordered.map((entry, n) => [entry.mark, n]));
    picture.addEventListener("pointerover", (event) => places.has(event.target) && choose(places.get(event.target)));
    picture.addEventListener("click", (event) => {
      if (!places.has(event.target)) return;
      choose(places.get(event.target));
      openEvent(id, ordered[chosen].event);
    });
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[
        event.key
      ];
      const opens = event.key === "Enter" && chosen >= 0;
      if ((step === undefined && !opens) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (opens) openEvent(id, ordered[chosen].event);
      else choose(Math.max(-1, chosen) + step, true);
    });
    frame.replaceChildren(picture);
    ordered[chosen]?.mark.classList.add("chosen");
  };
  // Zooms around the chosen mark, which stays where it is; around the middle if none is seen.
  const zoomed = (factor) => {
    const place = () => ordered[chosen].mark.getBoundingClientRect().left - frame.getBoundingClientRect().left;
    const before = chosen < 0 ? -1 : place();
    const middle = (frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth;
    zoom = factor ? Math.max(1, Math.min(zoom * factor, 32)) : 1;
    redraw();
    if (before >= 0 && before <= frame.clientWidth) frame.scrollLeft += place() - before;
    else frame.scrollLeft = middle * frame.scrollWidth - frame.clientWidth / 2;
  };
  const button = (name, label, factor) => {
    const made = el("button", { type: "button", "aria-label": label }, name);
    made.addEventListener("click", () => zoomed(factor));
    return made;
  };
  const zooms = el(
    "span",
    {},
    button("−", "Zoom out", 0.5),
    button("+", "Zoom in", 2),
    button("Whole", "The whole timeline", 0),
  );
  const rows = () =>
    ordered.map((entry) => [
      duration(entry.start),
      KIND_WORDS[entry.kind],
      entry.name === null ? "" : foreign(entry.name),
      entry.end > entry.start ? duration(entry.end - entry.start) : "",
      entry.failed ? "failed" : "",
      entry.event,
    ]);
  const left = timeline.leftOut
    ? el("p", { class: "hint" }, `${counted(timeline.leftOut, "entry", "entries")} of less importance left out.`)
    : null;
  const card = el(
    "section",
    { class: "card wide", "aria-label": "Timeline" },
    el("div", { class: "zoom" }, el("h2", {}, "Timeline"), zooms),
    frame,
    line,
    shapes(),
    left,
    tableBehind("Timeline", ["After", "What", "Name", "For", "Failed", "Event"], rows),
  );
  new ResizeObserver(() => zoom === 1 && redraw()).observe(frame);
  return card;
}
