# Python 3.8 or later, nothing to install. Settles each pick of a season by the published classification, and compares
# the sum with /accuracy.
import json, os, sys, urllib.request


def get(path):
    request = urllib.request.Request(os.environ["GRIDCAST_URL"] + "/api/v1" + path)
    request.add_header("Authorization", "Bearer " + os.environ["GRIDCAST_KEY"])
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


picks = get("/predictions")
if not picks:
    print("no pick is frozen yet")
    sys.exit()
year = picks[0]["session_key"] // 1000
results = {result["session_key"]: result for result in get(f"/results?year={year}")}
hits = settled = 0
for pick in picks:
    result = results.get(pick["session_key"])
    if result is None:
        print(f"{pick['gp_name']}: open")
        continue
    won = next(row["driver"] for row in result["race"] if row.get("position") == 1)
    picked = pick["prediction"]["winner"]
    if pick["winner_hit"] != (picked == won):
        sys.exit(f"{pick['gp_name']}: /predictions and /results differ. Read both again, because one may be a version older.")
    settled += 1
    hits += picked == won
    corrected = ", corrected" if any(r["revision"] > 1 for r in result["revisions"]) else ""
    print(f"{pick['gp_name']}: picked {picked} with {pick['prediction']['confidence_pct']} %, {won} won{corrected}")
for change in get(f"/changes?year={year}"):
    if change["kind"] == "pick_voided":
        print(f"{change['gp_name']}: void, stakes return")
if settled:
    rate = get(f"/accuracy?year={year}")["pre_race"]["winner_hit_rate_pct"]
    print(f"{hits} of {settled} picks won: {100 * hits / settled:.1f} %; /accuracy says {rate} %")
