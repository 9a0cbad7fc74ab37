#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (default 10s) each. Finding no target is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-10s}
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
			go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 10x "$second" < /dev/null
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
