"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const lastETags = new Map(); // by target

  for (const span of document.querySelectorAll(".origin")) span.textContent = location.origin;

  // highlight colours JSON text; everything it inserts is text, never markup.
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|true|false/g;
  function highlight(code, text) {
    code.textContent = "";
    let end = 0;
    for (const match of text.matchAll(token)) {
      code.append(text.slice(end, match.index));
      const span = document.createElement("span");
      span.className = match[2] ? "k" : match[1] ? "s" : "n";
      span.textContent = match[1] ?? match[0];
      code.append(span, match[2] ?? "");
      end = match.index + match[0].length;
    }
    code.append(text.slice(end));
  }
  for (const code of document.querySelectorAll("code.json")) highlight(code, code.textContent);

  function button(label, onclick) {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = label;
    b.onclick = () => onclick(b);
    return b;
  }

  for (const pre of document.querySelectorAll("pre.copy")) {
    const block = document.createElement("div");
    const tools = document.createElement("div");
    block.className = "block";
    tools.className = "tools";
    pre.replaceWith(block);
    block.append(pre, tools);
    tools.append(button("copy", async (b) => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        b.textContent = "copied";
      } catch { // no clipboard without a secure origin: select the text instead
        getSelection().selectAllChildren(pre);
        b.textContent = "selected";
      }
      setTimeout(() => { b.textContent = "copy"; }, 1500);
    }));
    if (pre.dataset.target) {
      tools.append(button("try", () => {
        $("try-target").value = pre.dataset.target;
        search.value && (search.value = "", search.dispatchEvent(new Event("input")));
        $("try").scrollIntoView();
        $("try-key").value ? $("try-form").requestSubmit() : $("try-key").focus();
      }));
    }
  }

  // Tabs: without this script every sample is shown under its heading.
  let tabCount = 0;
  for (const tabs of document.querySelectorAll(".tabs")) {
    const panels = [...tabs.querySelectorAll("[data-tab]")];
    const list = document.createElement("div");
    list.className = "tablist";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Language");
    const show = (chosen) => panels.forEach((panel, i) => {
      panel.hidden = panel !== chosen;
      list.children[i].setAttribute("aria-selected", panel === chosen);
      list.children[i].tabIndex = panel === chosen ? 0 : -1;
    });
    panels.forEach((panel) => {
      const tab = button(panel.dataset.tab, () => show(panel));
      tab.setAttribute("role", "tab");
      tab.id = "tab-" + tabCount;
      tab.setAttribute("aria-controls", panel.id = "panel-" + tabCount++);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      list.append(tab);
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = (panels.findIndex((panel) => !panel.hidden) + step + panels.length) % panels.length;
      show(panels[at]);
      list.children[at].focus();
    });
    tabs.classList.add("live");
    tabs.prepend(list);
    show(panels[0]);
  }

  // Each section can be linked to.
  for (const section of document.querySelectorAll("main section[id]")) {
    const heading = section.querySelector("h2");
    if (!heading) continue;
    const link = document.createElement("a");
    link.className = "anchor";
    link.href = "#" + section.id;
    link.textContent = "#";
    link.setAttribute("aria-label", "Link to " + heading.textContent.trim());
    heading.append(link);
  }

  // Search leaves the sections that have all the words.
  const search = $("search");
  $("search-box").hidden = false;
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const section of document.querySelectorAll("main section[id]")) {
      const text = section.textContent.toLowerCase();
      section.hidden = !words.every((word) => text.includes(word));
      found += !section.hidden;
      const link = [...document.querySelectorAll("nav a")].find((a) => a.hash === "#" + section.id);
      if (link) link.hidden = section.hidden;
    }
    $("found").textContent = words.length ? `${found} sections` : "";
  });

  $("try-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const target = $("try-target").value.trim();
    const url = new URL(target, location.origin);
    $("try-answer").hidden = false;
    if (url.origin !== location.origin) { // the key is for this service alone
      $("try-status").textContent = "Only requests to " + location.origin + " can be tried here.";
      $("try-headers").textContent = $("try-body").textContent = "";
      return;
    }
    const headers = {};
    if ($("try-key").value) headers.Authorization = "Bearer " + $("try-key").value.trim();
    if ($("try-etag").checked && lastETags.has(target)) headers["If-None-Match"] = lastETags.get(target);
    const start = performance.now();
    try {
      const answer = await fetch(url, { headers, cache: "no-store", credentials: "omit" });
      const text = await answer.text();
      const ms = (performance.now() - start).toFixed(1);
      if (answer.headers.get("ETag")) lastETags.set(target, answer.headers.get("ETag"));
      $("try-status").textContent = `${answer.status} ${answer.statusText} · ${ms} ms · ${new TextEncoder().encode(text).length} bytes`;
      $("try-headers").textContent = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      highlight($("try-body"), indent(text));
    } catch (err) {
      $("try-status").textContent = "No answer: " + err.message;
      $("try-headers").textContent = $("try-body").textContent = "";
    }
  });

  // The track record: a plot for each of the two records, and a table by season.
  const make = (name, attributes, ...children) => {
    const svg = ["svg", "g", "line", "circle", "polyline", "text"].includes(name);
    const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
  };

  function reliability(record, title) {
    const size = 300, left = 38, top = 14, x = (p) => left + (p * size) / 100, y = (p) => top + size - (p * size) / 100;
    const plot = make("svg", { viewBox: `0 0 ${left + size + 14} ${top + size + 40}`, role: "img", "aria-label": title });
    for (let p = 0; p <= 100; p += 20) {
      plot.append(
        make("line", { class: "grid", x1: x(0), x2: x(100), y1: y(p), y2: y(p) }),
        make("line", { class: "grid", x1: x(p), x2: x(p), y1: y(0), y2: y(100) }),
        make("text", { x: x(0) - 6, y: y(p) + 4, "text-anchor": "end" }, p),
        make("text", { x: x(p), y: y(0) + 16, "text-anchor": "middle" }, p));
    }
    plot.append(make("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(100), y2: y(100) }));
    const bins = record.reliability ?? [];
    for (const b of bins) {
      plot.append(make("line", { class: "interval", x1: x(b.said_pct), x2: x(b.said_pct), y1: y(b.low_pct), y2: y(b.high_pct) }));
    }
    plot.append(make("polyline", { class: "curve", points: bins.map((b) => `${x(b.said_pct)},${y(b.won_pct)}`).join(" ") }));
    for (const b of bins) plot.append(make("circle", { class: "point", cx: x(b.said_pct), cy: y(b.won_pct), r: 3.5 }));
    plot.append(make("text", { x: x(50), y: y(0) + 34, "text-anchor": "middle" }, "chance given to the picked winner, % → share that won, %"));
    return make("figure", {}, make("figcaption", {}, `${title}: ${record.races} races`), plot);
  }

  function recordTable(record) {
    const interval = (i, digits) => `${i.value.toFixed(digits)} [${i.low.toFixed(digits)}, ${i.high.toFixed(digits)}]`;
    const row = (name, races, s) => make("tr", {},
      ...[name, races, interval(s.winner_hit_pct, 1), interval(s.podium_pct, 1),
        s.log_loss ? interval(s.log_loss, 3) : "", s.brier ? interval(s.brier, 3) : ""].map((cell) => make("td", {}, cell)));
    const rows = [["all: picks", record.picks], ["all: f0", record.f0], ["all: pole", record.pole]]
      .filter(([, scores]) => scores).map(([name, scores]) => row(name, record.races, scores));
    for (const s of record.seasons ?? []) rows.push(row(s.year, s.races, s.picks));
    const head = ["picks of", "races", "winner hit %", "podium %", "log-loss", "Brier"].map((name) => make("th", {}, name));
    return make("table", { class: "record" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  }

  $("record-draw")?.addEventListener("click", async () => {
    const shown = $("record"), note = $("record-note");
    if (!$("try-key").value) {
      note.textContent = "Paste your key under “Try it” first.";
      return $("try-key").focus();
    }
    try {
      const answer = await fetch("/api/v1/track-record", {
        headers: { Authorization: "Bearer " + $("try-key").value.trim() }, cache: "no-store", credentials: "omit",
      });
      const body = await answer.json();
      if (!body.ok) {
        note.textContent = `${answer.status}: ${body.message}`;
        return;
      }
      const { real, hindsight } = body.data;
      shown.replaceChildren(
        make("div", { class: "plots" }, reliability(real, "Real picks"), reliability(hindsight, "Hindsight")),
        ...[["Real picks", real], ["Hindsight: the model of today on past races", hindsight]]
          .filter(([, record]) => record.races).flatMap(([title, record]) => [make("h4", {}, title), recordTable(record)]));
      shown.hidden = false;
      note.textContent = "In square brackets are 95 % intervals. Seasons are those of the picks.";
    } catch (err) {
      note.textContent = "No answer: " + err.message;
    }
  });

  // Each heading links to itself.
  for (const heading of document.querySelectorAll("section[id] > h2")) {
    const link = make("a", { class: "here", href: "#" + heading.parentElement.id, "aria-label": "Link to " + heading.textContent }, "#");
    heading.append(" ", link);
  }

  // indent lays JSON out without parsing its numbers, so that 50.0 stays 50.0.
  function indent(json) {
    let depth = 0;
    const line = () => "\n" + "  ".repeat(depth);
    return json.replace(/"(?:[^"\\]|\\.)*"|\[\]|\{\}|[{}[\],:]/g, (t) => {
      if (t === "{" || t === "[") { depth++; return t + line(); }
      if (t === "}" || t === "]") { depth--; return line() + t; }
      if (t === ",") return t + line();
      return t === ":" ? ": " : t;
    });
  }
})();
