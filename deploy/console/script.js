"use strict";
// The page works without this script. The script runs clocks, refreshes sections after changes, and shows
// the progress of an action in the panel.

const loaded = Date.now();

// Present race time, from the server's instant and the speed of its clock.
function raceNow(clock) {
  return Date.parse(clock.dataset.race) + (Date.now() - Number(clock.dataset.at || loaded)) * Number(clock.dataset.speed);
}

function tick() {
  const clock = document.querySelector("[data-race]");
  if (!clock) return;
  const now = raceNow(clock);
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  clock.textContent = format.format(now).replace(",", "");
  for (const e of document.querySelectorAll("[data-until]")) {
    let s = Math.ceil((Date.parse(e.dataset.until) - now) / 1000);
    if (s <= 0) { e.textContent = "lights out"; continue; }
    const d = Math.floor(s / 86400), h = Math.floor(s % 86400 / 3600), m = Math.floor(s % 3600 / 60);
    const two = (n) => String(n).padStart(2, "0");
    e.textContent = (d ? d + " d " : "") + two(h) + ":" + two(m) + ":" + two(s % 60);
  }
}

// seen reports whether an element is wholly in the window, up to parts of a pixel.
function seen(element) {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.top > -1 && box.bottom < innerHeight + 1;
}

// reveal brings the panel into the window and moves the focus there, so that keyboard and screen reader go
// on from the outcome. It scrolls at once, because the page may change during slow scrolling.
function reveal(panel) {
  panel.focus({ preventScroll: true });
  panel.scrollIntoView({ block: "nearest" });
}

// markup is the server's version of a section, without the panel.
function markup(section) {
  const copy = section.cloneNode(true);
  copy.querySelector("#run")?.remove();
  return copy.innerHTML;
}

// replace updates a section. The panel stays beside its form if the form is still there. A panel outside of
// the replaced part is not touched, so that its selection stays and a screen reader does not read it again.
// After a failure the form itself stays, with its fields.
function replace(section, other, panel) {
  const same = (root) => [...root.querySelectorAll("form")].find((f) => f.getAttribute("action") === panel.dataset.form);
  const failed = panel.dataset.state === "failed" && same(section);
  if (failed) same(other)?.replaceWith(failed);
  const children = [...other.childNodes];
  if (panel.parentElement !== section) {
    const within = section.contains(panel);
    section.replaceChildren(...children);
    if (!within) return;
    const form = same(section);
    if (form) beside(form, panel); else section.prepend(panel);
    return;
  }
  const form = same(other), after = children.findIndex((child) => child.contains(form)) + 1;
  for (const child of [...section.childNodes]) if (child !== panel) child.remove();
  panel.before(...children.slice(0, after));
  panel.after(...children.slice(after));
}

// Sections without focus or open forms are replaced when the server's version differs. The focus of the
// panel does not prevent this: the panel keeps it.
async function refresh() {
  const response = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
  if (response.redirected || !response.ok) { location.reload(); return; }
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const clock = document.querySelector("[data-race]"), newClock = fresh.querySelector("[data-race]");
  if (clock && newClock) { clock.dataset.race = newClock.dataset.race; clock.dataset.at = String(Date.now()); }
  const panel = document.getElementById("run"), wasSeen = seen(panel), focused = panel.contains(document.activeElement) && document.activeElement;
  const content = (section) => section?.querySelector(":scope > .fold") || section; // the section, or the fold with all of it
  for (const live of document.querySelectorAll("[data-live]")) {
    const section = content(live), other = content(fresh.getElementById(live.id)), head = document.activeElement.matches(".fold > summary") && document.activeElement;
    if (other?.matches("[data-due]") && !section.matches("[data-due]")) section.open = true;
    if (other) section.toggleAttribute("data-due", other.matches("[data-due]"));
    const busy = section.contains(document.activeElement) && !focused && !head || section.querySelector("details[open]") || section.querySelector("button[disabled]");
    if (!other || busy || markup(section) === other.innerHTML) continue;
    const scrolled = [...section.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    replace(section, other, panel);
    if (head && !head.isConnected) section.querySelector("summary").focus({ preventScroll: true });
    section.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
  }
  if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true });
  if (wasSeen && !seen(panel)) panel.scrollIntoView({ block: "nearest" });
  tick();
}

async function refreshAlways() {
  for (;;) {
    await new Promise((done) => setTimeout(done, 2000));
    if (document.hidden) continue;
    try { await refresh(); connected(true); } catch { connected(false); }
  }
}

// A notice at the top reports once that the scheduler does not answer.
function connected(yes) {
  let note = document.getElementById("offline");
  if (yes) { note?.remove(); return; }
  if (note) return;
  note = document.createElement("p");
  note.id = "offline";
  note.className = "notice bad";
  note.role = "alert";
  note.textContent = "The scheduler does not answer: what you see may be old. Edges go on serving. Is the process running?";
  document.getElementById("main").prepend(note);
}

const phases = {
  prepare: ["Recording it, loading facts and settling what is due", 5], rendering: ["Rendering", 10, 55],
  upload: ["Uploading", 55, 75], check: ["Reading back and comparing", 75, 88], swap: ["Making it current", 88, 90], serve: ["Edges take the version", 90, 99],
};

// show displays an event of a run in the panel.
function show(panel, e) {
  const bar = document.getElementById("run-progress"), text = document.getElementById("run-text"), edges = document.getElementById("run-edges");
  text.className = "";
  if (e.phase === "failed") {
    bar.hidden = true; text.className = "problem"; text.textContent = e.error;
  } else if (e.phase === "done") {
    bar.value = 100; text.textContent = e.text;
    text.className = (e.result?.edges || []).some((edge) => edge.problem) ? "warn" : "good";
    edges.replaceChildren(...(e.result?.edges || []).map((edge) => {
      const item = document.createElement("li");
      item.className = edge.problem ? "bad" : "good";
      item.textContent = edge.problem ? `${edge.name}: ${edge.problem}` : `${edge.name} serves it after ${edge.seconds.toFixed(2)} s`;
      return item;
    }));
  } else {
    const [label, from, to] = phases[e.phase] || [e.phase, 50];
    bar.hidden = false;
    bar.value = from + (to && e.total ? (to - from) * (e.done || 0) / e.total : 0);
    text.textContent = label + (e.total ? ` ${e.done || 0} of ${e.total}` : "") + (e.text ? `: ${e.text}` : "") + "…";
  }
  panel.dataset.state = e.phase;
}

// follow displays a run until its end or until another action, and returns whether the run succeeded. A broken connection resumes
// at the last event.
async function follow(id, title) {
  const panel = document.getElementById("run");
  panel.hidden = false;
  panel.dataset.runId = id;
  document.getElementById("run-title").textContent = title;
  document.getElementById("run-edges").replaceChildren();
  for (let seq = 0; ;) {
    let run;
    try {
      const response = await fetch(`/runs/${id}?after=${seq}`, { headers: { Accept: "application/json" } });
      if (!response.ok) return false;
      run = await response.json();
    } catch {
      await new Promise((done) => setTimeout(done, 1000));
      continue;
    }
    if (panel.dataset.runId !== id) return false; // the panel shows a later action
    if (run.last.seq > seq) show(panel, run.last);
    if (run.ended) return run.last.phase === "done";
    seq = run.last.seq;
  }
}

// showAnswer displays the outcome of a request that is no run.
function showAnswer(title, event) {
  const panel = document.getElementById("run");
  panel.hidden = false;
  document.getElementById("run-title").textContent = title;
  document.getElementById("run-edges").replaceChildren();
  document.getElementById("run-progress").hidden = true;
  show(panel, event);
  document.getElementById("run-progress").hidden = true;
}

// send posts a form: with files as multipart, otherwise URL-encoded.
async function send(form, more) {
  const data = new FormData(form);
  for (const [name, value] of Object.entries(more)) data.set(name, value);
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  const response = await fetch(form.action, { method: "POST", headers: { Accept: "application/json" }, body });
  return [response, await response.json()];
}

// ask displays a preview and waits for the answer: null for no, otherwise the fields to send along.
function ask(preview) {
  const dialog = document.getElementById("ask");
  const list = (id, items) => document.getElementById(id).replaceChildren(...(items || []).map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  document.getElementById("ask-title").textContent = preview.title;
  list("ask-effects", preview.effects);
  list("ask-warnings", preview.warnings);
  const variants = preview.variants || [], shown = variants.slice(0, 8).join(", ");
  document.getElementById("ask-variants").textContent = variants.length ? `${variants.length} published variants change: ${shown}${variants.length > 8 ? " and more" : ""}.` : "";
  document.getElementById("ask-refusal").hidden = !preview.refusal;
  document.getElementById("ask-refusal-text").textContent = preview.refusal || "";
  const force = document.getElementById("ask-force");
  force.checked = false;
  force.required = Boolean(preview.refusal);
  document.getElementById("ask-question").textContent = preview.question || "Do it?";
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((answered) => {
    dialog.onclose = () => {
      if (dialog.returnValue !== "yes") { answered(null); return; }
      const answer = { seen: preview.seen, confirm: "yes" };
      if (force.checked) answer.force = "yes";
      answered(answer);
    };
  });
}

// beside moves the panel after a form, or after the outermost closed fold around it. A secret needs the
// width of the section, and must not be replaced with the row of a table.
function beside(form, panel) {
  const inner = "details:not(.fold)"; // a wide window shows the content of sections that are folded
  let place = form;
  for (let fold = form.closest(inner); fold; fold = fold.parentElement.closest(inner)) {
    if (!fold.open) place = fold;
  }
  if (panel.querySelector(".secret")) while (!place.parentElement.matches("section")) place = place.parentElement;
  place.after(panel);
}

// sortable adds a list to a field with drivers' codes. Dragging, buttons, arrow keys, and taps on a name and then on
// its new place change the field; typing in the field changes the list. A dash in the field separates the drivers without a place.
function sortable(field) {
  if (field.dataset.sorting || !field.dataset.sort) return;
  field.dataset.sorting = "yes";
  const names = new Map(field.dataset.sort.split("|").map((known) => [known.slice(0, 3), known.slice(4)]));
  const list = document.createElement("ol");
  list.className = "order";
  list.setAttribute("aria-label", "The order, to be dragged");
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = "Tap a name, then the name in its new place. Or drag it.";
  const times = new Map(); // lap times as typed, by code
  const withTimes = (code) => times.has(code) ? `${code} ${times.get(code)}\n` : code + " ";
  // pasted puts the drivers of a pasted timing page first, in the order of their first mention by code or last name, with
  // the lap times that follow their names. The drivers that the page lacks stay behind them, and the hint names them.
  const pasted = (text) => {
    const plain = (s) => s.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
    const page = plain(text), at = new Map();
    for (const [code, name] of names) {
      const last = plain(name.replace(/ (jr|sr)\.?$/i, "")).split(" ").pop();
      const found = [text.search(new RegExp(`(?<![A-Z])${code}(?![A-Z])`)), last.length > 3 ? page.search(new RegExp(`(?<!\\p{L})${last}`, "u")) : -1];
      const first = Math.min(...found.map((i) => i < 0 ? Infinity : i));
      if (first < Infinity) at.set(code, first);
    }
    if (at.size < 3) return false;
    const order = [...at.keys()].sort((a, b) => at.get(a) - at.get(b)), rest = field.defaultValue.match(/[A-Z]{3}/g)?.filter((code) => !at.has(code)) ?? [];
    const laps = order.map((code, i) => text.slice(at.get(code), at.get(order[i + 1])).match(/\d:\d\d\.\d{3}/g)?.slice(0, 3).join(" "));
    const timed = field.name === "order" && field.form.action.endsWith("/qualifying") && laps.filter(Boolean).length > order.length / 2;
    times.clear();
    if (timed) order.forEach((code, i) => laps[i] && times.set(code, laps[i]));
    field.value = order.concat(rest).map(withTimes).join("").trim();
    read();
    hint.textContent = order.length + " drivers read from the page" + (timed ? ", with their times. " : ". ") + (rest.length ? "It lacks " + rest.join(" ") + ": they stand last. Delete absent drivers." : "Compare the order with the page.");
    return true;
  };
  const codes = () => [...list.children].map((item) => item.dataset.code);
  const write = () => { field.value = codes().map(withTimes).join("").replace(/\s*- /, "\n-\n").trim(); number(); };
  const number = () => {
    let place = 0, parted = false;
    for (const item of list.children) {
      if (item.dataset.code === "-") parted = true;
      item.firstChild.textContent = parted || item.dataset.code === "-" ? "–" : ++place;
    }
  };
  const move = (item, by) => {
    const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    if (by < 0) other.before(item); else other.after(item);
    write();
  };
  let lifted = null; // the item whose name was tapped
  const lift = (item) => {
    for (const each of list.children) each.querySelector(".driver").setAttribute("aria-pressed", each === item);
    lifted = item;
  };
  const tap = (item) => {
    if (!lifted?.isConnected || lifted === item) return lift(lifted === item ? null : item);
    if (lifted.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_PRECEDING) item.before(lifted); else item.after(lifted);
    lift(null);
    write();
  };
  const draw = (code) => {
    const item = document.createElement("li"), name = code === "-" ? "without a place" : names.get(code) || "not known";
    item.dataset.code = code;
    if (!names.has(code) && code !== "-") item.className = "bad";
    const place = document.createElement("span"), text = document.createElement("button"), grip = document.createElement("span");
    place.className = "place"; text.className = "driver"; grip.className = "grip";
    text.textContent = code === "-" ? "– " + name : code + " " + name;
    grip.textContent = "⠿"; grip.setAttribute("aria-hidden", "true");
    text.type = "button"; text.setAttribute("aria-pressed", "false");
    place.onclick = text.onclick = () => tap(item);
    const button = (sign, label, by) => {
      const b = document.createElement("button");
      b.type = "button"; b.className = "quiet"; b.textContent = sign; b.setAttribute("aria-label", `${label}: ${code === "-" ? name : code}`);
      b.onclick = () => { move(item, by); b.focus(); };
      return b;
    };
    item.onkeydown = (event) => {
      if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
      event.preventDefault();
      move(item, event.key === "ArrowUp" ? -1 : 1);
      event.target.focus();
    };
    item.append(place, grip, text, button("▲", "up", -1), button("▼", "down", 1));
    grip.onpointerdown = (event) => {
      event.preventDefault();
      item.classList.add("dragged");
      // The window gets pointer events also after the item has moved, which ends a capture.
      const heard = new AbortController(), options = { signal: heard.signal };
      window.addEventListener("pointermove", (at) => {
        if (at.pointerId !== event.pointerId) return;
        const over = [...list.children].find((other) => {
          const box = other.getBoundingClientRect();
          return other !== item && at.clientY >= box.top && at.clientY <= box.bottom;
        });
        if (!over) return;
        const box = over.getBoundingClientRect();
        if (at.clientY < box.top + box.height / 2) over.before(item); else over.after(item);
      }, options);
      const drop = (at) => {
        if (at.pointerId !== event.pointerId) return;
        heard.abort();
        item.classList.remove("dragged");
        write();
      };
      window.addEventListener("pointerup", drop, options);
      window.addEventListener("pointercancel", drop, options);
    };
    return item;
  };
  const read = () => {
    const typed = [];
    times.clear();
    for (const word of field.value.toUpperCase().split(/[\s,;]+/).filter(Boolean)) {
      const code = typed.at(-1);
      if (/^\d+[:.]/.test(word) && code) times.set(code, times.has(code) ? times.get(code) + " " + word : word);
      else typed.push(word);
    }
    list.replaceChildren(...typed.map((code) => draw(/^[-–—]+$/.test(code) ? "-" : code)));
    number();
  };
  field.addEventListener("input", read);
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (/\d/.test(text) && pasted(text)) event.preventDefault();
  });
  field.form.addEventListener("reset", () => setTimeout(read));
  read();
  field.closest("label").after(hint, list);
}

async function submit(form, button) {
  const title = button.textContent;
  const panel = document.getElementById("run"), typed = button.matches(":focus-visible");
  button.disabled = true;
  panel.hidden = true;
  document.getElementById("run-edges").replaceChildren();
  panel.dataset.state = "asked"; // the run before is no longer followed
  panel.dataset.runId = "";
  panel.dataset.form = form.getAttribute("action");
  beside(form, panel);
  try {
    let [response, body] = await send(form, {});
    if (response.status === 428) {
      const answer = await ask(body.preview);
      if (!answer) return;
      [response, body] = await send(form, answer);
    }
    let done = response.ok;
    if (!response.ok) {
      showAnswer(title, { phase: "failed", error: body.message });
    } else if ("run" in form.dataset) {
      const ended = follow(body.id, body.title);
      reveal(panel);
      done = await ended;
    } else if (body.key) {
      showAnswer(body.title || "New key for " + body.name, { phase: "done", text: body.title ? body.text : "It is shown this once; only its hash is kept:" });
      const key = document.createElement("code");
      key.className = "secret";
      key.textContent = body.key;
      const copy = document.createElement("button");
      copy.type = "button";
      copy.className = "quiet";
      copy.textContent = "Copy";
      copy.onclick = async () => { await navigator.clipboard.writeText(body.key); copy.textContent = "Copied"; };
      const item = document.createElement("li");
      item.append(key, " ", copy);
      document.getElementById("run-edges").replaceChildren(item);
    } else {
      showAnswer(title, { phase: "done", text: body.text });
    }
    if (done) { form.reset(); form.closest("details:not(.fold)")?.removeAttribute("open"); beside(form, panel); }
  } catch {
    showAnswer(title, { phase: "failed", error: "The scheduler did not answer. What to do: look at the audit log below before you try again; the request may have arrived." });
  } finally {
    button.disabled = false;
    const active = document.activeElement;
    if (panel.hidden) { // nothing was done: the keyboard stays at the button, a pointer leaves it
      if (typed) button.focus({ preventScroll: true }); else button.blur();
    } else if (panel.querySelector(".secret") || active === document.body || form.contains(active) || panel.contains(active)) {
      reveal(panel); // but whoever has gone on to something else while a run took its time stays there
    }
  }
  refresh().catch(() => connected(false));
}

if (document.getElementById("main")) {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!("run" in form.dataset || "done" in form.dataset)) return;
    event.preventDefault();
    submit(form, event.submitter || form.querySelector("button"));
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.open) event.target.querySelectorAll("textarea[data-sort]").forEach(sortable);
  }, true);
  const unfold = () => { // the section or the form that a notice, a link or an address points to
    const part = document.getElementById(location.hash.slice(1));
    if (!part) return;
    for (let fold = part.querySelector(":scope > .fold") || part.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    part.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => { // a second press of the same link changes no address
    if (event.target.matches("a[href^='#']") && event.target.hash === location.hash) unfold();
  });
  unfold();
  const panel = document.getElementById("run");
  if (panel.dataset.runId) follow(panel.dataset.runId, document.getElementById("run-title").textContent);
  setInterval(tick, 250);
  tick();
  refreshAlways();
}
