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
        $("try").scrollIntoView();
        $("try-key").value ? $("try-form").requestSubmit() : $("try-key").focus();
      }));
    }
  }

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
      $("try-status").textContent = `${answer.status} ${answer.statusText} · ${ms} ms · ${text.length} characters`;
      $("try-headers").textContent = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      highlight($("try-body"), indent(text));
    } catch (err) {
      $("try-status").textContent = "No answer: " + err.message;
      $("try-headers").textContent = $("try-body").textContent = "";
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
})();
