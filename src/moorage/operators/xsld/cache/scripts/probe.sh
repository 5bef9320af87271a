#!/bin/sh
# Whether this member may serve clients, told by the member itself, so that it holds while nobody else watches: its
# database answers, and it is in a group with others. One that is alone may have lost what it had: it serves only if the
# file beside this script names it, in which moorage says who is the whole group. The scripts change under pods that run:
# one that was started before a variable came to be has none.
here=${0%/*}
[ -x "$XSLD_SQL_TOOL" ] || exit 0
count=$(printf '%s\n%s\n' "$XSLD_SQL_CONNECT" "$XSLD_SQL_COUNT" |
  "$here/within.sh" "${XSLD_ANSWER_SECONDS:-8}" "$XSLD_SQL_TOOL" |
  grep -E -o '^[[:space:]]*[0-9]+[[:space:]]*$' | tail -n 1 | tr -d '[:space:]')
[ -n "$count" ] || exit 1
[ "$count" -gt 1 ] && exit 0
[ "$count" -eq 1 ] && [ "$(cat "$here/alone" 2>/dev/null)" = "$MEMBER_NAME" ]
