// Node.js 18 or later. In a browser, write your values into the next two lines: process exists only in Node.
const host = process.env.GRIDCAST_URL; // "https://api.example.com"
const key = process.env.GRIDCAST_KEY; // "gc_live_…"

// Keeps the last answer and asks only whether it is still current.
const kept = new Map();

async function get(path) {
  for (const until = Date.now() + 3600e3; ; ) {
    const had = kept.get(path);
    const answer = await fetch(`${host}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${key}`, ...(had && { "If-None-Match": had.etag }) },
    });
    if (answer.status === 304) return had.data;
    if ((answer.status === 429 || answer.status === 503) && Date.now() < until) {
      await new Promise((done) => setTimeout(done, 1000 * (answer.headers.get("Retry-After") ?? 5)));
      continue;
    }
    const body = await answer.json();
    if (!body.ok) throw new Error(`${body.error}: ${body.message}`);
    const etag = answer.headers.get("ETag");
    if (etag) kept.set(path, { etag, data: body.data });
    return body.data;
  }
}

const next = await get("/next-race");
console.log(`${next.name}: lights out in ${next.seconds_to_lights} s`);
for (const round of await get("/calendar")) {
  if (round.status === "finished") console.log(`${round.gp_name}: ${round.winner}`);
}
