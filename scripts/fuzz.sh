#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (default 10s) each. Finding no target is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-10s}
# A target fails if an input does. The engine itself now and then misses its own deadline at the end and says so, and nothing else: that is no failure of ours.
fuzz() {
	local out
	if out=$(go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" -fuzzminimizetime 10x "$2" < /dev/null 2>&1); then
		tail -n 3 <<< "$out"
	elif grep -qx '    context deadline exceeded' <<< "$out" && ! grep -qE 'Failing input|panic:|DATA RACE' <<< "$out"; then
		echo "the engine missed its deadline, no input failed"
	else
		echo "$out"
		return 1
	fi
}

list=$(go test -list '^Fuzz' ./...)
names=()
count=0
while read -r first second _; do
	case $first in
	Fuzz*) names+=("$first") ;;
	ok)
		for name in ${names[@]+"${names[@]}"}; do
			count=$((count + 1))
			echo "== $second $name"
			fuzz "$name" "$second"
		done
		names=()
		;;
	esac
done <<< "$list"

if ((count == 0)); then
	echo "no fuzz targets found" >&2
	exit 1
fi
echo "$count fuzz targets, $time each"
