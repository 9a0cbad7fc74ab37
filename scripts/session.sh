#!/usr/bin/env bash
# Makes testdata/pcap: a small recording of one session, as the client saw it, and the server's
# context store.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; rm -rf "$work"' EXIT
server=
go build -o "$work/hhfr" ./cmd/hhfr
"$work/hhfr" serve --listen 127.0.0.1:0 --store "$work/store" --sync 1KiB -o json > "$work/serve.json" 2> /dev/null &
server=$!
for _ in $(seq 100); do
	[[ -s $work/serve.json ]] && break
	sleep 0.1
done
url=$(sed -E 's/.*"url":"([^"]*\/echo)".*/\1/' "$work/serve.json")
"$work/hhfr" stream "$url" testdata/soap/*.xml --sync 1KiB --mode explicit --without zstd --require-hhfr --record "$work/session.pcapng" > /dev/null
kill -TERM "$server"
wait "$server"

rm -rf testdata/pcap/store
mkdir -p testdata/pcap/store/shapes
cp "$work/session.pcapng" testdata/pcap/session.pcapng
cp "$work"/store/shapes/* testdata/pcap/store/shapes/
chmod 0644 testdata/pcap/session.pcapng testdata/pcap/store/shapes/*
