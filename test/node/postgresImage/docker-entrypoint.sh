#!/bin/bash
# Does what the entrypoint of the image `postgres` does by its documentation: creates PGDATA with the user, password and database of its
# environment if there is none, then becomes the server.
set -eu
umask 077
mkdir -p "$PGDATA"
# The kubelet gives a volume to the pod's group, with rights that Postgres refuses.
chmod 700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust \
    --encoding=UTF8 --no-instructions
  rm /tmp/password
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
