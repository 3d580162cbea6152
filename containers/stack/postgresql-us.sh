#!/bin/bash
# The accounts of the stack, run once by the image's entry point: `app` owns the database `app`, and
# may see what a barrier at the standby asks for; `repl` copies.
set -e
echo "host replication repl all scram-sha-256" >>"$PGDATA/pg_hba.conf"
psql --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" <<'SQL'
CREATE ROLE repl LOGIN REPLICATION PASSWORD 'repl';
CREATE ROLE app LOGIN PASSWORD 'app';
GRANT pg_read_all_stats TO app;
CREATE DATABASE app OWNER app;
SQL
