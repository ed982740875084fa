// Light or dark: the system's setting, until the button changes it; nothing is stored.

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

// The current value of a custom property, as a colour that a canvas understands.
const probe = el("span", { hidden: true });
document.body.append(probe);
function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

byId("theme").addEventListener("click", toggleTheme);
dark.addEventListener("change", lookChanged);

// Print in light colours.
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
