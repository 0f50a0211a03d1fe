# Python 3.8 or later, nothing to install.
# Waits for a race with a red flag, and fails if your page missed it.
import datetime, json, os, time, urllib.request

HOST, KEY = os.environ["GRIDCAST_URL"], os.environ["GRIDCAST_KEY"]  # a key that begins with gc_test_


def get(path):
    request = urllib.request.Request(HOST + path, headers={"Authorization": "Bearer " + KEY})
    return json.load(urllib.request.urlopen(request))["data"]


def instant(text):
    return datetime.datetime.fromisoformat(text).timestamp()


weekends = get("/sandbox/status")["sandbox"]["weekends"]
race = next(w for w in weekends if w["kind"] == "red flag with restart" and instant(w["lights_out"]) > time.time())
print("waiting for lights out at", race["lights_out"])
time.sleep(max(0, instant(race["lights_out"]) - time.time()))
shown = []
while "suspended" not in shown and time.time() < instant(race["ends_at"]):
    state = get("/api/v1/live")["state"]  # in a test of yours: the state that your page shows
    if state not in shown:
        shown.append(state)
    time.sleep(3)
assert "suspended" in shown, f"the page showed {shown}"
print("the page showed the red flag")
