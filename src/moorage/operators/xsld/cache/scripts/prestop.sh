#!/bin/sh
# Stops the member in an orderly way within a bound. The stop may hang on the catalog server; then that one is killed,
# and the stop is run once more, as the vendor says.
stop() {
  "$XSLD_HOME/stopXSLD.sh" &
  stopping=$!
  left=$1
  while [ "$left" -gt 0 ]; do
    kill -0 "$stopping" 2>/dev/null || return 0
    left=$((left - 1))
    sleep 1
  done
  kill -KILL "$stopping" 2>/dev/null
  return 1
}
[ -x "$XSLD_HOME/stopXSLD.sh" ] || exit 0
stop "$XSLD_STOP_SECONDS" && exit 0
for process in /proc/[0-9]*; do
  grep -q cs-default "$process/cmdline" 2>/dev/null && kill -KILL "${process##*/}"
done
stop "$XSLD_STOP_SECONDS"
exit 0
