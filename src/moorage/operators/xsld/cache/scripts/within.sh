#!/bin/sh
# Runs a command that may hang: within.sh SECONDS COMMAND... After so many seconds it is killed, and the code is 137. What
# it says on stderr is lost, with what is said there of its end.
exec 3<&0 2>/dev/null
if command -v timeout >/dev/null; then
  timeout -s KILL "$@" <&3 3<&-
  exit
fi
left=$1
shift
"$@" <&3 3<&- &
child=$!
while kill -0 "$child"; do
  [ "$left" -gt 0 ] || kill -KILL "$child"
  left=$((left - 1))
  sleep 1
done
wait "$child"
