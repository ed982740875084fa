// Keyboard shortcuts for everything; keys typed into a field, and the browser's own shortcuts, are left alone.

const writing = (element) =>
  element.matches?.("select, textarea, input:not([type=radio], [type=checkbox])") ?? false;

function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") escape(event);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") arrow(event);
    else if (!writing(event.target) && !byId("keys").open && KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  byId("show-keys").addEventListener("click", KEYS["?"]);
}
