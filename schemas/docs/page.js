const $ = (id) => document.getElementById(id);
const make = (name, attributes, ...children) => {
  const svg = ["svg", "g", "line", "circle", "polyline", "text"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
};

// /docs#limits was an address once: it leads to the page or the part of that name.
if (location.pathname === "/docs" && location.hash.length > 1) {
  const id = location.hash.slice(1), link = document.querySelector(`#contents a[href="/docs/${CSS.escape(id)}"]`);
  const page = link?.href ?? { limits: "keys", countdown: "site", proof: "audit", meaning: "audit", corrections: "picks", headers: "errors", why: "stability", attribution: "service" }[id];
  if (page) location.replace(link ? page : `/docs/${page}#${id}`);
}

// Parts that have moved to another page.
const moved = { "/docs/picks#proof": "/docs/audit#proof", "/docs/picks#meaning": "/docs/audit#meaning", "/docs/caching#countdown": "/docs/site#countdown" }[location.pathname + location.hash];
if (moved) location.replace(moved);

for (const span of document.querySelectorAll(".origin")) span.textContent = location.origin;

// The reader's language and key: the language for good, the key for this tab.
for (const choice of document.querySelectorAll("[name=language]")) {
  choice.checked = choice.value === (localStorage.gridcastLanguage ?? "curl");
  choice.addEventListener("change", () => { localStorage.gridcastLanguage = choice.value; });
}
const form = $("try-form"), lastETags = new Map(); // by target
if (form) {
  $("try-key").value ||= sessionStorage.gridcastKey ?? ""; // the reader may have begun to type
  $("try-key").addEventListener("input", () => { sessionStorage.gridcastKey = $("try-key").value; });
}
// A service with a sandbox has a key for everybody, and a timetable.
const sandbox = form || $("sandbox-now") ? fetch("/status", { headers: { Accept: "application/json" } }).then((r) => r.json()).then((b) => b.data.sandbox).catch(() => undefined) : undefined;
if (form) {
  sandbox.then((s) => {
    if (!s?.key || $("try-key").value) return;
    $("try-key").value = s.key;
    $("try-hint").textContent = "This is the public key of the sandbox: the data are simulated. Each request counts against the limit of your address.";
  });
}
if ($("sandbox-now")) {
  sandbox.then((s) => {
    if (!s?.weekends.length) {
      $("sandbox-now").textContent = "This service has no sandbox.";
      return;
    }
    const behind = Date.parse(s.now) - Date.now(), now = () => Date.now() + behind; // the clock of the reader may be wrong
    const left = (t) => {
      const seconds = Math.ceil((Date.parse(t) - now()) / 1000), [h, min] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
      return seconds <= 0 ? "past" : seconds < 60 ? `in ${seconds} s` : h ? `in ${h} h ${min} min` : `in ${min} min ${seconds % 60} s`;
    };
    const rows = s.weekends.map((w) => ({ w, row: make("li", {}) }));
    $("sandbox-weekends").replaceChildren(...rows.map(({ row }) => row));
    const tick = () => {
      const race = new Date(Date.parse(s.race_time) + (now() - Date.parse(s.now)) * s.speed);
      $("sandbox-now").textContent = `In the sandbox it is ${race.toISOString().slice(0, 16).replace("T", ", ")} UTC.`;
      for (const { w, row } of rows) {
        const runs = Date.parse(w.begins_at) <= now();
        row.hidden = Date.parse(w.ends_at) <= now();
        row.replaceChildren(make("b", {}, w.kind), `: ${runs ? "ends " + left(w.ends_at) : "begins " + left(w.begins_at)}, lights out ${left(w.lights_out)} (${new Date(w.lights_out).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" })})`);
      }
    };
    tick();
    setInterval(tick, 1000);
  });
}
document.querySelector("#contents").addEventListener("click", (e) => e.target.closest("a") && e.currentTarget.matches(":popover-open") && e.currentTarget.hidePopover());

// highlight colours JSON text; everything it inserts is text, never markup.
const token = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|true|false/g;
function highlight(code, text) {
  code.textContent = "";
  let end = 0;
  for (const match of text.matchAll(token)) {
    code.append(text.slice(end, match.index), make("span", { class: match[2] ? "k" : match[1] ? "s" : "n" }, match[1] ?? match[0]), match[2] ?? "");
    end = match.index + match[0].length;
  }
  code.append(text.slice(end));
}
for (const code of document.querySelectorAll("code.json")) highlight(code, code.textContent);

// copy writes text to the clipboard. Without a secure origin there is none, and it selects the element instead.
async function copy(button, text, element) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(await text);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(element);
    button.textContent = "selected";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}
for (const pre of document.querySelectorAll("main pre")) {
  const block = make("div", { class: "block" }), button = make("button", { type: "button", class: "quiet" }, "copy");
  pre.replaceWith(block);
  block.append(pre, button);
  button.addEventListener("click", () => copy(button, pre.textContent, pre));
}
$("copy-page").hidden = false;
$("copy-page").addEventListener("click", (e) => copy(e.target, fetch(document.querySelector("link[rel=alternate]").href).then((r) => r.text()), $("main")));

// Search reads the Markdown of all pages once, and lists the parts that have all the words.
// Words of six letters and more are also found without the blanks and hyphens of the text: timezone finds time zone.
const squeezed = (text) => text.replace(/[\s-]+/g, ""), alike = (w) => (w.length > 5 ? squeezed(w) : "\n");
const stem = (word) => word.replace(/(?<=.{4})(ations?|ions?|ments?|ings?|als?|ed|es|s)$/, "");
const forms = (word) => [word, also[word] ?? also[word.replace(/s$/, "")] ?? also[stem(word)] ?? word, stem(word)];
const has = (part, word) => forms(word).some((w) => part.all.includes(w) || part.squeezed.includes(alike(w)));
const spelt = (part, word) => forms(word).find((w) => part.all.includes(w)) ?? word; // as the part spells it
const literal = RegExp.escape ?? ((w) => w.replace(/\W/g, "\\$&"));
const count = (text, w) => text.toLowerCase().split(new RegExp(`(?<![a-z])${literal(w)}`)).length - 1; // points is not in endpoints
const named = (name, word) => forms(word).some((w) => count(name, w) > 0);
// Words of readers, and the words of the pages for the same thing.
const also = {
  api_key: "key", apikey: "key", authentication: "authorization", betting: "odds", changelog: "changes of the api", chatgpt: "llms.txt", daylight: "time zone", delay: "valid_until",
  dnf: "did_not_finish", dns: "did_not_start", downtime: "/status", dsq: "disqualified", embed: "widget", excel: "csv", headshot: "portrait", historic: "1950", historical: "1950", history: "1950",
  ical: "calendar.ics", iframe: "widget", java: "openapi", lag: "valid_until", laptime: "fastest lap", latency: "valid_until", license: "licence", login: "bearer", mcp: "llms.txt",
  notification: "webhook", npm: "openapi", oauth: "bearer", outage: "/status", pagination: "pages", paging: "pages", pandas: "csv", photo: "portrait", php: "openapi", polling: "poll",
  postman: "openapi", postpone: "postponed", price: "tier", pricing: "tier", push: "webhook", quota: "limit", realtime: "lap by lap", rescheduled: "round_moved", retired: "did_not_finish",
  rss: "atom", saving: "time zone", sdk: "openapi", sla: "/status", spreadsheet: "csv", sse: "webhook", stream: "webhook", throttle: "limit", throttling: "limit", tire: "tyre", typescript: "openapi",
  uptime: "/status", websocket: "webhook",
};
const search = $("search"), words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
let parts;
$("find").hidden = false;
search.addEventListener("input", async () => {
  parts ??= fetch("/llms-full.txt").then((r) => r.text()).then((all) => all.split(/^# (?=.*\n\nPage: )/m).slice(1).flatMap((page) => {
    const [title, , address] = page.split("\n"), path = address.replace("Page: ", "");
    return page.split(/^## /m).map((text, i) => ({ path, title, prose: text.replace(/^```.*?^```/gms, ""), part: i ? text.split("\n", 1)[0].replaceAll("`", "") : "", text: text.replace(/[`*|]|^Page: .*$|\]\([^)]*\)/gm, "").replace(/\s+/g, " ") }));
  })).then((all) => all.map((p) => ({ ...p, all: (p.title + p.text).toLowerCase(), squeezed: squeezed((p.title + p.text).toLowerCase()) })));
  const all = await parts, whole = squeezed(search.value.toLowerCase()), wanted = also[whole] ? [whole] : words(search.value);
  const found = wanted.length ? all.filter((p) => wanted.every((w) => has(p, w))) : [];
  // A page named like a word comes first, then a part named like it, then the text, without its programs, that has it most often.
  const rank = new Map(found.map((p) => [p, wanted.reduce((sum, w) => sum + (named(p.title, w) ? 4 : 0) + (named(p.part, w) ? 2 : 0) + Math.min(1, count(p.prose, spelt(p, w)) / 10), wanted.length > 1 && p.squeezed.includes(whole) ? 3 : 0)]));
  found.sort((a, b) => rank.get(b) - rank.get(a));
  const shown = found.filter((p, i) => found.slice(0, i).filter((q) => q.path === p.path).length < 2); // two parts of a page at most
  $("found").textContent = found.length ? String(found.length) : "";
  $("hits").replaceChildren(...shown.slice(0, 12).map((p) => {
    const found = wanted.map((w) => spelt(p, w)), at = Math.max(0, p.text.toLowerCase().indexOf(found[0]) - 40), excerpt = make("small", {});
    excerpt.append(...p.text.slice(at, at + 130).split(new RegExp(`(${found.map(literal).join("|")})`, "i")).map((t, i) => (i % 2 ? make("mark", {}, t) : t)));
    return make("li", {}, make("a", { href: `${p.path}?find=${encodeURIComponent(found.join(" "))}` }, p.part ? `${p.title} › ${p.part}` : p.title, excerpt));
  }));
  if (wanted.length && !found.length) $("hits").append(make("li", { role: "status" }, "No page has all of these words. Try one word, or a shorter one."));
});
search.addEventListener("keydown", (e) => e.key === "Escape" && ((search.value = ""), search.dispatchEvent(new Event("input"))));

// A page that a search has found marks the words, and shows the first.
const sought = words(new URLSearchParams(location.search).get("find") ?? "");
if (sought.length && globalThis.Highlight) {
  const hits = new Highlight(), texts = document.createTreeWalker($("main"), NodeFilter.SHOW_TEXT);
  let first;
  for (let node; (node = texts.nextNode());) {
    for (const word of sought) {
      for (let at = -1; (at = node.data.toLowerCase().indexOf(word, at + 1)) >= 0;) {
        hits.add(new StaticRange({ startContainer: node, startOffset: at, endContainer: node, endOffset: at + word.length }));
        for (let fold = node.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
        if (node.parentElement.checkVisibility() && node.parentElement.tagName !== "H1") first ??= node.parentElement;
      }
    }
  }
  CSS.highlights.set("hit", hits);
  search.value = sought.join(" ");
  first?.scrollIntoView({ block: "center" });
}

form?.addEventListener("submit", async (event) => {
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
    note.textContent = "Paste your key into the form first.";
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
      ...[["Real picks, frozen before their races", real], ["Hindsight, never published: the model of today on past races", hindsight]]
        .flatMap(([title, record]) => [make("h3", {}, title), record.races ? recordTable(record) : make("p", {}, "0 races so far.")]));
    shown.hidden = false;
    note.textContent = "In square brackets are 95 % intervals. Seasons are those of the picks.";
  } catch (err) {
    note.textContent = "No answer: " + err.message;
  }
});


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

// The page of coverage names the facts that a season lacks.
$("year")?.addEventListener("input", () => {
  const year = Number($("year").value), lacking = [];
  for (const row of document.querySelectorAll("#covered [data-from]")) {
    const lacks = year >= 1950 && year < Number(row.dataset.from);
    row.classList.toggle("lacking", lacks);
    if (lacks) lacking.push(row.cells[0].textContent);
  }
  $("lacks").textContent = year < 1950 ? "" : lacking.length ? `${year} lacks: ${lacking.join("; ")}.` : `${year} has every fact of the table.`;
});

// A stacked table of a phone has no head, so each cell after the first begins with its column's.
for (const table of document.querySelectorAll(".stack")) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  for (const row of table.tBodies[0]?.rows ?? []) {
    let column = 0;
    for (const cell of row.cells) {
      if (column && heads[column]) cell.dataset.head = heads[column];
      column += cell.colSpan;
    }
  }
}
