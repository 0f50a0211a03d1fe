# GRIDCAST_URL is this host, GRIDCAST_KEY your key. A 304 means: your copy is still current.
curl --silent --show-error --compressed --retry 3 --retry-max-time 3600 \
  --header "Authorization: Bearer $GRIDCAST_KEY" \
  --etag-save calendar.etag --etag-compare calendar.etag --output calendar.json \
  "$GRIDCAST_URL/api/v1/calendar"
curl --silent --show-error --retry 3 --retry-max-time 3600 \
  --header "Authorization: Bearer $GRIDCAST_KEY" \
  "$GRIDCAST_URL/api/v1/next-race"
