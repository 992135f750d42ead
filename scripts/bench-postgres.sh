#!/usr/bin/env bash
# A measurement over a private PostgreSQL that is made for it, on this disk, and removed afterwards. Arguments are those of
# `reshelf bench`; left out: claims at 2,000,000 waiting rows, then ten minutes of them under an old snapshot (some twenty
# minutes, 12 GiB of disk). RESHELF_BENCH_FOLDER says where the data lies, RESHELF_BENCH_PROFILE=dev takes an unoptimised build.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${RESHELF_BENCH_PROFILE:-release}
[ $# -gt 0 ] || set -- backlog --waiting 2000000 --claimers 4 --pinned-minutes 10
cargo build --profile "$profile" --locked -p app
program="$PWD/target/${profile/#dev/debug}/reshelf"

programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
programs=${programs:-$(dirname "$(command -v initdb)")}
as_user=()
folder=$(mktemp -d "${RESHELF_BENCH_FOLDER:-/var/tmp}/reshelf-bench-pg-XXXXXX")
if [ "$(id -u)" = 0 ]; then
  # initdb refuses to be root.
  as_user=(runuser -u postgres --)
  chown postgres "$folder"
fi
stop() {
  (cd / && "${as_user[@]}" "$programs/pg_ctl" stop -m fast -s -D "$folder/data") || true
  rm -rf "$folder"
}
trap stop EXIT

# Durability is PostgreSQL's default: fsync, full_page_writes and synchronous_commit are on. What differs is what anybody sets
# on a machine that has memory to spare.
(cd / && "${as_user[@]}" "$programs/initdb" --no-instructions --auth=trust --username=postgres --encoding=UTF8 \
  --locale=C.UTF-8 -D "$folder/data" > /dev/null)
(cd / && "${as_user[@]}" tee "$folder/data/postgresql.auto.conf" > /dev/null) <<SETTINGS
listen_addresses = ''
unix_socket_directories = '$folder'
shared_buffers = 2GB
max_wal_size = 8GB
min_wal_size = 2GB
checkpoint_timeout = 15min
shared_preload_libraries = 'pg_stat_statements'
SETTINGS
(cd / && "${as_user[@]}" "$programs/pg_ctl" start -w -s -D "$folder/data" -l "$folder/log")
"$programs/psql" -X -q -U postgres -h "$folder" -c 'CREATE DATABASE bench' postgres

"$program" bench "$@" --database "postgres://postgres@localhost/bench?host=$folder"
