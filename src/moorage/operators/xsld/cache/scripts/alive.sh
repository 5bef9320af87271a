#!/bin/sh
# Whether the server goes on: its admin port is open, and its database gives an answer in time, whatever that says. A
# connection alone proves nothing: the kernel makes it for a server that has stopped long ago.
here=${0%/*}
grep -q ":$(printf '%04X' "$XSLD_ADMIN_PORT") [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null || exit 1
[ -x "$XSLD_SQL_TOOL" ] || exit 0
printf '%s\n' "$XSLD_SQL_CONNECT" | "$here/within.sh" "$XSLD_ANSWER_SECONDS" "$XSLD_SQL_TOOL" >/dev/null
[ $? -ne 137 ]
