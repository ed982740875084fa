// The list of sessions: filters at work while they are changed, more rows on demand, new ones while it is open.

const rowLinks = () => [...document.querySelectorAll(".sessions tbody .cell-title > a")];

function moveRow(step) {
  const links = rowLinks();
  if (!links.length) return;
  const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const next = links[Math.max(0, Math.min(links.length - 1, here < 0 ? 0 : here + step))];
  next.focus();
  next.closest("tr").scrollIntoView({ block: "nearest" });
}

function filterAddress(form) {
  const given = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) given.set(name, value);
  const query = given.toString();
  return query ? `${form.getAttribute("action")}?${query}` : form.getAttribute("action");
}

let listing = null;

// Shows the list at an address of the sessions page, with new rows marked if it is the same list.
async function showList(address, { mark = false } = {}) {
  listing?.abort();
  listing = new AbortController();
  const known = new Set(rowLinks().map((link) => link.closest("tr").dataset.id));
  let page;
  try {
    page = await part(address, listing.signal);
  } catch {
    return;
  }
  const focused = document.activeElement?.closest?.("#listed tr")?.dataset.id;
  byId("listed").replaceChildren(...page.querySelector("#listed").childNodes);
  byId("count").replaceChildren(...page.querySelector("#count").childNodes);
  if (mark) {
    for (const link of rowLinks()) {
      const row = link.closest("tr");
      row.classList.toggle("fresh", !known.has(row.dataset.id));
    }
  }
  if (focused) rowLinks().find((link) => link.closest("tr").dataset.id === focused)?.focus({ preventScroll: true });
}

async function showMoreRows(button) {
  button.setAttribute("aria-busy", "true");
  let rows;
  try {
    rows = await part(button.dataset.more);
  } catch {
    location.href = button.href;
    return false;
  }
  const [first] = rows.querySelectorAll("tbody tr");
  document.querySelector(".sessions tbody").append(...rows.querySelectorAll("tbody tr"));
  byId("onward").replaceChildren(...rows.querySelectorAll("#more"));
  byId("listed").dataset.grown = "true";
  first?.querySelector("a").focus({ preventScroll: true });
  return true;
}

const LEFT = "agtrace-list";

function addressOfList() {
  const address = new URL(location.href);
  address.searchParams.delete("find");
  return address.pathname + address.search;
}

// Remembers the list as it is left, for as long as its tab is open.
function leaveList() {
  const row = document.activeElement?.closest?.("#listed tr")?.dataset.id;
  try {
    sessionStorage.setItem(LEFT, JSON.stringify({ address: addressOfList(), rows: rowLinks().length, top: scrollY, row }));
  } catch {
    // it is found from its beginning
  }
}

function leftList() {
  try {
    return JSON.parse(sessionStorage.getItem(LEFT));
  } catch {
    return null;
  }
}

// From a session back to the list, as it was left; to the whole list if none was.
function backToList() {
  const left = leftList();
  if (left) sessionStorage.setItem(LEFT, JSON.stringify({ ...left, wanted: true }));
  location.href = left?.address ?? "/";
}

async function restoreList() {
  const left = leftList();
  const [{ type }] = performance.getEntriesByType("navigation");
  if (left?.address !== addressOfList() || !(left.wanted || type === "back_forward")) return;
  while (rowLinks().length < left.rows && byId("more")) if (!(await showMoreRows(byId("more")))) return;
  rowLinks().find((link) => link.closest("tr").dataset.id === left.row)?.focus({ preventScroll: true });
  scrollTo({ top: left.top, behavior: "instant" });
}

function startList() {
  const form = byId("filters");
  if (!form) return;
  const isList = byId("listed") !== null;
  const fold = form.querySelector(".fold");
  fold.addEventListener("click", () => fold.setAttribute("aria-expanded", String(form.classList.toggle("all"))));
  let typing = 0;
  let applied = filterAddress(form);
  const apply = () => {
    clearTimeout(typing);
    const address = filterAddress(form);
    applied = address;
    if (!isList) {
      location.href = address;
      return;
    }
    history.replaceState(null, "", address);
    delete byId("listed").dataset.grown;
    showList(address);
  };
  form.addEventListener("change", () => {
    // Leaving a field that was typed into changes nothing more: a new list would swallow the click that left it.
    if (filterAddress(form) !== applied) apply();
  });
  form.addEventListener("input", (event) => {
    if (event.target.type !== "search") return;
    clearTimeout(typing);
    typing = setTimeout(apply, 150);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#more");
    if (!button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showMoreRows(button);
  });
  if (isList) {
    addEventListener("pagehide", leaveList);
    restoreList();
  }
}
