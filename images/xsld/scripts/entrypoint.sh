#!/bin/sh
# The image's entrypoint: starts the server, hands a stop on to it, and ends with its exit code.
/opt/ibm/WebSphere/eXtremeScale/wxs/startXSLD.sh &
server=$!
trap 'kill -TERM "$server" 2>/dev/null' TERM INT
wait "$server"
code=$?
# A signal ends a wait before the server has ended.
while kill -0 "$server" 2>/dev/null; do
  wait "$server"
  code=$?
done
exit "$code"
