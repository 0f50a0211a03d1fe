// A client's assumptions about the types that openapi-typescript generates; check.sh compiles this
// file.
import type { paths } from "./types";

type Data<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": { data: infer D } } } } };
}
  ? D
  : never;

// A finished round has a winner, any other has none.
export function winner(round: Data<"/api/v1/calendar">[number]): string {
  return round.winner ?? round.status;
}

// A row of standings with a driver is a driver's, any other a constructor's.
export function label(row: Data<"/api/v1/standings">[number]): string {
  return row.driver ? `${row.driver} ${row.name}` : row.team;
}
