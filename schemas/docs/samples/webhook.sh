# A shell, openssl and xxd. The body is the received one, byte for byte. Compare in a language that does so
# in constant time where others can measure how long it takes.
BODY=$(mktemp); trap 'rm -f "$BODY"' EXIT; cat >"$BODY"
NOW=$(date +%s)
[ "$WEBHOOK_TIMESTAMP" -gt $((NOW - 300)) ] && [ "$WEBHOOK_TIMESTAMP" -lt $((NOW + 300)) ] || { echo "too old" >&2; exit 1; }
KEY=$(printf %s "${GRIDCAST_WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | xxd -p -c 100)
EXPECTED=$({ printf '%s.%s.' "$WEBHOOK_ID" "$WEBHOOK_TIMESTAMP"; cat "$BODY"; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" -binary | openssl base64 -A)
case " $WEBHOOK_SIGNATURE " in
*" v1,$EXPECTED "*) cat "$BODY" ;;
*) echo "not from gridcast" >&2; exit 1 ;;
esac
