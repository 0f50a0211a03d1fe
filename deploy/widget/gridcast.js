// The widget: the season as custom elements: <gridcast-next>, <gridcast-live>, <gridcast-standings>,
// <gridcast-driver>, <gridcast-season>, and the charts <gridcast-progress>, <gridcast-odds>, <gridcast-forecast>,
// <gridcast-record>. /docs/widget describes them.
//
//   <script type="module" src="https://HOST/widget/1.3.1/gridcast.js" integrity="…" crossorigin="anonymous"></script>
//   <gridcast-next key="gc_live_…">The next race: see /calendar.ics</gridcast-next>
//
// The elements of a page share each answer. The text between the tags is shown until there is data.
const HOME = new URL("../../", import.meta.url).href;
const MINUTE = 60e3;
const CSS = new CSSStyleSheet();
CSS.replaceSync(`:host{--_t:var(--gridcast-text,light-dark(#1b1f24,#e6e9ec));--_b:var(--gridcast-background,light-dark(#fff,#14171a));--_l:var(--gridcast-line,light-dark(#d0d7de,#3d444d));--_m:var(--gridcast-muted,light-dark(#57606a,#9aa4ae));--_a:var(--gridcast-accent,light-dark(#b3261e,#ff8a80));
display:block;color-scheme:light dark;font:1rem/1.4 var(--gridcast-font,system-ui,sans-serif);color:var(--_t)}
:host([hidden]),h2:empty,p:empty{display:none}
h2{font-size:1.1rem;margin:0}p{margin:.25rem 0}.muted,th{color:var(--_m);font-size:.875rem}
.clock{font-size:1.6rem;font-weight:600;font-variant-numeric:tabular-nums;margin:.5rem 0}
.live::before{content:"";display:inline-block;width:.6em;height:.6em;margin-right:.4em;border-radius:50%;background:var(--_a)}
@media (prefers-reduced-motion:no-preference){.live::before{animation:p 1.5s infinite}}@keyframes p{50%{opacity:.3}}
table{border-collapse:collapse;width:100%;margin-top:.5rem}td,th{padding:.2rem .6rem .2rem 0;text-align:left;font-weight:400;vertical-align:top}td{border-top:1px solid var(--_l)}
:is(td,th):nth-child(n+3),.n :is(td,th):nth-child(n+2){text-align:right;font-variant-numeric:tabular-nums}.n{table-layout:fixed}:is(td,th):last-child{padding-right:0}.team{display:block}
.driver[style]{border-left:.25em solid var(--team);padding-left:.3em}
.bar{display:block;background:linear-gradient(90deg,var(--_a) var(--part),var(--_l) 0) 0/100% .6em no-repeat}td>.bar{min-width:6.5rem;background-position:0;background-size:calc(100% - 4.4rem) .6em}
svg{display:block;max-width:100%;overflow:visible}text{font-size:.75rem;fill:var(--_m)}.end{fill:var(--_t);font-weight:600}line{stroke:var(--_l)}polyline{fill:none;stroke-width:2;stroke-linejoin:round;stroke:var(--team,var(--_t))}.second{stroke-dasharray:5 3}.even{stroke-dasharray:4 4}
.range{stroke:var(--_a);stroke-width:4;opacity:.35}circle{fill:var(--_a)}
ol{list-style:none;margin:0;padding:0}li{display:grid;grid-template-columns:minmax(5rem,10rem) 1fr 4.5rem;gap:.6rem;align-items:center;padding:.15rem 0}li>.bar{height:.6em}li>:last-child{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
@media (forced-colors:active){.driver,.bar,svg{forced-color-adjust:none}:host{--_t:CanvasText;--_m:CanvasText;--_l:GrayText;--_a:Highlight}polyline{stroke:CanvasText}}`);
const BOX = new CSSStyleSheet();
BOX.replaceSync(`:host{background:var(--_b);border:1px solid var(--_l);border-radius:var(--gridcast-radius,.5rem);padding:1rem;max-width:26rem}`);
const NAMESPACE = Object.assign(document.createElement("template"), { innerHTML: "<svg/>" }).content.firstChild.namespaceURI;
const SVG = /^(svg|line|polyline|circle|text|title)$/;
const make = (name, attributes, ...children) => {
  const e = SVG.test(name) ? document.createElementNS(NAMESPACE, name) : document.createElement(name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  e.append(...children.filter((c) => c != null));
  return e;
};
const muted = (...text) => make("p", { class: "muted" }, ...text);
const pct = (value) => value.toFixed(1) + " %";
const bar = (value, text) => {
  const e = make("span", { class: "bar", part: "bar" }, text);
  e.style.setProperty("--part", value + "%");
  return e;
};
// table has a row of heads, and rows of cells. Its kind n has numbers from the second column on.
const table = (heads, rows, kind = "") => make("table", { part: "table", class: kind }, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
  make("tbody", {}, ...rows.map((cells) => make("tr", { part: "row" }, ...cells.map((cell) => make("td", {}, cell))))));
// who is a name with the colour of its team.
const who = (text, of, ...more) => {
  const e = make("span", { class: "driver", part: "driver" }, text, ...more);
  if (of?.team) e.title = of.team;
  if (of?.team_colour) e.style.setProperty("--team", of.team_colour);
  return e;
};
const when = (instant) => new Date(instant).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// Answers by key and address, and the end of each key's pause after a 429. All elements of the page share them.
const answers = new Map(), pauses = new Map();
const NOTES = { offline: "No connection.", unavailable: "The service does not answer.", limited: "Too many requests.", "bad-key": "No longer updated.", failed: "No longer updated." };

// ask returns the answer of an address. It sends no request for as long as the last answer may be kept. Its error has the
// state, and the milliseconds to wait.
function ask(url, key, name) {
  const id = key + " " + url, now = performance.now(), kept = answers.get(id) ?? { fresh: 30 };
  answers.set(id, kept);
  if (kept.at + 1e3 * kept.fresh > now) return kept;
  return kept.pending ??= send(url, key, kept, name).finally(() => delete kept.pending);
}
async function send(url, key, kept, name) {
  const wait = pauses.get(key + url.origin) - performance.now();
  if (wait > 0) throw { state: "limited", wait };
  const headers = key ? { "X-API-Key": key } : {};
  if (kept.tag) headers["If-None-Match"] = kept.tag;
  const r = await fetch(url, { headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(15e3) });
  const pause = r.headers.get("Retry-After"), later = { wait: Math.max(1e3, 1e3 * pause || Date.parse(pause) - Date.now() || MINUTE) };
  if (r.status === 429) {
    pauses.set(key + url.origin, performance.now() + later.wait);
    throw { state: "limited", ...later };
  }
  if (r.status >= 500) throw { state: "unavailable", ...later };
  const body = r.status === 304 ? kept.body : await r.json().catch(() => ({}));
  if (r.status !== 304 && r.status !== 404 && !r.ok) {
    const refused = r.status === 401 || r.status === 403;
    console.error(`gridcast: ${refused ? "the key of " : ""}<${name}> is refused on ${location.origin} (${r.status}: ${body.message}). Readers see the text between its tags, or the last data. ` + (refused ? `Put a valid key into its attribute key: gridcast keys list shows keys and their origins, gridcast keys create --origin ${location.origin} makes one for this page.` : "Correct its attributes."));
    throw { state: refused ? "bad-key" : "failed", wait: 10 * MINUTE };
  }
  const date = Date.parse(r.headers.get("Date")), near = Math.abs(date - Date.now()) < MINUTE; // a cache's answer may be some seconds old
  return Object.assign(kept, {
    body: r.status === 404 ? null : body, tag: r.headers.get("ETag"), at: performance.now(), now: 1e3 * r.headers.get("X-Gridcast-Clock") || (!near && date) || Date.now(), simulated: r.headers.has("X-Gridcast-World"),
    fresh: /max-age=(\d+)/.exec(r.headers.get("Cache-Control"))?.[1] ?? kept.fresh, // seconds
    spare: !(2 * r.headers.get("X-RateLimit-Remaining") < r.headers.get("X-RateLimit-Limit")), // the key has half of its requests left
  });
}

class Element extends HTMLElement {
  static observedAttributes = ["key", "api", "type", "year", "session_key", "driver", "rows"];
  every = 5 * MINUTE; // between two questions
  #timer;
  #again = 0; // the earliest next question
  #asked = 0;
  #run = 0;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = this.plain ? [CSS] : [CSS, BOX];
    root.append(this.head = make("h2", { part: "name" }), this.note = make("p", { class: "muted", role: "status", part: "status" }), this.main = make("div", {}, make("slot")));
    this.wake = () => this.#poll();
  }
  connectedCallback() {
    this.#run++;
    this.#again = 0;
    this.shown = this.fault = this.words = undefined;
    this.state = "loading";
    this.setAttribute("state", this.state);
    document.addEventListener("visibilitychange", this.wake);
    this.ticking ??= this.tick && setInterval(() => this.tick(), 1000);
    this.#poll();
  }
  disconnectedCallback() {
    this.#run++;
    document.removeEventListener("visibilitychange", this.wake);
    clearInterval(this.ticking);
    clearTimeout(this.#timer);
    this.ticking = undefined;
  }
  attributeChangedCallback(name, old, value) {
    if (old !== value && this.state && this.isConnected) this.connectedCallback();
  }
  // say sets the attribute state, and the words that a screen reader announces when they change. A fault stands before both.
  say(state = this.state, words = this.words) {
    const { fault, shown } = this;
    this.state = state;
    this.words = words;
    if (this.getAttribute("state") !== (fault ?? state)) this.setAttribute("state", fault ?? state);
    const text = [this.kept?.simulated && "Simulated, not a real race.", words, fault && (shown || !/key|failed/.test(fault)) && NOTES[fault], fault && shown && `As of ${when(shown)}.`].filter(Boolean).join(" ");
    if (this.note.textContent !== text) this.note.textContent = text;
  }
  show(state, words, title, ...nodes) {
    this.head.textContent = title;
    this.main.replaceChildren(...nodes.filter(Boolean));
    this.say(state, words);
  }
  // soon brings the next question forward.
  soon() {
    const { fresh, spare } = this.kept ?? {};
    if (!spare || this.hurried) return;
    this.hurried = true;
    this.#again = Math.min(this.#again, this.#asked + 1e3 * fresh + 1e3 + Math.random() * 5e3);
    this.#poll();
  }
  // poll asks, shows, and sets the time of the next question. A hidden page asks nothing.
  async #poll() {
    clearTimeout(this.#timer);
    const early = this.#again - performance.now(), run = this.#run;
    if (early > 0) this.#timer = setTimeout(this.wake, early);
    if (early > 0 || document.hidden) return;
    this.#asked = performance.now();
    this.#again = this.#asked + MINUTE; // while it asks
    this.hurried = false;
    const built = this.querySelector('script[type="application/json"]');
    let draw, fault;
    try {
      draw = built ? () => this.draw(JSON.parse(built.textContent)) : await this.load();
    } catch (error) {
      fault = error;
    }
    if (run !== this.#run) return;
    this.fault = fault && (fault.state ?? "offline");
    if (fault) this.say();
    else {
      if (!built) this.shown = this.kept.now;
      draw();
    }
    if (built) return;
    const wait = fault ? (fault.wait ?? MINUTE) : this.every;
    this.#again = performance.now() + wait;
    this.#timer = setTimeout(this.wake, wait + Math.random() * 2e3);
  }
  // get returns the envelope of a path, null where there is nothing.
  async get(path) {
    const url = new URL("api/v1/" + path, new URL((this.getAttribute("api") ?? HOME).replace(/\/?$/, "/"), location.href));
    this.kept = await ask(url, this.getAttribute("key") ?? "", this.localName);
    return this.kept.body;
  }
  // path adds the attributes of these names as parameters.
  path(path, ...names) {
    const query = new URLSearchParams(names.filter((n) => this.getAttribute(n)).map((n) => [n, this.getAttribute(n)]));
    return query.size ? path + "?" + query : path;
  }
  // overview returns the overview of the season, with its drivers by their codes.
  async overview() {
    const season = (await this.get(this.path("overview", "year")))?.data ?? { rounds: [], drivers: [], team_mates: [] };
    this.drivers = Object.fromEntries(season.drivers.map((d) => [d.driver, d]));
    return season;
  }
  // called is the driver of a code with a name of this kind.
  called(code, kind, ...more) {
    const d = this.drivers[code];
    return who(d?.[kind] ?? code, d, ...more);
  }
  limit(rows, most) {
    return rows.slice(0, parseInt(this.getAttribute("rows")) || most);
  }
}

// What the calendar says of rounds before the next race.
const MISSING = { awaiting_result: "the result is awaited", postponed: "postponed", cancelled: "cancelled" };

class Next extends Element {
  every = MINUTE;
  async load() {
    const { rounds } = await this.overview(), { now, at } = this.kept;
    return () => {
      const live = rounds.find((e) => e.status === "live"), start = (e) => Date.parse(e.date_start ?? e.date + "T13:00Z");
      this.zero = now - at;
      this.race = live ?? rounds.find((e) => e.status === "scheduled" && start(e) > now);
      this.start = this.race && start(this.race);
      this.#show(rounds.slice(rounds.findLastIndex((e) => e.status === "finished") + 1).filter((e) => MISSING[e.status] && !(e.date > this.race?.date)));
    };
  }
  #show(missing) {
    const race = this.race, live = race?.status === "live", notes = missing.map((e) => make("p", { class: "muted", part: "notice" }, `${e.gp_name}: ${MISSING[e.status]}.`));
    this.clock = race && make("div", { class: live ? "clock live" : "clock", role: "timer", "aria-label": "Time to the start", part: "clock" });
    if (!race) return this.show("none", "", "No race is scheduled.", ...notes);
    const pick = race.prediction;
    this.show(undefined, "", race.gp_name, muted(`${race.circuit}, ${race.country}`), this.clock,
      muted(race.date_start ? when(race.date_start) + " your time" : new Date(race.date).toLocaleDateString([], { dateStyle: "long", timeZone: "UTC" }) + ", the hour is not known yet"),
      pick && make("p", { part: "pick" }, "Pick: ", this.called(pick.winner, "name"), ` (${pct(pick.confidence_pct)})`,
        ...["p2", "p3"].flatMap((place, i) => pick.podium[place] ? [i ? " and " : ", then ", this.called(pick.podium[place], "name")] : [])), ...notes);
    this.tick();
  }
  tick() {
    const { race, clock } = this;
    if (!race) return;
    const live = race.status === "live", left = live ? 0 : Math.max(0, Math.round((this.start - this.zero - performance.now()) / 1e3)), two = (n) => String(Math.floor(n)).padStart(2, "0");
    clock.textContent = live ? "Live" : left === 0 ? "Starting" : !race.date_start ? `${Math.ceil(left / 86400)} d` :
      (left >= 86400 ? `${Math.floor(left / 86400)} d ` : "") + `${two((left / 3600) % 24)}:${two((left / 60) % 60)}:${two(left % 60)}`;
    this.say(live ? "live" : left === 0 ? "starting" : "counting");
    if (left === 0 && !live && !this.fault) this.soon();
  }
}

class Season extends Element {
  async load() {
    const picks = (await this.overview()).rounds.filter((r) => r.prediction);
    return () => {
      const scored = picks.filter((p) => p.winner), hit = (p) => p.winner === p.prediction.winner, said = (code, ...more) => this.called(code, "last_name", ...more);
      this.show("ready", "", scored.length ? `${scored.filter(hit).length} of ${scored.length} winners picked` : "No race is scored yet",
        picks.length && table(["Race", "Pick", "Winner"], picks.map((p) => [p.gp_name.replace(" Grand Prix", ""), said(p.prediction.winner, p.winner ? hit(p) ? "\xa0✓" : "\xa0✗" : ""), p.winner ? hit(p) ? "hit" : said(p.winner) : "no result yet"])));
    };
  }
}

class Standings extends Element {
  async load() {
    const all = (await this.get(this.path("standings", "type", "year")))?.data ?? [];
    return () => this.show(all.length ? "ready" : "none", all.length ? "" : "No round of this season has a result yet.", (this.getAttribute("type") === "constructors" ? "Constructors’" : "Drivers’") + " championship",
      all.length && table(["Place", all[0].name ? "Driver" : "Team", "Wins", "Points"], this.limit(all, 99).map((d) => [d.position ?? "–", who(d.name ?? d.team, d, d.name ? make("span", { class: "muted team" }, d.team) : d.engine && ` ${d.engine}`), d.wins, d.points])));
  }
}

class Driver extends Element {
  async load() {
    const code = this.getAttribute("driver")?.toUpperCase(), { season, drivers, team_mates: pairs } = await this.overview(), d = this.drivers[code];
    return () => {
      if (!d) {
        console.error(`gridcast: <gridcast-driver> has no driver "${code ?? ""}" in ${season}. Its attribute driver takes a code: ${drivers.map((d) => d.driver).join(", ")}.`);
        return this.show("none", "", "", make("slot"));
      }
      const { standing: row, career } = d, facts = (title, of) => of && [title, ...["wins", "podiums", "points"].map((n) => of[n])], { titles = 0 } = career ?? {};
      this.show("ready", "", d.name, make("p", {}, who(d.team, d), d.number && ` · number ${d.number}`, d.country && ` · ${d.country}`),
        muted(!row ? "No result in this season yet" : row.position ? `Place ${row.position} of the championship` : "Not ranked in the championship", career && `. ${career.starts} starts, ${titles} title${titles === 1 ? "" : "s"}.`),
        (row || career) && table(["Period", "Wins", "Podiums", "Points"], [facts(season, row), facts("Career", career)].filter(Boolean), "n"),
        ...pairs.flatMap((p) => {
          const [own, other] = p.first.driver === code ? [p.first, p.second] : p.second.driver === code ? [p.second, p.first] : [];
          const gap = p.median_gap_ms * (own === p.first ? -1 : 1);
          return own ? [table(["Head to head", code, other.driver], [["Qualifying", own.qualifying_ahead, other.qualifying_ahead], ["Race", own.race_ahead, other.race_ahead], ["Points", own.points, other.points]], "n"),
            muted(`Against ${other.name}, ${p.team}`, gap && `: a median of ${Math.abs(gap / 1e3).toFixed(3)} s ${gap < 0 ? "faster" : "slower"} in qualifying`)] : [];
        }));
    };
  }
}

class Live extends Element {
  async load() {
    const race = (await this.get("live"))?.data ?? {}, { kept } = this, verified = race.state === "over" && !race.provisional;
    return () => {
      this.stale = kept.at + Date.parse(race.valid_until) - kept.now;
      this.race = race;
      this.every = /none|over/.test(race.state ?? "none") ? 2 * MINUTE : MINUTE;
      const last = race.result?.revisions.at(-1), at = last ? " on " + when(last.at) : "", order = race.order ?? [], out = order.filter((d) => d.status === "disqualified");
      this.states = {
        none: ["none", ""],
        waiting: ["waiting", "Waiting for the first lap. The order is that of the grid."],
        running: ["running", "The race is running."],
        suspended: ["suspended", "The race is suspended: red flag."],
        over: !verified ? ["over", "Finished. Provisional until the result is verified."] : last?.revision > 1 ? ["revised", `Result revised${at}${last.reason ? ": " + last.reason.replace(/\.?$/, ".") : "."}`] : ["verified", `Result verified${at}.`],
      }[race.state ?? "none"] ?? [race.state, race.state];
      this.show(...this.states, race.gp_name ?? "No race is running",
        race.lap && !verified && muted(`Lap ${race.lap}${race.laps ? " of " + race.laps : ""}, seen ${new Date(race.observed_at).toLocaleTimeString()}${race.by_hand ? " by hand" : ""}`),
        order.length && table(["Place", "Driver", ...(verified ? ["Points"] : ["Gap", "Chance"])], this.limit(order, 10).map((c) => {
          const gap = c.gap_laps ? `${c.gap_laps} lap${c.gap_laps > 1 ? "s" : ""}` : c.gap_ms && (c.gap_ms / 1e3).toFixed(1), name = who(c.name ?? c.driver, c);
          return verified ? [c.position ?? "–", name, c.position ? c.points : c.status?.replaceAll("_", " ")] : [c.position ?? "out", name, gap ? "+" + gap : "", c.win_pct != null ? bar(c.win_pct, pct(c.win_pct)) : c.points];
        })),
        out.length && make("p", { part: "notice" }, "Disqualified: " + out.map((d) => d.name + (d.reason ? ` (${d.reason})` : "")).join(", ")));
      this.tick();
    };
  }
  tick() {
    const state = this.race?.state, late = performance.now() > this.stale;
    if (state !== "running" && state !== "suspended") return;
    this.say(late ? "stale" : state, this.states[1] + (late ? ` Nothing new since ${when(this.race.observed_at)}: the order may be old.` : ""));
    this.soon();
  }
}

// A chart draws the data of one endpoint, or those between its tags.
class Chart extends Element {
  get plain() {
    return true;
  }
  async load() {
    const answer = await this.get(this.path(this.endpoint, "type", "year", "session_key"));
    return () => this.draw(answer?.data);
  }
  draw(data) {
    this.data = data;
    this.drawn = this.clientWidth;
    const nodes = data && this.nodes(data);
    this.show(nodes ? "ready" : "none", "", "", ...(nodes || [make("slot")]));
    if (this.sized) return;
    // Letters keep their size, so a box of another width needs another drawing.
    this.sized = new ResizeObserver(() => this.clientWidth === this.drawn || this.draw(this.data));
    this.sized.observe(this);
  }
  // plot draws lines { name, team, colour, points: [[round, value], …] }, the highest last value first, up to most.
  plot(lines, most, unit, title) {
    const style = getComputedStyle(document.documentElement), size = 0.75 * parseFloat(style.fontSize), ink = document.createElement("canvas").getContext("2d");
    ink.font = `600 ${size}px ${getComputedStyle(this).fontFamily}`;
    const label = (l) => `${l.name} ${l.points.at(-1)[1]}${unit}`, width = Math.max(240, Math.min(this.drawn, 640)), left = 3.2 * size;
    const right = width - 8 - Math.max(...lines.map((l) => ink.measureText(label(l)).width)), rounds = Math.max(...lines.map((l) => l.points.at(-1)[0])); // no name is cut
    const x = (round) => left + ((round - 1) / Math.max(rounds - 1, 1)) * (right - left), y = (value) => 250 - (value / most) * 235;
    const svg = make("svg", { class: "series", width, height: 275, role: "img", "aria-label": `${title} after round ${rounds}: ${lines.map(label).join(", ")}` });
    const ten = 10 ** Math.floor(Math.log10(most)), step = ten / (most >= 4 * ten ? 1 : most >= 2 * ten ? 2 : 4);
    for (let v = 0; v <= most; v += step) svg.append(make("line", { x1: left, x2: right, y1: y(v), y2: y(v) }), make("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, v));
    for (let r = 1; r <= rounds; r += Math.ceil((rounds * 3 * size) / (right - left))) svg.append(make("text", { x: x(r), y: 270, "text-anchor": "middle" }, r));
    const teams = new Set(), high = 1.25 * size, at = [];
    lines.forEach((l, i) => (at[i] = Math.max(y(l.points.at(-1)[1]) + 4, (at[i - 1] ?? 0) + high))); // no two names overlap
    for (let i = lines.length; i--; ) at[i] = Math.min(at[i], (at[i + 1] ?? 254 + high) - high); // nor the numbers below
    for (const [i, l] of lines.entries()) {
      const line = make("polyline", { points: l.points.map(([round, value]) => `${x(round)},${y(value)}`).join(" "), class: teams.has(l.team) ? "second" : "" }, make("title", {}, label(l)));
      if (l.colour) line.style.setProperty("--team", l.colour);
      if (l.team) teams.add(l.team);
      svg.append(line, make("text", { class: "end", x: right + 6, y: at[i] }, label(l)));
    }
    return svg;
  }
  bars(rows) {
    return make("ol", {}, ...rows.map(([name, value]) => make("li", {}, make("span", {}, name), bar(value), make("span", {}, pct(value)))));
  }
}

class Progress extends Chart {
  endpoint = "standings-progress";
  nodes(all) {
    const lines = all.slice(0, 8).map((d) => ({ name: d.driver ?? d.team, team: d.team, colour: d.team_colour, points: d.rounds.map((r) => [r.round, r.points]) }));
    return lines.length && [this.plot(lines, Math.max(...lines.map((l) => l.points.at(-1)[1]), 1), "", "Points")];
  }
}

class Odds extends Chart {
  endpoint = "title-odds";
  nodes({ races_counted: counted, races_remaining: left, after_rounds: rounds = [], ...odds }) {
    const kind = this.getAttribute("type") === "constructors" ? "constructors" : "drivers", all = odds[kind], name = (d) => d.driver ?? d.team;
    // The lines end with the odds as they are now, which know the next weekend and come from more simulations.
    const stages = rounds.length ? [...(left ? rounds.slice(0, -1) : rounds), odds] : [], first = counted - stages.length + 1;
    const shares = new Map();
    stages.forEach((s, i) => s[kind].forEach((d) => shares.set(name(d), (shares.get(name(d)) ?? new Array(stages.length).fill(0)).with(i, d.title_pct))));
    const lines = [...shares].filter(([, values]) => Math.max(...values) >= 5).sort(([, a], [, b]) => b.at(-1) - a.at(-1)).slice(0, 6)
      .map(([name, values], i) => ({ name, colour: `light-dark(hsl(${210 + 67 * i} 70% 38%), hsl(${210 + 67 * i} 75% 70%))`, points: values.map((value, i) => [first + i, value]) }));
    return all.length && [stages.length > 1 && lines.length && this.plot(lines, 100, " %", "Chances of the title"), this.bars(all.slice(0, 6).map((d) => [d.name ?? d.team, d.title_pct])), muted(left ? `${left} race${left > 1 ? "s" : ""} to come` : "The season is decided.")];
  }
}

class Forecast extends Chart {
  endpoint = "forecast";
  nodes([race]) {
    return race && [this.bars(race.drivers.slice(0, 6).map((d) => [d.name ?? d.driver, d.win_pct])), muted(`Chances of winning, from ${race.basis}: a forecast, which may change until the start`)];
  }
}

// Record shows the picks that were frozen before their races, and below them, under the word hindsight, forecasts that
// nobody published in time.
class Record extends Chart {
  endpoint = "track-record";
  nodes({ real, hindsight }) {
    const parts = this.record("Picks frozen before their races", real);
    return hindsight.races ? [...parts, ...this.record("Hindsight, never published: today’s model on past races", hindsight)] : parts;
  }
  record(title, { races, picks, reliability: bins = [] }) {
    const said = ({ value, low, high }) => `${pct(value)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
    const text = `${title}: ${races} race${races === 1 ? "" : "s"}` + (picks ? `, winner picked ${said(picks.winner_hit_pct)}, podium ${said(picks.podium_pct)}` : " so far"), line = make("p", {}, text);
    if (!bins.length) return [line];
    const x = (p) => 34 + p * 2.2, y = (p) => 234 - p * 2.2;
    const svg = make("svg", { width: 270, height: 275, role: "img", "aria-label": text });
    for (let p = 0; p <= 100; p += 25) svg.append(make("line", { x1: x(0), x2: x(100), y1: y(p), y2: y(p) }), make("text", { x: 28, y: y(p) + 4, "text-anchor": "end" }, p), make("text", { x: x(p), y: 250, "text-anchor": "middle" }, p));
    svg.append(make("line", { class: "even", x1: x(0), y1: y(0), x2: x(100), y2: y(100) }));
    for (const b of bins) {
      svg.append(make("line", { class: "range", x1: x(b.said_pct), x2: x(b.said_pct), y1: y(b.low_pct), y2: y(b.high_pct) }),
        make("circle", { cx: x(b.said_pct), cy: y(b.won_pct), r: 4 }, make("title", {}, `${b.races} races: ${pct(b.said_pct)} said, ${pct(b.won_pct)} won`)));
    }
    svg.append(make("text", { x: x(50), y: 270, "text-anchor": "middle" }, "chance given, % → races won, %"));
    return [line, svg];
  }
}

for (const [name, element] of Object.entries({ next: Next, live: Live, standings: Standings, driver: Driver, season: Season, progress: Progress, odds: Odds, forecast: Forecast, record: Record })) customElements.get("gridcast-" + name) ?? customElements.define("gridcast-" + name, element);
