// Light or dark: the system's setting, until the button changes it.

const dark = matchMedia("(prefers-color-scheme: dark)");
const whenLookChanges = new Set();

const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function lookChanged() {
  const button = byId("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  for (const redraw of whenLookChanges) redraw();
}

function toggleTheme() {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  keepLook(chosen);
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
lookChanged();
