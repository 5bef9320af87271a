#!/bin/sh
# Starts the image's own entrypoint. A pod that was rescheduled has a new address, which the member's record does not know
# by itself: once the member's database answers, the address stored there is set right. Nothing here keeps the member
# from starting, and on a first start there is no record to change.
here=${0%/*}
XSLD_CONTAINER_ALIAS=$(printf '%s' "$MEMBER_NAME" | tr -cd 'A-Za-z0-9')
export XSLD_CONTAINER_ALIAS
child=
ended=
trap 'ended=1; [ -n "$child" ] && kill -TERM "$child" 2>/dev/null' TERM INT
"$XSLD_ENTRYPOINT" "$@" &
child=$!
[ -n "$ended" ] && kill -TERM "$child" 2>/dev/null

ask() {
  printf '%s\n%s\n' "$XSLD_SQL_CONNECT" "$1" | "$here/within.sh" "$XSLD_ANSWER_SECONDS" "$XSLD_SQL_TOOL"
}

fix_address() {
  left=$XSLD_ADDRESS_TRIES
  while [ "$left" -gt 0 ] && kill -0 "$child" 2>/dev/null; do
    left=$((left - 1))
    stored=$(ask "$XSLD_SQL_READ" |
      grep -v ERROR | grep -E -o '[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:]*' |
      grep -v '^127\.' | tail -n 1)
    [ "$stored" = "$POD_IP" ] && return
    if [ -n "$stored" ]; then
      ask "$XSLD_SQL_WRITE" >/dev/null &&
        echo "moorage: the address of $MEMBER_NAME is now $POD_IP, it was $stored"
    fi
    sleep 2
  done
}
[ -x "$XSLD_SQL_TOOL" ] && fix_address &

# a signal ends the wait, not the child
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done

# the hook that has stopped the server is to end in peace: with this script its container ends
hook=$(cat "${TMPDIR:-/tmp}/moorage-stop" 2>/dev/null)
left=$XSLD_STOP_SECONDS
while [ -n "$hook" ] && [ "$left" -gt 0 ]; do
  kill -0 "$hook" 2>/dev/null || left=1
  left=$((left - 1))
  sleep 1
done
exit "$code"
