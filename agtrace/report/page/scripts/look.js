// Light or dark: as the system has it, until the button says otherwise; nothing is remembered.

const dark = matchMedia("(prefers-color-scheme: dark)");
const whenLookChanges = new Set();

const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function nameTheme() {
  const button = byId("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
}

function lookChanged() {
  nameTheme();
  for (const redraw of whenLookChanges) redraw();
}

function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  lookChanged();
}

// What a custom property is now, as a colour that a canvas understands.
const probe = el("span", { hidden: true });
document.body.append(probe);
function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

byId("theme").addEventListener("click", toggleTheme);
dark.addEventListener("change", lookChanged);

// Paper is light.
let beforePrint;
addEventListener("beforeprint", () => {
  beforePrint = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  lookChanged();
});
addEventListener("afterprint", () => {
  if (beforePrint) document.documentElement.dataset.theme = beforePrint;
  else delete document.documentElement.dataset.theme;
  lookChanged();
});
nameTheme();
