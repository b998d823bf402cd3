// What a page breaks of WCAG 2.2, as far as a program can tell: the contrast of
// text (1.4.3) and of what else has to be seen (1.4.11), the ring around what
// has the focus (2.4.7), and ids that are there twice. The keyboard has to be
// what was used last, or the browser draws no ring.
() => {
  const wrong = [];
  const named = (el) => el.outerHTML.slice(0, 120).replaceAll(/\s+/g, " ");

  // Colours are [red, green, blue, alpha], 0 to 255 and 0 to 1.
  const colour = (text) => {
    const m = text.match(/^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/);
    if (!m) throw new Error("cannot read the colour " + text);
    return [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
  const faded = (el, c, own = 1) => {
    let alpha = c[3] * own;
    for (let e = el; e; e = e.parentElement) alpha *= +getComputedStyle(e).opacity;
    return [c[0], c[1], c[2], alpha];
  };

  // paint is what an element fills its area with.
  const paint = (el) => {
    const s = getComputedStyle(el);
    if (el instanceof SVGGeometryElement) return s.fill === "none" ? [0, 0, 0, 0] : faded(el, colour(s.fill), +s.fillOpacity);
    if (s.backgroundImage !== "none") throw new Error("a picture is behind " + named(el));
    return faded(el, colour(s.backgroundColor));
  };
  const stacked = (layers) => layers.reduceRight((below, el) => over(paint(el), below), [255, 255, 255, 1]);
  // behind is the colour below an element: at a point of it, or around it.
  const behind = (el, rect) => {
    const layers = rect ? document.elementsFromPoint(rect.x + rect.width / 2, rect.y + rect.height / 2) : [];
    const at = layers.indexOf(el);
    if (at >= 0) return stacked(layers.slice(el instanceof SVGGeometryElement ? at + 1 : at));
    const up = [];
    for (let e = el; e; e = e.parentElement) up.push(e);
    return stacked(up);
  };
  const seen = (el) => el.checkVisibility({ visibilityProperty: true }) && !el.closest(".hidden, .skip:not(:focus), title, defs");
  const demand = (what, el, front, back, least) => {
    const got = contrast(over(front, back), back);
    if (got < least) wrong.push(`${what} ${got.toFixed(2)}:1, want ${least}:1: ${named(el)}`);
  };

  document.querySelectorAll("details").forEach((d) => { d.open = true; });

  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const el = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !seen(el)) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    el.scrollIntoView({ block: "center", inline: "center" });
    const rect = [...range.getClientRects()].find((r) => r.width && r.height);
    if (!rect) continue;
    texts++;
    const s = getComputedStyle(el);
    const front = faded(el, colour(el instanceof SVGElement ? s.fill : s.color));
    const size = parseFloat(s.fontSize);
    demand("text", el, front, behind(el, rect), size >= 24 || (size >= 18.66 && +s.fontWeight >= 700) ? 3 : 4.5);
  }
  for (const el of document.querySelectorAll("input[placeholder]")) {
    const s = getComputedStyle(el, "::placeholder");
    const front = colour(s.color);
    front[3] *= +s.opacity;
    demand("placeholder", el, front, behind(el), 4.5);
  }

  let shapes = 0;
  const shape = (selector, property, back) => {
    for (const el of document.querySelectorAll(selector)) {
      if (!seen(el)) continue;
      shapes++;
      const s = getComputedStyle(el);
      demand(property, el, faded(el, colour(s[property]), property === "stroke" ? +s.strokeOpacity : 1), back(el), 3);
    }
  };
  const around = (el) => behind(el.closest("svg")?.parentElement ?? el.parentElement);
  // The browser draws ticks and dots itself.
  shape("button, input:not([type=radio], [type=checkbox])", "borderTopColor", around);
  shape(".arrow, .curve, .plot polyline, .box rect", "stroke", around);
  shape(".node circle, .bar", "fill", around);
  shape(".bar", "fill", (el) => paint(el.parentElement.querySelector(".track")));

  let controls = 0;
  for (const el of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")) {
    if (el.disabled || el.tabIndex < 0 || !el.checkVisibility()) continue;
    controls++;
    el.focus();
    const s = getComputedStyle(el);
    if (document.activeElement !== el) wrong.push("takes no focus: " + named(el));
    else if (!el.matches(":focus-visible") || s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) wrong.push("shows no focus: " + named(el));
    else demand("focus ring", el, faded(el, colour(s.outlineColor)), around(el), 3);
  }

  // Lines of more than 80 characters are hard to read.
  for (const el of document.querySelectorAll(".snippet, .hint, .problem, .document p, .document li")) {
    const lines = new Map();
    const inside = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
    while (inside.nextNode()) {
      for (let i = 0; i < Math.min(inside.currentNode.length, 1000); i++) {
        const range = document.createRange();
        range.setStart(inside.currentNode, i);
        range.setEnd(inside.currentNode, i + 1);
        const rect = range.getClientRects()[0];
        if (rect) lines.set(Math.round(rect.bottom / 8), (lines.get(Math.round(rect.bottom / 8)) || 0) + 1);
      }
    }
    const longest = Math.max(0, ...lines.values());
    if (longest > 85) wrong.push(`a line of ${longest} characters: ${named(el)}`); // 80, as far as letters have one width
  }

  const ids = new Set();
  for (const el of document.querySelectorAll("[id]")) {
    if (!el.id || ids.has(el.id)) wrong.push(`id ${JSON.stringify(el.id)}, empty or again: ${named(el)}`);
    ids.add(el.id);
  }
  return { texts, shapes, controls, wrong };
}
