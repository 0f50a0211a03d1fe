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

// Sections that nobody is busy with are replaced when the server says something else.
async function refresh() {
  const response = await fetch("/", { headers: { Accept: "text/html" } });
  if (response.redirected || !response.ok) { location.reload(); return; }
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const clock = document.querySelector("[data-race]"), newClock = fresh.querySelector("[data-race]");
  if (clock && newClock) { clock.dataset.race = newClock.dataset.race; clock.dataset.at = String(Date.now()); }
  for (const section of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(section.id);
    const busy = section.contains(document.activeElement) || section.querySelector("details[open]") || section.querySelector("button:disabled");
    if (!other || busy || section.innerHTML === other.innerHTML) continue;
    const scrolled = [...section.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    const panel = document.getElementById("run");
    const within = section.contains(panel), of = panel.dataset.form;
    section.replaceChildren(...other.childNodes);
    if (within) { // it stays beside the form that it tells about, if there still is one
      const form = [...section.querySelectorAll("form")].find((f) => f.getAttribute("action") === of);
      if (form) beside(form, panel); else section.prepend(panel);
    }
    section.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
  }
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

// ask shows what a deed would do, and waits for the answer: null for no, else what to send along.
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

// beside puts the panel after a form, or after the outermost closed fold that hides the form.
function beside(form, panel) {
  let place = form;
  for (let fold = form.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (!fold.open) place = fold;
  }
  place.after(panel);
}

async function submit(form, button) {
  const title = button.textContent;
  const panel = document.getElementById("run");
  button.disabled = true;
  panel.hidden = true;
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
      panel.scrollIntoView({ block: "nearest" });
    } else if ("run" in form.dataset) {
      const ended = follow(body.id, body.title);
      panel.scrollIntoView({ block: "nearest" });
      await ended;
    } else if (body.key) {
      said("New key for " + body.name, { phase: "done", text: "It is shown this once; only its hash is kept:" });
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
      panel.scrollIntoView({ block: "nearest" });
    } else {
      said(title, { phase: "done", text: body.text });
    }
    if (response.ok) { form.reset(); form.closest("details")?.removeAttribute("open"); beside(form, panel); }
  } catch {
    said(title, { phase: "failed", error: "The scheduler did not answer. What to do: look at the audit log below before you try again; the request may have arrived." });
  } finally {
    button.disabled = false;
    button.blur();
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
  const panel = document.getElementById("run");
  if (panel.dataset.runId) follow(panel.dataset.runId, document.getElementById("run-title").textContent);
  setInterval(tick, 250);
  tick();
  refreshAlways();
}
