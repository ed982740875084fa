// The health of the session and its timeline, drawn as on the report's page; its findings stand where they happened.

let findings = [];
let endChart = () => {};

// Puts the findings next to the events of a window that show them.
function noteFindings(element) {
  for (const found of findings) {
    if (found.session_id || !found.evidence.length) continue;
    const entry = element.querySelector(`#e${found.evidence[0][0]}`)?.closest(".entry");
    if (!entry || element.querySelector(`[data-finding="${found.number}"]`)) continue;
    entry.after(
      el(
        "aside",
        { class: `noted ${found.severity}`, "data-finding": found.number, "aria-label": `Finding, ${found.severity}` },
        el("p", {}, foreign(found.message)),
        el("p", { class: "about" }, `${found.severity} · ${detectorWords(found.detector)}`),
      ),
    );
  }
}

async function loadHealth({ draw }) {
  const panel = byId("health");
  const body = byId("health-body");
  body.setAttribute("aria-busy", "true");
  if (draw) body.replaceChildren(el("p", { class: "hint", role: "status" }, "Analysing …"));
  let told;
  try {
    const answer = await fetch(panel.dataset.load, { credentials: "same-origin" });
    if (!answer.ok) throw new Refused(answer.status);
    told = await answer.json();
  } catch {
    body.setAttribute("aria-busy", "false");
    body.replaceChildren(el("p", { class: "hint" }, "The analysis can’t be made now: close this and try again."));
    return;
  }
  findings = told.details.insights.map((found, number) => ({ ...found, number }));
  for (const element of windowElements()) noteFindings(element);
  panel.told = told;
  const worst = told.row.severities.map((count, n) => (count ? countedFindings(count, n) : "")).filter(Boolean);
  panel.says = worst.length ? worst.join(", ") : "nothing found";
  panel.querySelector(".hint").textContent = `${told.row.score === null ? "no score" : `score ${told.row.score} of 100`} · ${panel.says}`;
  if (draw) drawHealth();
}

function drawHealth() {
  const { row, details } = byId("health").told;
  const body = byId("health-body");
  endChart();
  const [cards, chart] = healthCards(row, details);
  body.replaceChildren(el("div", { class: "score-line" }, ring(row.score), el("p", {}, byId("health").says)), cards, findingsOf(row, details));
  body.setAttribute("aria-busy", "false");
  endChart = chart();
}

function startHealth() {
  const panel = byId("health");
  panel.addEventListener("toggle", () => {
    if (!panel.open) return;
    if (panel.told) drawHealth();
    else loadHealth({ draw: true });
  });
  if (Number(byId("session").dataset.last) < 20_000) {
    const idle = globalThis.requestIdleCallback ?? ((later) => setTimeout(later, 200));
    idle(() => !panel.told && !panel.open && loadHealth({ draw: false }));
  }
}

function openHealth() {
  const panel = byId("health");
  panel.open = true;
  panel.scrollIntoView({ block: "start", behavior: "instant" });
  panel.querySelector("summary").focus({ preventScroll: true });
}
