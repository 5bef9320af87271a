#!/bin/sh
# Takes what the image of mongo takes: `mongod` with its options, and the administrator's name and password in files.
set -eu
umask 077
shift # mongod
for word; do
  case $word in
    --replSet=*) FERRETDB_REPL_SET_NAME=${word#*=} ;;
    --keyFile=*)
      key=${word#*=}
      # as mongod: nobody else may read it, and it has 6 to 1024 characters
      [ "$(stat -c %a "$key")" = 600 ] || { echo "permissions on $key are too open" >&2; exit 1; }
      length=$(wc -c <"$key")
      [ "$length" -ge 6 ] && [ "$length" -le 1024 ] || { echo "the key in $key has $length characters" >&2; exit 1; }
      ;;
    --bind_ip_all) ;;
    *) echo "the stand-in does not know the option $word" >&2; exit 1 ;;
  esac
done
export FERRETDB_REPL_SET_NAME
FERRETDB_SETUP_USERNAME=$(cat "$MONGO_INITDB_ROOT_USERNAME_FILE")
FERRETDB_SETUP_PASSWORD=$(cat "$MONGO_INITDB_ROOT_PASSWORD_FILE")
export FERRETDB_SETUP_USERNAME FERRETDB_SETUP_PASSWORD
export FERRETDB_STATE_DIR=/data/db
exec ferretdb --handler=sqlite --sqlite-url=file:/data/db/ --listen-addr=:27017 --debug-addr=- --telemetry=disable \
  --setup-database=admin --test-enable-new-auth --log-level=warn
