# Python 3.8 or later, nothing to install. The body is the received one, byte for byte.
import base64, hashlib, hmac, json, os, sys, time


def genuine(secret, headers, body):
    message, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message or not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    key = base64.b64decode(secret[len("whsec_"):] if secret.startswith("whsec_") else secret)
    signed = f"{message}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(given.encode(), expected.encode()) for given in headers.get("webhook-signature", "").split())


body = sys.stdin.buffer.read()
headers = {name: os.environ.get(name.upper().replace("-", "_"), "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
if not genuine(os.environ["GRIDCAST_WEBHOOK_SECRET"], headers, body):
    sys.exit("not from gridcast")  # a server answers 401
message = json.loads(body)  # a server has answered 204 by now
if message["type"] == "version.published":
    if not message["data"]["complete"]:
        print("ask for everything")
    for change in message["data"]["changes"]:
        query = "?" + change["query"] if "query" in change else ""
        print("ask for", change["path"] + query, change.get("etag", ""))
