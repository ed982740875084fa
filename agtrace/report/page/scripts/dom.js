// Elements are made here, and texts are inserted only as text: nothing from a log is ever read as markup.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

const el = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => filled(document.createElementNS(SVG, name), attributes, children);

// A text from a log, isolated so that its writing direction doesn't affect its neighbours.
const foreign = (text) => el("bdi", {}, String(text));

function dot(ending) {
  const square = svg("rect", { class: `fill-${ending}`, width: 10, height: 10, rx: 3 });
  return svg("svg", { class: "dot", viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, square);
}

const ended = (ending) => el("span", { class: "ending" }, dot(ending), facts.endings[ending] ?? ending);

function scored(score) {
  return el("span", { class: `score ${grade(score)}`, title: score === null ? "not scored" : null }, score ?? "–");
}

function table(caption, columns, rows) {
  const head = el(
    "thead",
    {},
    el(
      "tr",
      {},
      columns.map((name) => el("th", { scope: "col" }, name)),
    ),
  );
  const body = el(
    "tbody",
    {},
    rows.map(([first, ...others]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, first),
        others.map((cell) => el("td", {}, cell)),
      ),
    ),
  );
  const around = { class: "scrolls", tabindex: 0, role: "region", "aria-label": `Table: ${caption}` };
  return el("div", around, el("table", {}, el("caption", {}, caption), head, body));
}

// A table, built only when it is opened, as it may have many rows.
function tableBehind(caption, columns, rows) {
  const details = el("details", { class: "behind" }, el("summary", {}, "Table"));
  details.addEventListener("toggle", () => details.append(table(caption, columns, rows())), { once: true });
  return details;
}

function copyButton(text, what) {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, "Copy");
  button.addEventListener("click", () => copy(button, text, button.previousElementSibling));
  return button;
}

// Copies a text; selects the element that shows it where the browser doesn't allow that.
async function copy(button, text, shownIn) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(shownIn);
    button.textContent = "Selected";
  }
  setTimeout(() => {
    button.textContent = "Copy";
  }, 1600);
}
