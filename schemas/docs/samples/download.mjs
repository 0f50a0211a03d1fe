// Node.js 18 or later. The whole current season as one file, only if it has changed since the last time.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const { GRIDCAST_URL: host, GRIDCAST_KEY: key } = process.env;
const tag = existsSync("season.etag") ? readFileSync("season.etag", "utf8") : "";
for (const until = Date.now() + 3600e3; ; ) {
  const answer = await fetch(`${host}/api/v1/bulk`, {
    headers: { Authorization: `Bearer ${key}`, ...(tag && { "If-None-Match": tag }) },
  });
  if (answer.status === 304) break;
  if ((answer.status === 429 || answer.status === 503) && Date.now() < until) {
    await new Promise((done) => setTimeout(done, 1000 * (answer.headers.get("Retry-After") ?? 5)));
    continue;
  }
  if (!answer.ok) throw new Error((await answer.json()).message);
  const zip = Buffer.from(await answer.arrayBuffer());
  const sum = createHash("sha256").update(zip).digest("base64");
  if (answer.headers.get("Repr-Digest") !== `sha-256=:${sum}:`) throw new Error("the file is damaged");
  writeFileSync("season.new", zip);
  renameSync("season.new", "season.zip");
  writeFileSync("season.etag", answer.headers.get("ETag"));
  break;
}
