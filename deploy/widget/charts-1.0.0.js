// gridcast charts 1.0.0: <gridcast-progress> draws the championship round by round, <gridcast-odds> the chances of the
// title, <gridcast-forecast> those of the next race, <gridcast-record> how good the frozen picks were, and below them,
// called so, forecasts in hindsight.
//
//   <script type="module" src="https://HOST/widget/charts-1.0.0/gridcast.js" integrity="…" crossorigin="anonymous"></script>
//   <gridcast-progress key="gc_live_…" type="constructors" year="2024"></gridcast-progress>
//
// Each element reads one endpoint, once; after an answer with Retry-After it asks again. Attributes: key, api (default:
// the host of this file), type, year, session_key. With <script type="application/json"> between its tags it draws that
// data and asks nothing. The attribute state is one of loading, ready, none and failed; the content between the tags is
// shown until it is ready.
const HOME = new URL("../../", import.meta.url).href;
const CSS = new CSSStyleSheet();
CSS.replaceSync(`:host{display:block;color-scheme:light dark;font:.9rem/1.4 var(--gridcast-font,system-ui,sans-serif);color:var(--gridcast-text,light-dark(#1b1f24,#e6e9ec))}
:host([hidden]){display:none}svg{width:100%;max-width:40rem;height:auto;display:block;overflow:visible}text{font-size:11px;fill:var(--gridcast-muted,light-dark(#57606a,#9aa4ae))}text.name{fill:currentColor;font-weight:600}@media(max-width:500px){.series text{font-size:15px}}
line{stroke:var(--gridcast-line,light-dark(#d0d7de,#3d444d))}polyline{fill:none;stroke-width:2;stroke-linejoin:round;stroke:var(--team,currentColor)}.second{stroke-dasharray:5 3}.even{stroke-dasharray:4 4}
.range{stroke:var(--gridcast-accent,light-dark(#0b57a4,#79b8ff));stroke-width:4;opacity:.35}circle{fill:var(--gridcast-accent,light-dark(#0b57a4,#79b8ff))}
ol{list-style:none;margin:0;padding:0}li{display:grid;grid-template-columns:minmax(5rem,10rem) 1fr 4rem;gap:.6rem;align-items:center;padding:.15rem 0}li>:last-child{text-align:right;font-variant-numeric:tabular-nums}
.bar{height:.6rem;border-radius:.2rem;background:linear-gradient(90deg,var(--gridcast-accent,light-dark(#0b57a4,#79b8ff)) var(--part),var(--gridcast-line,light-dark(#e4e8ec,#2b3138)) 0)}
p{margin:.4rem 0 0;color:var(--gridcast-muted,light-dark(#57606a,#9aa4ae))}.record{color:inherit}.record+svg{max-width:24rem}`);
const NAMESPACE = Object.assign(document.createElement("template"), { innerHTML: "<svg/>" }).content.firstChild.namespaceURI;
const SVG = new Set(["svg", "line", "polyline", "circle", "text", "title"]);
const make = (name, attributes = {}, ...children) => {
  const e = SVG.has(name) ? document.createElementNS(NAMESPACE, name) : document.createElement(name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  e.append(...children.map(String).map((text, i) => (children[i] instanceof Node ? children[i] : text)));
  return e;
};
const pct = (value) => value.toFixed(1) + " %";

class Chart extends HTMLElement {
  static observedAttributes = ["key", "api", "type", "year", "session_key"];
  #run = 0;
  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [CSS];
    this.body = root.appendChild(make("div", {}, make("slot")));
  }
  connectedCallback() {
    this.#load();
  }
  disconnectedCallback() {
    this.#run++;
  }
  attributeChangedCallback(name, old, value) {
    if (old !== value && this.isConnected) this.#load();
  }
  async #load() {
    const run = ++this.#run;
    this.setAttribute("state", "loading");
    try {
      const data = await this.#data();
      if (run !== this.#run) return;
      const drawn = data && this.draw(data);
      if (drawn) this.body.replaceChildren(...drawn);
      this.setAttribute("state", drawn ? "ready" : "none");
    } catch (fault) {
      if (run !== this.#run) return;
      console.error(`gridcast: <${this.localName}> has no data: ${fault.message}`);
      this.setAttribute("state", "failed");
      if (fault.wait) setTimeout(() => run === this.#run && this.#load(), fault.wait * 1e3);
    }
  }
  async #data() {
    const built = this.querySelector('script[type="application/json"]');
    if (built) return JSON.parse(built.textContent);
    const url = new URL("api/v1/" + this.endpoint, new URL(this.getAttribute("api") ?? HOME, location.href));
    for (const name of ["type", "year", "session_key"]) if (this.hasAttribute(name)) url.searchParams.set(name, this.getAttribute(name));
    const answer = await fetch(url, { headers: { "X-API-Key": this.getAttribute("key") ?? "" }, credentials: "omit", signal: AbortSignal.timeout(15e3) });
    const body = await answer.json();
    if (!body.ok) throw Object.assign(new Error(`${answer.status}: ${body.message}`), { wait: answer.headers.get("Retry-After") });
    return body.data;
  }
}

// bars are rows of a name, a bar and a share in percent.
const bars = (rows) => make("ol", {}, ...rows.map(([name, value]) => {
  const bar = make("span", { class: "bar" });
  bar.style.setProperty("--part", value + "%");
  return make("li", {}, make("span", {}, name), bar, make("span", {}, pct(value)));
}));

// plot draws lines { name, team, colour, points: [[round, value], …] }, the highest last value first, up to most.
function plot(lines, most, unit, title) {
  const rounds = Math.max(...lines.map((l) => l.points.at(-1)[0])), left = 40, width = 540;
  const label = (l) => `${l.name} ${l.points.at(-1)[1]}${unit}`, right = width - 8 - 9.4 * Math.max(...lines.map((l) => label(l).length)); // no name is cut
  const x = (round) => left + ((round - 1) / Math.max(rounds - 1, 1)) * (right - left), y = (value) => 250 - (value / most) * 235;
  const svg = make("svg", { class: "series", viewBox: `0 0 ${width} 275`, role: "img", "aria-label": `${title} after round ${rounds}: ${lines.map(label).join(", ")}` });
  const ten = 10 ** Math.floor(Math.log10(most)), step = ten / (most >= 4 * ten ? 1 : most >= 2 * ten ? 2 : 4);
  for (let v = 0; v <= most; v += step) svg.append(make("line", { x1: left, x2: right, y1: y(v), y2: y(v) }), make("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, v));
  for (let r = 1; r <= rounds; r += Math.ceil(rounds / 8)) svg.append(make("text", { x: x(r), y: 270, "text-anchor": "middle" }, r));
  const teams = new Set();
  let above = -Infinity; // no two names overlap
  for (const l of lines) {
    const line = make("polyline", { points: l.points.map(([round, value]) => `${x(round)},${y(value)}`).join(" "), class: teams.has(l.team) ? "second" : "" }, make("title", {}, label(l)));
    if (l.colour) line.style.setProperty("--team", l.colour);
    if (l.team) teams.add(l.team);
    above = Math.max(y(l.points.at(-1)[1]), above + 15);
    svg.append(line, make("text", { class: "name", x: right + 6, y: above + 4 }, label(l)));
  }
  return svg;
}

class Progress extends Chart {
  endpoint = "standings-progress";
  draw(all) {
    const lines = all.slice(0, 8).map((d) => ({ name: d.driver ?? d.team, team: d.team, colour: d.team_colour, points: d.rounds.map((r) => [r.round, r.points]) }));
    return lines.length && [plot(lines, Math.max(...lines.map((l) => l.points.at(-1)[1]), 1), "", "Points")];
  }
}

class Odds extends Chart {
  endpoint = "title-odds";
  draw({ races_counted: counted, races_remaining: left, after_rounds: rounds = [], ...odds }) {
    const kind = this.getAttribute("type") === "constructors" ? "constructors" : "drivers", all = odds[kind], name = (d) => d.driver ?? d.team;
    // The lines end with the odds as they are now, which know the next weekend and come from more simulations.
    const stages = rounds.length ? [...(left ? rounds.slice(0, -1) : rounds), odds] : [], first = counted - stages.length + 1;
    const shares = new Map();
    stages.forEach((s, i) => s[kind].forEach((d) => shares.set(name(d), (shares.get(name(d)) ?? new Array(stages.length).fill(0)).with(i, d.title_pct))));
    const lines = [...shares].filter(([, values]) => Math.max(...values) >= 5).sort(([, a], [, b]) => b.at(-1) - a.at(-1)).slice(0, 6)
      .map(([name, values], i) => ({ name, colour: `light-dark(hsl(${210 + 67 * i} 70% 38%), hsl(${210 + 67 * i} 75% 70%))`, points: values.map((value, i) => [first + i, value]) }));
    return all.length && [...(stages.length > 1 && lines.length ? [plot(lines, 100, " %", "Chances of the title")] : []), bars(all.slice(0, 6).map((d) => [d.name ?? d.team, d.title_pct])), make("p", {}, left ? `${left} race${left > 1 ? "s" : ""} to come` : "The season is decided.")];
  }
}

class Forecast extends Chart {
  endpoint = "forecast";
  draw([race]) {
    return race && [bars(race.drivers.slice(0, 6).map((d) => [d.name ?? d.driver, d.win_pct])), make("p", {}, `Chances of winning, from ${race.basis}: a forecast, which may change until the start`)];
  }
}

// Record shows the picks that were frozen before their races, and below them, under the word hindsight, forecasts that
// nobody published in time.
class Record extends Chart {
  endpoint = "track-record";
  draw({ real, hindsight }) {
    const parts = this.record("Picks frozen before their races", real);
    return hindsight.races ? [...parts, ...this.record("Hindsight, never published: today’s model on past races", hindsight)] : parts;
  }
  record(title, { races, picks, reliability: bins = [] }) {
    const said = ({ value, low, high }) => `${pct(value)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
    const text = `${title}: ${races} race${races === 1 ? "" : "s"}` + (picks ? `, winner picked ${said(picks.winner_hit_pct)}, podium ${said(picks.podium_pct)}` : " so far"), line = make("p", { class: "record" }, text);
    if (!bins.length) return [line];
    const x = (p) => 34 + p * 2.2, y = (p) => 234 - p * 2.2;
    const svg = make("svg", { viewBox: "0 0 270 275", role: "img", "aria-label": text });
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

for (const [name, element] of Object.entries({ progress: Progress, odds: Odds, forecast: Forecast, record: Record })) customElements.get("gridcast-" + name) ?? customElements.define("gridcast-" + name, element);
