// The look that was chosen before, set before anything is shown; and that there are scripts.
(() => {
  document.documentElement.classList.add("js");
  try {
    const chosen = localStorage.getItem("agtrace-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // a browser that stores nothing follows the system
  }
})();
