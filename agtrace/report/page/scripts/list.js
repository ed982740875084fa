// The list of all sessions: search, filters, order; shown in slices, so that thousands don't block the page.

const SLICE = 50;
const list = { rows: [], found: [], shown: 0 };

const ORDERS = {
  worst: null,
  newest: (a, b) => (b.start ?? "").localeCompare(a.start ?? ""),
  longest: (a, b) => (b.duration ?? -1) - (a.duration ?? -1),
  cost: (a, b) => (b.cost ?? -1) - (a.cost ?? -1),
  tokens: (a, b) => (b.tokens ?? -1) - (a.tokens ?? -1),
  failed: (a, b) => b.failed - a.failed,
};

function rowElement(row) {
  const link = el("a", { href: `#s=${encodeURIComponent(row.id)}` }, foreign(row.title || "without a title"));
  const about = el(
    "span",
    { class: "about" },
    providerName(row.provider),
    " · ",
    foreign(row.project ?? "no project"),
    " · ",
    el("time", {}, minute(row.start)),
  );
  const marks = facts.severities.map(
    (name, n) => row.severities[n] && el("span", { class: name }, countedFindings(row.severities[n], n)),
  );
  return el(
    "tr",
    { role: "row" },
    el("td", { role: "cell", class: "cell-score" }, scored(row.score)),
    el("th", { role: "rowheader", scope: "row", class: "cell-title" }, link, about),
    el(
      "td",
      { role: "cell", class: "cell-worst" },
      row.worst ? foreign(row.worst) : el("span", { class: "unknown" }, "nothing found"),
      el("span", { class: "marks" }, marks.filter(Boolean)),
    ),
    el("td", { role: "cell", class: "cell-ending" }, ended(row.ending)),
    el("td", { role: "cell", class: "cell-failed" }, `${plain(row.failed)} of ${plain(row.calls)}`),
    el("td", { role: "cell", class: "cell-lasted" }, row.duration === null ? "" : duration(row.duration)),
    facts.dollars && el("td", { role: "cell", class: "cell-cost" }, row.cost === null ? "" : atLeast(dollars(row.cost), row.cost_made)),
  );
}

function showMore() {
  const slice = list.found.slice(list.shown, list.shown + SLICE);
  byId("rows-shown").append(...slice.map(rowElement));
  list.shown += slice.length;
  byId("more").hidden = list.shown >= list.found.length;
}

function words(row) {
  row.words ??= [
    row.id,
    row.title,
    row.project,
    row.model,
    row.worst,
    providerName(row.provider),
    ...row.detectors.map(detectorWords),
  ]
    .filter(Boolean)
    .join("\n")
    .toLowerCase();
  return row.words;
}

function wanted() {
  const terms = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = {
    provider: byId("by-provider").value,
    ending: byId("by-ending").value,
    project: byId("by-project").value,
  };
  const [kind, finding] = byId("by-finding").value.split(":");
  const below = Number(byId("below").value) || null;
  const [since, minutes, cost] = ["since", "lasted", "cost"].map((id) => byId(id)?.value || null);
  return (row) =>
    Object.entries(chosen).every(([name, value]) => !value || String(row[name] ?? "") === value) &&
    (!finding || (kind === "detector" ? row.detectors.includes(finding) : row.severities[Number(finding)] > 0)) &&
    (below === null || (row.score !== null && row.score < below)) &&
    (since === null || (row.start ?? "") >= since) &&
    (minutes === null || (row.duration ?? -1) >= 60 * Number(minutes)) &&
    (cost === null || (row.cost ?? -1) >= Number(cost)) &&
    terms.every((term) => words(row).includes(term));
}

function refresh() {
  list.found = list.rows.filter(wanted());
  const order = ORDERS[byId("order").value];
  if (order) list.found.sort(order);
  list.shown = 0;
  byId("rows-shown").replaceChildren();
  showMore();
  byId("found").textContent =
    list.found.length === list.rows.length
      ? counted(list.rows.length, "session")
      : `${plain(list.found.length)} of ${counted(list.rows.length, "session")}${list.found.length ? "" : ": nothing matches; press Clear to show all"}`;
}

function option(value, text, number) {
  return el("option", { value, "data-label": text }, `${text} (${plain(number)})`);
}

function tally(values) {
  const numbers = new Map();
  for (const value of values) numbers.set(value, (numbers.get(value) ?? 0) + 1);
  return [...numbers].sort((a, b) => b[1] - a[1]);
}

function fillFilters() {
  const add = (id, values, name) =>
    byId(id).append(...tally(values).map(([value, number]) => option(value, name(value), number)));
  add(
    "by-provider",
    list.rows.map((row) => row.provider),
    providerName,
  );
  add(
    "by-ending",
    list.rows.map((row) => row.ending),
    (name) => facts.endings[name] ?? name,
  );
  add("by-project", list.rows.map((row) => row.project).filter(Boolean), (name) => cut(name, 60));
  const severities = facts.severities.map((name, n) =>
    option(`severity:${n}`, name, list.rows.filter((row) => row.severities[n]).length),
  );
  const detectors = tally(list.rows.flatMap((row) => row.detectors)).map(([name, number]) =>
    option(`detector:${name}`, detectorWords(name), number),
  );
  byId("by-finding").append(
    el("optgroup", { label: "Severity" }, severities),
    el("optgroup", { label: "Finding" }, detectors),
  );
}

async function openList() {
  list.rows = await unpackRows();
  fillFilters();
  refresh();
  const filters = byId("filters");
  filters.addEventListener("input", refresh);
  filters.addEventListener("reset", () => setTimeout(refresh));
  filters.addEventListener("submit", (event) => {
    event.preventDefault();
    moveRow(1);
  });
  byId("more").addEventListener("click", showMore);
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && showMore(), {
    rootMargin: "600px",
  }).observe(byId("more"));
}

// Moves the focus by this many rows, in the table that has it, else in the table of all sessions.
function moveRow(step) {
  const table = document.activeElement?.closest?.(".sessions") ?? byId("rows-shown").closest("table");
  const links = () => [...table.querySelectorAll(".cell-title a")];
  const at = links().indexOf(document.activeElement);
  if (step > 0 && at + 1 === links().length && table.contains(byId("rows-shown"))) showMore();
  const next = links()[at < 0 ? 0 : at + step];
  if (next) next.focus();
  else if (at === 0 && table.contains(byId("rows-shown"))) byId("search").focus();
}
