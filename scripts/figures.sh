#!/usr/bin/env bash
# Prints the figures of the tree beside their limits, and the hand-overs of a call through a pair of
# proxies: how often a goroutine makes another one ready, in an execution trace. What the network
# wakes does not count.
set -euo pipefail
cd "$(dirname "$0")/.."

calls=2000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go test ./internal/layers -count=1 -run '^TestFigures$' -show
go test ./internal/proxy -run '^$' -bench '^BenchmarkCall$' -benchtime "${calls}x" -trace "$work/trace" -o "$work/test" > "$work/bench"
go tool trace -d=parsed "$work/trace" |
	awk -v calls="$calls" '/ (Waiting|NotExist)->Runnable/ && !/ G=-1 / { n++ }
		END { printf "%-56s %7.1f\n", "hand-overs of a call through a pair", n / calls }'
