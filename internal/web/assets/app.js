"use strict";
// Keys, copying and the theme. Everything else works without a script.
(() => {
  const root = document.documentElement;
  const said = (text) => { document.querySelector(".said").textContent = text; };
  try { root.dataset.theme = localStorage.getItem("theme") || ""; } catch { /* storage is off */ }

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest(".copy");
    if (copy) {
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
        said("Copied " + copy.dataset.copy);
      } catch {
        said("Copying is not allowed here: " + copy.dataset.copy);
      }
    }
    if (event.target.closest(".theme")) {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is off */ }
    }
  });

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      const field = document.getElementById("q");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
      return;
    }
    const hits = [...document.querySelectorAll("a.hit")];
    const at = hits.indexOf(document.activeElement);
    if (event.key === "j" && hits.length) hits[Math.min(at + 1, hits.length - 1)].focus();
    if (event.key === "k" && hits.length) hits[Math.max(at - 1, 0)].focus();
    if (event.key === "c") {
      const scope = at >= 0 ? hits[at].closest("article") : document;
      const copy = scope.querySelector(".copy");
      if (copy) copy.click();
    }
  });
})();
