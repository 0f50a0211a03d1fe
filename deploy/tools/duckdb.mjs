// duckdb [-csv] FILE: runs the statements of the standard input as DuckDB's own program does, and prints rows as CSV. The test of
// duckdb.sh uses it where that program is not installed, because npm has DuckDB as a library alone.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const { DuckDBInstance } = createRequire(process.env.GRIDCAST_NODE_MODULES + "/")("@duckdb/node-api");
const connection = await (await DuckDBInstance.create(process.argv.at(-1))).connect();
const cell = (value) => (/[",\n]/.test(value ?? "") ? `"${value.replaceAll('"', '""')}"` : (value ?? ""));
const statements = await connection.extractStatements(readFileSync(0, "utf8"));
for (let i = 0; i < statements.count; i++) {
  const answer = await (await statements.prepare(i)).runAndReadAll();
  if (process.argv.includes("-csv")) console.log([answer.columnNames(), ...answer.getRowsJson()].map((row) => row.map(cell).join()).join("\n"));
}
