#!/bin/busybox sh
# As the image of InfluxDB: makes the database that $INFLUXDB_DB names while nobody else is listened to, then serves.
set -eu
if [ -n "${INFLUXDB_DB:-}" ]; then
  INFLUXDB_HTTP_BIND_ADDRESS=127.0.0.1:8086 influxd -config /etc/influxdb/influxdb.conf &
  server=$!
  until busybox wget -q -O /dev/null http://127.0.0.1:8086/ping; do
    kill -0 "$server"
    busybox sleep 0.2
  done
  busybox wget -q -O - --post-data "q=CREATE DATABASE \"$INFLUXDB_DB\"" http://127.0.0.1:8086/query
  kill "$server"
  wait "$server"
fi
exec influxd -config /etc/influxdb/influxdb.conf
