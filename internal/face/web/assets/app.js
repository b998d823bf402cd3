"use strict";
// Search as you type, moving cards, keys, copying and the theme. The pages work without it.
(() => {
  const root = document.documentElement;
  const announce = (text) => { document.querySelector(".announced").textContent = text; };
  try { root.dataset.theme = localStorage.getItem("theme") || ""; } catch { /* storage is disabled */ }

  // ask requests a part of a page. Without an answer it shows the reason and returns null.
  const ask = async (address, part, more) => {
    try {
      const answer = await fetch(address, { headers: { "Cairn-Fragment": part }, ...more });
      if (!answer.ok) {
        const text = await answer.text();
        announce(text.startsWith("{") ? JSON.parse(text).message : text);
        if (answer.status === 401) location.reload(); // the page says how to sign in
        return null;
      }
      announce("");
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") announce("The server does not answer.");
      return null;
    }
  };

  // select shows a hit in the preview beside the hits, on wide screens.
  const preview = document.querySelector("aside.preview");
  let selected, reading;
  const select = async (hit) => {
    const wide = preview && matchMedia("(min-width: 75rem)").matches;
    if (!wide || hit === selected) return;
    selected = hit;
    if (reading) reading.abort();
    reading = new AbortController();
    for (const each of document.querySelectorAll(".results article")) each.classList.toggle("selected", hit && each.contains(hit));
    if (!hit) { preview.replaceChildren(); return; }
    const answer = await ask(hit.dataset.part, "preview", { signal: reading.signal });
    const text = answer && await answer.text().catch(() => null);
    if (hit !== selected) return;
    if (text === null) selected = null; // its next selection requests it again
    preview.innerHTML = text || "";
    for (const link of preview.querySelectorAll("[id]")) link.removeAttribute("id"); // they are ids of another page
    preview.scrollTop = 0;
  };
  let resting;
  document.addEventListener("focusin", (event) => { if (event.target.matches("a.hit[data-part]")) select(event.target); });
  document.addEventListener("pointerover", (event) => {
    const over = event.target.closest(".results article");
    clearTimeout(resting);
    if (over) resting = setTimeout(() => select(over.querySelector("a.hit")), 120);
  });
  select(document.querySelector("a.hit[data-part]"));

  const field = document.querySelector(".find [name=q]");
  const form = document.querySelector("form[data-live]");
  if (form) live(form);

  // live shows the results while the query is typed. A search is one entry of the
  // browser's history, from the first letter until the field loses the focus.
  function live(form) {
    const target = document.querySelector(form.dataset.live);
    const suffix = document.title.slice(document.title.lastIndexOf(" – ", document.title.lastIndexOf(" – ") - 1));
    let timer, request, begun = false;
    const query = () => {
      const set = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
      set.sort(); // the links of the page are sorted, too
      return set.size ? "?" + set : "";
    };
    let shown = query(); // null after a failure
    const load = async (search) => {
      if (request) request.abort();
      request = new AbortController();
      shown = query();
      const { signal } = request;
      const answer = await ask(form.action + search, "results", { signal });
      const text = answer && await answer.text().catch(() => null);
      if (signal.aborted) return;
      if (text === null) shown = null;
      else {
        target.innerHTML = text;
        select(target.querySelector("a.hit[data-part]"));
      }
      document.title = (field.value.trim() || "Search") + suffix;
    };
    const search = () => {
      clearTimeout(timer);
      const now = query();
      if (now === shown) return;
      if (now !== location.search) {
        history[begun ? "replaceState" : "pushState"](null, "", form.action + now);
        begun = true;
      }
      load(now);
    };
    field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 150); });
    form.addEventListener("submit", (event) => { event.preventDefault(); search(); begun = false; });
    field.addEventListener("blur", () => { search(); begun = false; });
    addEventListener("popstate", () => {
      const back = new URLSearchParams(location.search);
      for (const name of ["q", "in", "tag", "mode", "kind", "all"]) form.elements[name].value = back.get(name) || "";
      begun = false;
      load(location.search);
    });
  }

  // On wide screens the lists of sections and files are open.
  if (matchMedia("(min-width: 60rem)").matches) {
    for (const details of document.querySelectorAll(".side details")) details.open = true;
    const current = document.querySelector(".tree [aria-current]");
    if (current) current.closest("ul").scrollTop = current.offsetTop - 100;
  }

  // Formulas are drawn as MathML by a library that only pages with formulas load.
  const formulas = document.querySelectorAll("code.math");
  if (formulas.length) {
    const library = document.head.appendChild(document.createElement("script"));
    library.src = document.querySelector("script[src]").src.replace("app.js", "temml.min.js");
    library.onload = () => {
      for (const each of formulas) {
        const tex = each.textContent;
        try { temml.render(tex, each, { displayMode: each.classList.contains("display"), trust: false, maxExpand: 100, throwOnError: true }); } catch { each.textContent = tex; }
      }
    };
  }

  const board = document.querySelector(".board");
  if (board) drag(board);

  // change sends a change of a card, and shows the page as it is then.
  async function change(address, fields) {
    const answer = await ask(address, "board", { method: "POST", body: new URLSearchParams(fields) });
    if (answer) {
      try { sessionStorage.setItem("moved", decodeURIComponent(address.slice(address.lastIndexOf("/") + 1))); } catch { /* storage is disabled */ }
      location.reload();
    }
    return answer;
  }
  document.addEventListener("change", async (event) => {
    const { target } = event;
    if (target.closest(".move") && !await change(target.form.action, { status: target.value })) target.form.reset();
    if (target.closest(".filter")) target.form.submit();
    const article = target.closest("[data-was]");
    if (target.dataset.step && article && !await change(article.dataset.card, { was: article.dataset.was, step: target.dataset.step, done: target.checked })) target.checked = target.defaultChecked;
  });

  // drag lets the user move cards to another column, and to another place if the order is by
  // hand: before the card under the pointer, or after it on its lower half. Alt with an arrow
  // key moves the focused card, and so does the select of each card.
  function drag(board) {
    let card;
    const send = (card, fields) => change(board.dataset.cards + "/" + encodeURIComponent(card.dataset.card), fields);
    const mark = (to) => {
      for (const each of board.querySelectorAll(".over, .below")) each.classList.remove("over", "below");
      if (to.column) (to.card || to.column).classList.add(to.below ? "below" : "over");
    };
    const target = (event) => {
      const column = card && event.target.closest("[data-status]");
      const over = column && "ordered" in board.dataset && event.target.closest("[data-card]");
      const box = over && over.getBoundingClientRect();
      return { column, card: over, below: over && event.clientY > box.y + box.height / 2 };
    };
    board.addEventListener("dragstart", (event) => {
      card = event.target.closest("[data-card]");
      if (card) event.dataTransfer.setData("text/plain", card.dataset.card);
    });
    board.addEventListener("dragover", (event) => {
      const to = target(event);
      mark(to);
      if (to.column) event.preventDefault();
    });
    board.addEventListener("dragend", () => { card = null; mark({}); });
    board.addEventListener("drop", (event) => {
      const to = target(event);
      if (!to.column || to.card === card || !to.card && to.column === card.closest("[data-status]")) return;
      event.preventDefault();
      const next = to.below ? to.card.nextElementSibling : to.card;
      send(card, to.card ? { status: to.column.dataset.status, before: next ? next.dataset.card : to.card.parentElement.dataset.next } : { status: to.column.dataset.status });
    });
    board.addEventListener("keydown", (event) => {
      const focused = event.target.closest("[data-card]");
      if (!focused || event.target.matches("select") || !event.altKey || !("ordered" in board.dataset) || !/^Arrow(Up|Down)$/.test(event.key)) return;
      event.preventDefault();
      send(focused, { status: event.key.slice(5).toLowerCase() });
    });
    try {
      const moved = board.querySelector(`[data-card="${CSS.escape(sessionStorage.getItem("moved"))}"] .hit`);
      if (moved) moved.focus();
      sessionStorage.removeItem("moved");
    } catch { /* storage is disabled */ }
  }

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest(".copy");
    if (copy) {
      const text = copy.dataset.copy || copy.previousElementSibling.textContent;
      const what = copy.dataset.copy || "the code";
      await navigator.clipboard.writeText(text).then(() => announce("Copied " + what), () => announce("The browser does not permit copying " + what));
    }
    if (event.target.closest(".theme")) {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is off */ }
    }
  });

  // uses shows where a name of source code is defined and used.
  const uses = async (name) => {
    const panel = document.querySelector("aside.uses");
    if (!panel || !/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name)) return;
    const answer = await ask(panel.dataset.names + encodeURIComponent(name), "names");
    if (!answer) return;
    panel.innerHTML = await answer.text();
    panel.hidden = false;
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("article .source") || event.target.closest("a") || !getSelection().isCollapsed || !document.caretPositionFromPoint) return;
    const at = document.caretPositionFromPoint(event.clientX, event.clientY);
    if (!at || at.offsetNode.nodeType !== Node.TEXT_NODE) return;
    const [before, after] = [at.offsetNode.data.slice(0, at.offset), at.offsetNode.data.slice(at.offset)];
    uses(before.match(/[\p{L}\p{N}_$]*$/u)[0] + after.match(/^[\p{L}\p{N}_$]*/u)[0]);
  });

  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // an input method uses the keys
    const typing = event.target.matches("input, textarea, select");
    if (/^Arrow(Up|Down)$/.test(event.key) && event.target.matches(".move select, .filter select") && event.target.showPicker) {
      event.preventDefault(); // otherwise the first key chooses, and the page acts on it
      event.target.showPicker();
    }
    const hits = [...document.querySelectorAll("a.hit")];
    const panel = document.querySelector("aside.uses");
    if (event.key === "Escape" && panel) panel.hidden = true;
    if (event.key === "Escape" && typing) {
      event.preventDefault(); // otherwise the browser clears the field
      event.target.blur();
      return;
    }
    if (event.key === "ArrowDown" && event.target === field && hits.length) {
      event.preventDefault();
      hits[0].focus();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && field) {
      event.preventDefault();
      field.focus();
      field.select();
      return;
    }
    const at = hits.indexOf(document.activeElement);
    if (event.key === "j" && hits.length) hits[Math.min(at + 1, hits.length - 1)].focus();
    if (event.key === "k" && hits.length) hits[Math.max(at - 1, 0)].focus();
    if (event.key === "u") uses(getSelection().toString().trim() || (document.querySelector(":target") || { id: "" }).id.replace(/-\d+$/, ""));
    if (event.key === "c") {
      const scope = at >= 0 ? hits[at].closest("article, li") : document;
      const copy = scope.querySelector(".copy");
      if (copy) copy.click();
    }
  });

  // A long document is shown in parts, and the address may name a place of another part.
  const find = () => {
    const at = decodeURIComponent(location.hash.slice(1));
    const query = new URLSearchParams(location.search);
    if (!at || query.get("at") === at || document.getElementById(at)) return;
    query.delete("next");
    query.set("at", at);
    location.replace("?" + query + location.hash);
  };
  if (document.querySelector("[data-parts]")) { addEventListener("hashchange", find); find(); }
})();
