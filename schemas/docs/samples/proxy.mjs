import { createServer } from "node:http";
const service = new URL(process.env.GRIDCAST_URL).origin, key = process.env.GRIDCAST_KEY, kept = new Map(); // answers by address
const ask = async (url) => {
  const r = await fetch(url, { headers: { "X-API-Key": key }, signal: AbortSignal.timeout(10e3) });
  const headers = ["content-type", "etag", "retry-after"].flatMap((name) => (r.headers.has(name) ? [name, r.headers.get(name)] : []));
  return { status: r.status, headers, body: Buffer.from(await r.arrayBuffer()) };
};
createServer(async (request, response) => {
  try {
    const url = new URL(service + request.url.replace("/racing/", "/")).href;
    if (!request.url.startsWith("/racing/") || !url.startsWith(service + "/api/v1/") || request.method !== "GET") return response.writeHead(404).end();
    if (kept.size > 1000) kept.clear();
    if (!(kept.get(url)?.until > Date.now())) kept.set(url, { until: Date.now() + 5e3, answer: ask(url) });
    const { status, headers, body } = await kept.get(url).answer;
    const same = status === 200 && headers.includes(request.headers["if-none-match"]);
    response.writeHead(same ? 304 : status, headers).end(same ? undefined : body);
  } catch {
    response.writeHead(503, ["Retry-After", "5"]).end();
  }
}).listen(process.env.PORT, "127.0.0.1");
