// Search as you type, over everything; the newest question wins. The address has it, so that Back leads to it again.

let asking = null;
let askedFor = "";

// What is marked in the hits: the text itself if it was looked for as it is, else words that begin as one of the query.
function patternOf(query, isText) {
  const words = isText ? [query.trim()] : query.split(/\s+/).filter((word) => word.length > 1);
  const parts = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return parts.length ? new RegExp(`${isText ? "" : "(?<![\\p{L}\\p{N}])"}(?:${parts.join("|")})`, "giu") : null;
}

function markWords(container, query, isText) {
  const pattern = patternOf(query, isText);
  if (!pattern) return;
  for (const quote of container.querySelectorAll(".quote")) {
    const text = quote.textContent;
    const parts = [];
    let at = 0;
    for (const found of text.matchAll(pattern)) {
      parts.push(text.slice(at, found.index), el("mark", {}, found[0]));
      at = found.index + found[0].length;
    }
    quote.replaceChildren(...parts, text.slice(at));
  }
}

const findForm = () => byId("find").querySelector("form");
const filledIn = (form) => new URLSearchParams(new FormData(form));

function keepInAddress(question) {
  const address = new URL(location.href);
  if (question) address.searchParams.set("find", question);
  else address.searchParams.delete("find");
  history.replaceState(history.state, "", address);
}

// Shows the search that the address has, if it has one.
function restoreFind() {
  const question = new URLSearchParams(location.search).get("find");
  if (!question) {
    byId("find").close();
    return;
  }
  const form = findForm();
  form.reset();
  for (const [name, value] of new URLSearchParams(question)) {
    const field = form.elements[name];
    if (field?.type === "checkbox") field.checked = field.value === value;
    else if (field) field.value = value;
  }
  openFind();
  ask(form);
}

async function ask(form) {
  const given = filledIn(form);
  const query = given.get("q") ?? "";
  const question = given.toString();
  keepInAddress(query.trim() ? question : "");
  if (question === askedFor) return;
  askedFor = question;
  asking?.abort();
  asking = new AbortController();
  const results = byId("find-results");
  if (!query.trim()) {
    results.replaceChildren();
    return;
  }
  results.setAttribute("aria-busy", "true");
  try {
    const found = await part(`/found?${question}`, asking.signal);
    markWords(found, query, given.get("order") === "newest");
    results.replaceChildren(found);
    results.scrollTop = 0;
    results.setAttribute("aria-busy", "false");
  } catch (error) {
    if (error.name === "AbortError") return;
    askedFor = "";
    results.setAttribute("aria-busy", "false");
    results.replaceChildren(el("p", { class: "empty" }, "The search can’t be answered now: is agtrace still running?"));
  }
}

function openFind() {
  const dialog = byId("find");
  if (!dialog.open) dialog.showModal();
  byId("find-query").focus();
  byId("find-query").select();
}

const hits = () => [...byId("find-results").querySelectorAll(".hit")];

function moveHit(step) {
  const links = hits();
  const here = links.indexOf(document.activeElement);
  if (here + step < 0) byId("find-query").focus();
  else (links[here + step] ?? links.at(-1))?.focus();
}

async function showMoreHits(button) {
  const more = await part(button.dataset.more);
  markWords(more, byId("find-query").value, true);
  more.querySelector(".summary")?.remove();
  button.closest(".onward").replaceWith(more);
}

function startFind() {
  const dialog = byId("find");
  const form = findForm();
  let typing = 0;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => ask(form), 110);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [first] = hits();
    if (askedFor === filledIn(form).toString() && first) first.click();
    else ask(form);
  });
  byId("open-search").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openFind();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    const more = event.target.closest("[data-following]");
    if (more) {
      event.preventDefault();
      showMoreHits(more);
      return;
    }
    const link = event.target.closest("a.hit");
    if (link && samePage(link)) {
      event.preventDefault();
      history.pushState(null, "", location.href);
      dialog.close();
      goToEvent(Number(new URL(link.href).searchParams.get("at") ?? 0));
    }
  });
  dialog.addEventListener("close", () => keepInAddress(""));
  addEventListener("popstate", restoreFind);
  restoreFind();
  for (const results of document.querySelectorAll("main .results")) {
    const given = new URLSearchParams(location.search);
    markWords(results, given.get("q") ?? "", given.get("order") === "newest");
  }
}

// Whether a link leads to a place in the session that is shown.
const samePage = (link) => byId("session") !== null && new URL(link.href).pathname === location.pathname;
