#!/bin/sh
# Stops the member in an orderly way within a bound. The stop may hang on the catalog server; then that one is killed,
# and the stop is run once more, as the vendor says. The container's own script waits for the process noted here: it
# would end with the server, and cut this off.
here=${0%/*}
stop() {
  "$here/within.sh" "$XSLD_STOP_SECONDS" "$XSLD_HOME/stopXSLD.sh"
  [ $? -ne 137 ]
}
[ -x "$XSLD_HOME/stopXSLD.sh" ] || exit 0
{ echo $$ >"${TMPDIR:-/tmp}/moorage-stop"; } 2>/dev/null
stop && exit 0
for process in /proc/[0-9]*; do
  grep -q cs-default "$process/cmdline" 2>/dev/null && kill -KILL "${process##*/}"
done
stop
exit 0
