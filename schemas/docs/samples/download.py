# Python 3.8 or later, nothing to install. The whole current season as one file, only if it has changed
# since the last time; then the winners.
import base64, csv, hashlib, io, os, time, urllib.error, urllib.request, zipfile

request = urllib.request.Request(os.environ["GRIDCAST_URL"] + "/api/v1/bulk")
request.add_header("Authorization", "Bearer " + os.environ["GRIDCAST_KEY"])
if os.path.exists("season.etag"):
    request.add_header("If-None-Match", open("season.etag").read().strip())
until = time.time() + 3600
while True:
    try:
        with urllib.request.urlopen(request) as answer:
            data = answer.read()
            digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
            if answer.headers["Repr-Digest"] != f"sha-256=:{digest}:":
                raise RuntimeError("the file is damaged")
            with open("season.new", "wb") as file:
                file.write(data)
            os.replace("season.new", "season.zip")
            with open("season.etag", "w") as file:
                file.write(answer.headers["ETag"])
        break
    except urllib.error.HTTPError as answer:
        if answer.code == 304:
            break
        if answer.code not in (429, 503) or time.time() > until:
            raise
        time.sleep(int(answer.headers.get("Retry-After", 5)))

with zipfile.ZipFile("season.zip") as season:
    name = next(name for name in season.namelist() if name.endswith("/calendar.csv"))
    with season.open(name) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8", newline="")):
            if row["winner"]:
                print(f"{row['gp_name']}: {row['winner']}")
