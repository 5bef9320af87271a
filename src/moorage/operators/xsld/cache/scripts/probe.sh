#!/bin/sh
# Whether this member may serve clients, told by the member itself, so that it holds while nobody else watches: its
# database answers, and it has joined the group. The first member is the group; the others begin as a group of their own.
[ -x "$XSLD_SQL_TOOL" ] || exit 0
count=$(printf '%s\n%s\n' "$XSLD_SQL_CONNECT" "$XSLD_SQL_COUNT" | "$XSLD_SQL_TOOL" 2>/dev/null |
  grep -E -o '^[[:space:]]*[0-9]+[[:space:]]*$' | tail -n 1 | tr -d '[:space:]')
[ -n "$count" ] || exit 1
case $MEMBER_NAME in
  *-0) exit 0 ;;
esac
[ "$count" -gt 1 ]
