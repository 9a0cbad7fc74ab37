#!/usr/bin/env bash
# Runs the main job, a pair of proxies and a measurement on ARM: builds for linux/arm (v7) and linux/arm64 and runs
# both under qemu's user emulation (Debian: qemu-user-static). Everything stays on loopback, and
# nothing is left running.
set -euo pipefail
cd "$(dirname "$0")/.."

patience=60 # seconds that a process may take to say where it listens, or to end
work=$(mktemp -d)
pids=()

clean() {
	local status=$? pid
	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2> /dev/null || true
	done
	if ((status != 0)); then
		tail -n 20 "$work"/*/*.err >&2 || true
	fi
	rm -rf "$work"
}
trap clean EXIT

fail() {
	echo "arm.sh: $*" >&2
	exit 1
}

# hhfr ARG…: the binary under test. Gives up where it hangs.
hhfr() { timeout "$patience" "$emulator" "$binary" "$@" -q; }

# start NAME ARG…: a server in the background; its pid is appended to pids, its line of JSON goes to
# NAME.json.
start() {
	local name=$1
	shift
	: > "$dir/$name.json"
	"$emulator" "$binary" "$@" -o json > "$dir/$name.json" 2> "$dir/$name.err" &
	pids+=($!)
	for ((i = 0; i < patience * 20; i++)); do
		[[ $(wc -l < "$dir/$name.json") -gt 0 ]] && return
		kill -0 $! 2> /dev/null || break
		sleep 0.05
	done
	fail "$arch: $name did not start"
}

# stop PID…: ends servers; each must end in order.
stop() {
	local pid
	for pid in "$@"; do
		kill -TERM "$pid"
		timeout "$patience" tail --pid="$pid" -f /dev/null || fail "$arch: process $pid does not end"
		wait "$pid" || fail "$arch: process $pid ended with status $?"
	done
	pids=()
}

# same DIR FROM: DIR has a request and a reply for each message, in pairs, all as they were sent.
# FROM is the number of the first pair.
same() {
	local folder=$1 n=$2 file kind
	for file in testdata/soap/*.xml; do
		for kind in request reply; do
			cmp "$file" "$(printf '%s/%06d-%s.xml' "$folder" "$n" "$kind")" || fail "$arch: $file came out differently ($folder)"
		done
		n=$((n + 1))
	done
}

main_job() {
	start serve serve --listen 127.0.0.1:0 --store "$dir/store" --sync 1KiB
	url=$(sed -E 's/.*"url":"([^"]*\/echo)".*/\1/' "$dir/serve.json")
	hhfr stream "$url" testdata/soap/*.xml --require-hhfr --store "$dir/client" --sync 1KiB --record "$dir/session.pcapng" --save-dir "$dir/there" -o json > "$dir/stream.json"
	same "$dir/there" 1
	hhfr decode "$dir/session.pcapng" --save-dir "$dir/decoded" --write-streams "$dir/raw" > "$dir/decode.txt"
	hhfr reconstruct "$dir"/raw/*.bin --store "$dir/store" --save-dir "$dir/again" > "$dir/reconstruct.txt"
	same "$dir/again" 1
}

proxy_pair() {
	local near file form count=0
	start far proxy --listen 127.0.0.1:0 --upstream "$url"
	start near proxy --listen 127.0.0.1:0 --upstream "$(address far)/echo" --record "$dir/link.pcapng"
	near=$(address near)/echo
	for file in testdata/soap/*.xml; do
		form=(-H 'Content-Type: text/xml; charset=utf-8' -H 'SOAPAction: ""')
		((++count % 2)) || form+=(-H 'Transfer-Encoding: chunked')
		timeout "$patience" curl -sS --fail "${form[@]}" --data-binary @"$file" -o "$dir/reply" "$near"
		cmp "$file" "$dir/reply" || fail "$arch: $file came out of the pair differently"
	done
	hhfr stream "$near" testdata/soap/*.xml --require-hhfr --save-dir "$dir/through" -o json > "$dir/through.json"
	same "$dir/through" 1
	hhfr replay "$dir/session.pcapng" --to "$near" --as soap > "$dir/replay.txt"
}

# after_pair: each message went over the link as hhfr, there and back.
after_pair() {
	local kind
	hhfr decode "$dir/link.pcapng" --save-dir "$dir/link" > "$dir/link.txt"
	sha256sum testdata/soap/*.xml | cut -d ' ' -f 1 | sort -u > "$dir/sent"
	for kind in request reply; do
		sha256sum "$dir/link"/*-"$kind".xml | cut -d ' ' -f 1 | sort -u | comm -23 "$dir/sent" - > "$dir/missing"
		[[ ! -s $dir/missing ]] || fail "$arch: a $kind is not in the recording of the link"
	done
}

# measure: sessions of two sizes and two lengths, twice by each of eight ways, with the server in
# another process.
measure() {
	hhfr bench session "$url" --service sum --sizes 5,10 --n 1,5 --repeat 2 --save "$dir/bench.jsonl" > "$dir/bench.txt"
	[[ $(grep -c '"session":' "$dir/bench.jsonl") == 64 ]] || fail "$arch: not all sessions were measured"
	grep -q '^ *10 .* / 5650 ' "$dir/bench.txt" || fail "$arch: no table of the paper's floats"
	hhfr bench report "$dir/bench.jsonl" > "$dir/report.txt"
}

address() { sed -E 's/.*"http":"([^"]*)".*/http:\/\/\1/' "$dir/$1.json"; }

run() {
	arch=$1 emulator=$2
	dir=$work/$arch binary=$work/$arch/hhfr
	mkdir "$dir"
	command -v "$emulator" > /dev/null || fail "$emulator is not installed"
	GOOS=linux GOARCH=$arch GOARM=7 CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$binary" ./cmd/hhfr
	hhfr version
	main_job
	proxy_pair
	measure
	stop "${pids[2]}" "${pids[1]}" "${pids[0]}"
	after_pair
	echo "$arch: $(wc -l < "$dir/sent") messages there and back, by a stream and through a pair: as sent; sessions measured ($SECONDS s)"
}

run arm qemu-arm-static
run arm64 qemu-aarch64-static
