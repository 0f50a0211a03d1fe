# Every season as a file of its own. The service lists the seasons in /status.
for year in $(curl -fsS "$GRIDCAST_URL/status" | tr ',{' '\n\n' | sed -n 's/^"year"://p'); do
  curl --silent --show-error --fail --retry 20 --retry-max-time 3600 \
    --header "Authorization: Bearer $GRIDCAST_KEY" \
    --output "season-$year.zip" "$GRIDCAST_URL/api/v1/bulk?year=$year"
done
