#!/bin/bash
# The region eu begins as a copy of us, made through the link as all that follows; then the image's own
# entry point starts it with these settings.
set -e
if [[ ! -s $PGDATA/PG_VERSION ]]; then
    until pg_basebackup --dbname="host=link user=repl password=repl" --pgdata="$PGDATA" \
        --checkpoint=fast --write-recovery-conf; do
        sleep 1
    done
fi
exec docker-entrypoint.sh postgres "$@"
