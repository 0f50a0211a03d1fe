// Node.js 18 or later, nothing to install. The body is the received one, byte for byte, as a Buffer.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

function genuine(secret, headers, body) {
  const id = headers["webhook-id"], timestamp = headers["webhook-timestamp"];
  if (!id || !(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const [version, value = ""] = signature.split(",");
    const given = Buffer.from(value, "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

const env = process.env, body = readFileSync(0);
const headers = { "webhook-id": env.WEBHOOK_ID, "webhook-timestamp": env.WEBHOOK_TIMESTAMP, "webhook-signature": env.WEBHOOK_SIGNATURE };
if (!genuine(env.GRIDCAST_WEBHOOK_SECRET, headers, body)) {
  console.error("not from gridcast"); // a server answers 401
  process.exit(1);
}
const { type, data } = JSON.parse(body); // a server has answered 204 by now
if (type === "version.published") {
  if (!data.complete) console.log("ask for everything");
  for (const { path, query, etag } of data.changes) console.log("ask for", query ? `${path}?${query}` : path, etag ?? "");
}
