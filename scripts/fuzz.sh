#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (default 10s) each. Finding no target is a
# failure, and so is one that hardly runs.
#
# Go's engine tries for a minute to shorten each input that reaches new code. For targets with long
# inputs, or with goroutines, whose coverage is never the same twice, it does nothing else then: 10
# executions in a minute. So that is bounded here.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-10s}
# The slowest target does some 400 a second on a quiet machine.
least=200
# A target fails if an input does. The engine itself now and then misses its own deadline at the end
# and says so, and nothing else: that is no failure of ours.
fuzz() {
	local out
	if out=$(go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" -fuzzminimizetime 10x "$2" < /dev/null 2>&1); then
		tail -n 3 <<< "$out"
		enough "$out"
	elif grep -qx '    context deadline exceeded' <<< "$out" && ! grep -qE 'Failing input|panic:|DATA RACE' <<< "$out"; then
		echo "the engine missed its deadline, no input failed"
	else
		echo "$out"
		return 1
	fi
}

# enough fails for a target that was executed less than it should be. Inputs of earlier runs, which
# Go keeps, count: a target may have so many that they take all the time.
enough() {
	local execs kept
	execs=$(grep -oE 'execs: [0-9]+' <<< "$1" | tail -n 1 | grep -oE '[0-9]+' || echo 0)
	kept=$(grep -oE 'baseline coverage: [0-9]+' <<< "$1" | tail -n 1 | grep -oE '[0-9]+$' || echo 0)
	execs=$((execs + kept))
	if ((execs < least)); then
		echo "only $execs executions in $time, at least $least are expected" >&2
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
