"use strict";
// The page works without this script. With it, clocks run, sections follow what happens, and
// what a button starts reports its progress here.

const loaded = Date.now();

// Race time of now, from the instant the server said and the speed of its clock.
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

// seen says whether an element is in the window as a whole, but for parts of a pixel.
function seen(element) {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.top > -1 && box.bottom < innerHeight + 1;
}

// reveal brings the panel into the window and takes the focus there, so that whoever types or listens
// goes on from what became of an action. Nothing on the page scrolls slowly: it may change meanwhile, and the
// scrolling would end elsewhere.
function reveal(panel) {
  panel.focus({ preventScroll: true });
  panel.scrollIntoView({ block: "nearest" });
}

// markup is what the server said of a section: without the panel, which is put into it here.
function markup(section) {
  const copy = section.cloneNode(true);
  copy.querySelector("#run")?.remove();
  return copy.innerHTML;
}

// replace puts what the server says into a section. The panel stays beside the form that it tells
// about, if there still is one. Where it is not within something that is replaced it is not touched at
// all: what is selected in it stays so, and nobody is read it again.
function replace(section, other, panel) {
  const same = (root) => [...root.querySelectorAll("form")].find((f) => f.getAttribute("action") === panel.dataset.form);
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

// Sections that nobody is busy with are replaced when the server says something else. The panel is
// nothing to be busy with: it keeps the focus, and stays in the window if it was there.
async function refresh() {
  const response = await fetch("/", { headers: { Accept: "text/html" } });
  if (response.redirected || !response.ok) { location.reload(); return; }
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const clock = document.querySelector("[data-race]"), newClock = fresh.querySelector("[data-race]");
  if (clock && newClock) { clock.dataset.race = newClock.dataset.race; clock.dataset.at = String(Date.now()); }
  const panel = document.getElementById("run"), wasSeen = seen(panel), focused = panel.contains(document.activeElement) && document.activeElement;
  for (const section of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(section.id);
    const busy = section.contains(document.activeElement) && !focused || section.querySelector("details[open]") || section.querySelector("button:disabled");
    if (!other || busy || markup(section) === other.innerHTML) continue;
    const scrolled = [...section.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    replace(section, other, panel);
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

// A scheduler that does not answer is said once, above everything else.
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

// show puts an event of a run into the panel.
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

// follow shows a run until it ends. The stream takes up where it broke off.
function follow(id, title) {
  const panel = document.getElementById("run");
  panel.hidden = false;
  panel.dataset.runId = id;
  document.getElementById("run-title").textContent = title;
  document.getElementById("run-edges").replaceChildren();
  const stream = new EventSource(`/runs/${id}/events`);
  return new Promise((ended) => {
    stream.onmessage = (message) => {
      const e = JSON.parse(message.data);
      show(panel, e);
      if (e.phase === "done" || e.phase === "failed") { stream.close(); ended(); }
    };
    stream.onerror = () => { if (stream.readyState === EventSource.CLOSED) ended(); };
  });
}

// said shows what became of a request that is no run.
function said(title, event) {
  const panel = document.getElementById("run");
  panel.hidden = false;
  document.getElementById("run-title").textContent = title;
  document.getElementById("run-edges").replaceChildren();
  document.getElementById("run-progress").hidden = true;
  show(panel, event);
  document.getElementById("run-progress").hidden = true;
}

// send posts a form. Files need their own encoding; what is no file goes as browsers send it.
async function send(form, more) {
  const data = new FormData(form);
  for (const [name, value] of Object.entries(more)) data.set(name, value);
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  const response = await fetch(form.action, { method: "POST", headers: { Accept: "application/json" }, body });
  return [response, await response.json()];
}

// ask shows what an action would do, and waits for the answer: null for no, else what to send along.
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

// beside puts the panel after a form, or after the outermost closed fold that hides the form. A secret
// needs the width of the section, and must not be replaced with the row of a table.
function beside(form, panel) {
  let place = form;
  for (let fold = form.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (!fold.open) place = fold;
  }
  if (panel.querySelector(".secret")) while (!place.parentElement.matches("section")) place = place.parentElement;
  place.after(panel);
}

// sortable puts a list beside a field with drivers' codes: dragged, moved with buttons or with the
// arrow keys, it changes the field; what is typed in the field changes the list. A dash in the field
// parts those without a place from the rest.
function sortable(field) {
  if (field.dataset.sorting || !field.dataset.sort) return;
  field.dataset.sorting = "yes";
  const names = new Map(field.dataset.sort.split("|").map((known) => [known.slice(0, 3), known.slice(4)]));
  const list = document.createElement("ol");
  list.className = "order";
  list.setAttribute("aria-label", "The order, to be dragged");
  const codes = () => [...list.children].map((item) => item.dataset.code);
  const write = () => { field.value = codes().join(" ").replace(/ ?- ?/, "\n-\n").trim(); number(); };
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
  const draw = (code) => {
    const item = document.createElement("li"), name = code === "-" ? "without a place" : names.get(code) || "not known";
    item.dataset.code = code;
    if (!names.has(code) && code !== "-") item.className = "bad";
    const place = document.createElement("span"), text = document.createElement("span"), grip = document.createElement("span");
    place.className = "place"; text.className = "driver"; grip.className = "grip";
    text.textContent = code === "-" ? "– " + name : code + " " + name;
    grip.textContent = "⠿"; grip.setAttribute("aria-hidden", "true");
    const button = (sign, label, by) => {
      const b = document.createElement("button");
      b.type = "button"; b.className = "quiet"; b.textContent = sign; b.setAttribute("aria-label", `${label}: ${code === "-" ? name : code}`);
      b.onclick = () => { move(item, by); b.focus(); };
      b.onkeydown = (event) => {
        if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
        event.preventDefault();
        move(item, event.key === "ArrowUp" ? -1 : 1);
        b.focus();
      };
      return b;
    };
    item.append(place, grip, text, button("▲", "up", -1), button("▼", "down", 1));
    grip.onpointerdown = (event) => {
      event.preventDefault();
      item.classList.add("dragged");
      // The window hears the pointer also where the item is put elsewhere meanwhile, which ends a capture.
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
    const typed = field.value.toUpperCase().split(/[\s,;]+/).filter(Boolean);
    list.replaceChildren(...typed.map((code) => draw(/^[-–—]+$/.test(code) ? "-" : code)));
    number();
  };
  field.addEventListener("input", read);
  field.form.addEventListener("reset", () => setTimeout(read));
  read();
  field.closest("label").after(list);
}

async function submit(form, button) {
  const title = button.textContent;
  const panel = document.getElementById("run"), typed = button.matches(":focus-visible");
  button.disabled = true;
  panel.hidden = true;
  document.getElementById("run-edges").replaceChildren();
  panel.dataset.state = "asked"; // whatever it shows is of something else
  panel.dataset.form = form.getAttribute("action");
  beside(form, panel);
  try {
    let [response, body] = await send(form, {});
    if (response.status === 428) {
      const answer = await ask(body.preview);
      if (!answer) return;
      [response, body] = await send(form, answer);
    }
    if (!response.ok) {
      said(title, { phase: "failed", error: body.message });
    } else if ("run" in form.dataset) {
      const ended = follow(body.id, body.title);
      reveal(panel);
      await ended;
    } else if (body.key) {
      said(body.title || "New key for " + body.name, { phase: "done", text: body.title ? body.text : "It is shown this once; only its hash is kept:" });
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
      said(title, { phase: "done", text: body.text });
    }
    if (response.ok) { form.reset(); form.closest("details")?.removeAttribute("open"); beside(form, panel); }
  } catch {
    said(title, { phase: "failed", error: "The scheduler did not answer. What to do: look at the audit log below before you try again; the request may have arrived." });
  } finally {
    button.disabled = false;
    const active = document.activeElement;
    if (panel.hidden) { // nothing was done: who types goes on at the button, who clicks is not busy with it
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
  const panel = document.getElementById("run");
  if (panel.dataset.runId) follow(panel.dataset.runId, document.getElementById("run-title").textContent);
  setInterval(tick, 250);
  tick();
  refreshAlways();
}
