// Reads every endpoint of a running service with the clients that @hey-api/openapi-ts and openapi-fetch make.
// check.sh generates, compiles and runs it: node read.js URL KEY.
import createClient from "openapi-fetch";
import * as sdk from "./hey";
import { client } from "./hey/client.gen";
import type { paths } from "./types";

const [url, key] = process.argv.slice(2) as [string, string];
const headers = { "X-API-Key": key };

// A demonstration, which signs nothing, answers these with 404, or they need a part of the path.
const unservedOperation = /^get(SecurityContact|Checkpoint|ManifestFile|Note|(Sandbox)?Portrait|Proof|Tile|VerifierKeys)$/;
const unservedPath = /^\/(log|signed|(sandbox\/)?portraits)\/|security\.txt$/;

async function main(): Promise<void> {
  client.setConfig({ baseUrl: url, headers });
  let read = 0;
  for (const [name, operation] of Object.entries(sdk)) {
    if (unservedOperation.test(name)) continue;
    const { response, error } = await (operation as (options: object) => Promise<{ response: Response; error?: unknown }>)({});
    if (error || response.status !== 200) throw new Error(`${name}: ${response.status} ${JSON.stringify(error)}`);
    read++;
  }
  const { data: calendar } = await sdk.getCalendar();
  for (const round of calendar?.data ?? []) {
    if (round.status === "finished" && !/^[A-Z]{3}$/.test(round.winner ?? "")) throw new Error(`${round.gp_name} has no winner`);
  }
  console.log(`@hey-api/openapi-ts: ${read} endpoints read`);

  const typed = createClient<paths>({ baseUrl: url, headers });
  const { data: document } = await typed.GET("/openapi.json");
  const all = Object.keys((document as { paths: object }).paths).filter((path) => !unservedPath.test(path)) as "/api/v1/next-race"[];
  for (const path of all) {
    const { response } = await typed.GET(path, { parseAs: "text" });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  }
  const { data: next } = await typed.GET("/api/v1/next-race");
  if (!next || next.data.seconds_to_lights < 1) throw new Error("no countdown");
  if (read !== all.length) throw new Error(`@hey-api/openapi-ts has ${read} operations, the document ${all.length} paths`);
  console.log(`openapi-typescript with openapi-fetch: ${all.length} endpoints read`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
