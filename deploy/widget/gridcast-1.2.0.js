// gridcast widget 1.2.0: <gridcast-next> counts down to the next race and shows the pick,
// <gridcast-season> lists the picks of a season with hits and misses, <gridcast-live> shows the running race.
//
//   <script type="module" src="https://HOST/widget/1.2.0/gridcast.js" integrity="…" crossorigin="anonymous"></script>
//   <gridcast-next key="gc_live_…">The next race: see /calendar.ics</gridcast-next>
//
// Attributes: key (required), api (default: where this file is from), year (season alone). The content
// between the tags is shown until there is data. The attribute state is one of loading, counting,
// starting, live, none, ready, offline, limited, bad-key, stale and the states of /live. The console
// of the browser tells of a refused key. The widget asks once a
// minute, and around a race as answers change, while the key has half of its requests left.
const HOME = new URL("../../", import.meta.url).href;
const MINUTE = 60e3;
const CSS = new CSSStyleSheet();
CSS.replaceSync(`:host{display:block;color-scheme:light dark;font:1rem/1.4 var(--gridcast-font,system-ui,sans-serif);
color:var(--gridcast-text,light-dark(#1b1f24,#e6e9ec));background:var(--gridcast-background,light-dark(#fff,#14171a));
border:1px solid var(--gridcast-line,light-dark(#d0d7de,#3d444d));border-radius:var(--gridcast-radius,.5rem);padding:1rem;max-width:26rem}
:host([hidden]){display:none}h2{font-size:1.1rem;margin:0}p{margin:.25rem 0}
.muted{color:var(--gridcast-muted,light-dark(#57606a,#9aa4ae));font-size:.875rem}
.clock{font-size:1.6rem;font-weight:600;font-variant-numeric:tabular-nums;margin:.5rem 0}
.clock.live::before{content:"";display:inline-block;width:.6em;height:.6em;margin-right:.4em;border-radius:50%;background:var(--gridcast-accent,light-dark(#b3261e,#ff8a80))}
@media (prefers-reduced-motion:no-preference){.clock.live::before{animation:p 1.5s infinite}}@keyframes p{50%{opacity:.3}}
ol{list-style:none;margin:.5rem 0 0;padding:0}li{display:flex;justify-content:space-between;gap:1rem;padding:.2rem 0;border-top:1px solid var(--gridcast-line,light-dark(#d0d7de,#3d444d))}li>:last-child{text-align:right}
.driver{white-space:nowrap}.driver[style]::before{content:"";display:inline-block;width:.25em;height:.9em;margin-right:.3em;vertical-align:-.1em;border-radius:1px;background:var(--team)}
li>.muted{flex:1}.bar{flex:0 0 45%;background:linear-gradient(90deg,var(--gridcast-accent,light-dark(#b3261e,#ff8a80)) var(--chance),#8883 0) 0/50% .6em no-repeat}`);
const NOTES = { offline: "No connection: this may be out of date.", limited: "Too many requests: it goes on in a minute.", stale: "Stale: no newer order has come." };
const make = (tag, text, attributes = {}) => {
  const e = Object.assign(document.createElement(tag), { textContent: text ?? "" });
  for (const name in attributes) e.setAttribute(name, attributes[name]);
  return e;
};

class Widget extends HTMLElement {
  static observedAttributes = ["key", "api", "year"];
  #known = {};
  #timer;
  #again = 0; // the earliest next question
  #asked = 0;
  #fresh = 30; // seconds for which an answer does not change
  #spare = true; // the key has half of its requests left
  #run = 0;
  #here = false;

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [CSS];
    this.body = this.shadowRoot.appendChild(make("div"));
    this.note = this.shadowRoot.appendChild(make("p", "", { class: "muted", role: "status" }));
    this.body.append(document.createElement("slot"));
    this.wake = () => document.hidden || this.#poll();
  }
  connectedCallback() {
    this.#here = true;
    this.#known = {};
    this.drivers = {};
    this.#again = 0;
    this.#run++;
    this.state("loading");
    document.addEventListener("visibilitychange", this.wake);
    this.#timer ??= setInterval(() => this.tick?.(), 1000);
    this.#poll();
  }
  disconnectedCallback() {
    this.#here = false;
    this.#run++;
    document.removeEventListener("visibilitychange", this.wake);
    clearInterval(this.#timer);
    clearTimeout(this.next);
    this.#timer = undefined;
  }
  attributeChangedCallback(name, old, value) {
    if (old !== value && this.#here) this.connectedCallback();
  }
  state(state) {
    if (this.getAttribute("state") !== state) this.setAttribute("state", state);
    this.note.textContent = NOTES[state] ?? "";
    this.note.hidden = !NOTES[state];
  }
  // soon brings the next question forward.
  soon() {
    const again = this.#asked + 1e3 * this.#fresh + 1e3 + Math.random() * 5e3;
    if (!this.#spare || this.hurried) return;
    this.hurried = true;
    this.#again = Math.min(this.#again, again);
    this.wake();
  }
  // poll asks, shows, and sets the time of the next question. A hidden page asks nothing.
  async #poll() {
    clearTimeout(this.next);
    const early = this.#again - performance.now();
    if (early > 0 || document.hidden) {
      if (early > 0) this.next = setTimeout(this.wake, early);
      return;
    }
    const run = this.#run;
    let wait = MINUTE;
    this.#asked = performance.now();
    this.#again = this.#asked + MINUTE;
    this.hurried = false;
    try {
      const fill = await this.load();
      if (run !== this.#run) return;
      this.fault = undefined;
      fill();
    } catch (fault) {
      if (run !== this.#run) return;
      this.fault = fault.state ?? "offline";
      wait = Math.max(wait, fault.wait ?? 0);
      this.state(this.fault);
      if (this.fault === "bad-key") return;
    }
    this.#again = performance.now() + wait;
    this.next = setTimeout(this.wake, wait + Math.random() * 2e3);
  }
  // get returns the envelope of a path, null where there is nothing.
  async get(path) {
    const had = this.#known[path];
    const headers = { "X-API-Key": this.getAttribute("key") ?? "" };
    if (had?.tag) headers["If-None-Match"] = had.tag;
    const url = new URL("api/v1/" + path, new URL(this.getAttribute("api") ?? HOME, location.href));
    const r = await fetch(url, { headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(15e3) });
    this.date = Date.parse(r.headers.get("Date"));
    if (r.status === 304 && had) return had.body;
    if (r.status === 404) return null;
    this.#fresh = /max-age=(\d+)/.exec(r.headers.get("Cache-Control"))?.[1] ?? this.#fresh;
    this.#spare = 2 * r.headers.get("X-RateLimit-Remaining") > r.headers.get("X-RateLimit-Limit");
    if (r.status === 401 || r.status === 403) {
      const { message } = await r.json().catch(() => ({}));
      console.error(`gridcast: the key of <${this.localName}> is refused on ${location.origin} (${r.status}: ${message}). Readers see the text between its tags. Put a valid key into its attribute key: gridcast keys list shows keys and their origins, gridcast keys create --origin ${location.origin} makes one for this page.`);
      throw { state: "bad-key" };
    }
    if (r.status === 429) throw { state: "limited", wait: 1e3 * (r.headers.get("Retry-After") ?? 60) };
    if (!r.ok) throw { state: "offline" };
    const body = await r.json();
    this.#known[path] = { tag: r.headers.get("ETag"), body };
    return body;
  }
  // meet learns names and colours of the current drivers. Without them codes are shown.
  async meet(code) {
    if (!code || this.drivers[code]) return;
    const answer = await this.get("drivers").catch(() => null);
    for (const d of answer?.data ?? []) this.drivers[d.driver] = d;
  }
  who(code, name) {
    const driver = this.drivers[code];
    const shown = make("span", driver?.[name] ?? code, { class: "driver", part: "driver", title: driver ? `${code}, ${driver.team}` : code });
    if (driver?.team_colour) shown.style.setProperty("--team", driver.team_colour);
    return shown;
  }
}

class Next extends Widget {
  // Time is the server's, by generated_at, and goes on by itself.
  now() {
    return this.server + performance.now() - this.at;
  }
  async load() {
    const race = await this.get("next-race");
    const at = performance.now();
    const calendar = await this.get("calendar");
    const live = calendar?.data.find((e) => e.status === "live");
    const picked = live && (await this.get("predictions?session_key=" + live.session_key));
    const shown = live ? { ...live, name: live.gp_name, live, prediction: picked?.data[0]?.prediction } : race?.data;
    await this.meet(shown?.prediction?.winner);
    return () => {
      if (race) {
        this.server = Date.parse(race.meta.generated_at);
        this.at = at;
      }
      this.race = shown;
      this.#show();
    };
  }
  #show() {
    const race = this.race;
    if (!race) {
      this.body.replaceChildren(make("p", "No race is scheduled."));
      return this.state("none");
    }
    const start = race.date_start && new Date(race.date_start);
    this.clock = make("div", "", { class: race.live ? "clock live" : "clock", role: "timer", "aria-label": "Time to the start", part: "clock" });
    this.body.replaceChildren(
      make("h2", race.name, { part: "name" }),
      make("p", `${race.circuit}, ${race.country}`, { class: "muted" }),
      this.clock,
      make("p", start ? (race.provisional ? start.toLocaleDateString([], { dateStyle: "long" }) + ", the hour is not known yet" : start.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) + " your time") : "", { class: "muted" }),
    );
    const pick = race.prediction;
    if (pick) {
      const line = this.body.appendChild(make("p", "Pick: ", { part: "pick" }));
      line.append(this.who(pick.winner, "name"), ` (${pick.confidence_pct.toFixed(1)} %), then `, this.who(pick.podium.p2, "name"), " and ", this.who(pick.podium.p3, "name"));
    }
    this.tick();
  }
  tick() {
    const race = this.race;
    if (!race || !this.clock) return;
    const left = race.live ? 0 : Math.max(0, Math.round((Date.parse(race.date_start) - this.now()) / 1e3));
    const two = (n) => String(n).padStart(2, "0");
    const days = Math.floor(left / 86400);
    this.clock.textContent = race.live ? "Live" : left === 0 ? "Starting" :
      (days ? `${days} d ` : "") + `${two(Math.floor(left / 3600) % 24)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
    this.state(this.fault ?? (race.live ? "live" : left === 0 ? "starting" : "counting"));
    if (left === 0 && !race.live && !this.fault) this.soon();
  }
}

class Season extends Widget {
  async load() {
    const year = this.getAttribute("year");
    const answer = await this.get("predictions" + (year ? "?year=" + encodeURIComponent(year) : ""));
    const picks = answer?.data ?? [];
    if (!year) await this.meet(picks.at(-1)?.prediction.winner); // codes of another season may be other drivers
    return () => {
      const scored = picks.filter((p) => p.result);
      const list = make("ol");
      for (const p of picks) {
        const item = list.appendChild(make("li"));
        const shown = make("span"), said = (code, text) => (shown.append(this.who(code, "last_name")), shown.lastChild.append(text));
        said(p.prediction.winner, p.result ? (p.winner_hit ? " ✓ hit" : " ✗") : " …");
        if (p.result && !p.winner_hit) shown.append(" "), said(p.result.winner, " won");
        item.append(make("span", p.gp_name), shown);
      }
      this.body.replaceChildren(make("h2", scored.length ? `${scored.filter((p) => p.winner_hit).length} of ${scored.length} winners picked` : "No race is scored yet"), list);
      this.state("ready");
    };
  }
}

class Live extends Widget {
  async load() {
    const answer = await this.get("live");
    await this.meet(answer?.data.order?.[0]?.driver);
    return () => {
      const race = answer?.data ?? {}, made = Date.parse(answer?.meta.generated_at);
      const now = Math.abs(this.date - made) < 432e5 && this.date; // false: a replay has a clock of its own
      if (now || race !== this.race) this.stale = performance.now() + Date.parse(race.valid_until) - (now || made);
      this.race = race;
      const list = make("ol");
      for (const c of race.order?.slice(0, 10) ?? []) {
        const item = list.appendChild(make("li", c.position ?? "out")), gap = c.gap_laps ? `${c.gap_laps} lap` : c.gap_ms && (c.gap_ms / 1e3).toFixed(1);
        item.append(this.who(c.driver), make("span", gap ? "+" + gap : "", { class: "muted" }), make("span", c.win_pct?.toFixed(1).concat(" %"), { class: "bar" }));
        item.lastChild.style.setProperty("--chance", c.win_pct + "%");
      }
      this.body.replaceChildren(make("h2", race.gp_name ?? "No race is running", { part: "name" }),
        make("p", ({ suspended: "Suspended. ", over: "Over. " }[race.state] ?? "") + (race.lap ? `Lap ${race.lap} of ${race.laps}, seen ${new Date(race.observed_at).toLocaleTimeString()}${race.by_hand ? " by hand" : ""}` : ""), { class: "muted" }), list);
      this.tick();
    };
  }
  tick() {
    const state = this.race?.state;
    if (!state) return;
    this.state(this.fault ?? (performance.now() > this.stale ? "stale" : state));
    if (state === "running" || state === "suspended") this.soon();
  }
}

customElements.get("gridcast-next") ?? customElements.define("gridcast-next", Next);
customElements.get("gridcast-season") ?? customElements.define("gridcast-season", Season);
customElements.get("gridcast-live") ?? customElements.define("gridcast-live", Live);
