#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (default 10s) each, one on each processor at a
# time. Finding no target is a failure, and so is one that hardly runs.
#
# With FUZZCOMMITS=N these are the targets of packages that the last N commits changed, and of a
# tenth of the others, each day another one.
#
# fuzz.sh PACKAGE TARGET runs that one alone, on all processors unless WORKERS says otherwise.
#
# Go's engine tries for a minute to shorten each input that reaches new code. For targets with long
# inputs, or with goroutines, whose coverage is never the same twice, it does nothing else then: 10
# executions in a minute. So that is bounded here.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-10s}
# The slowest target does some 400 a second on a quiet machine.
least=200

processors=$(getconf _NPROCESSORS_ONLN)

# fuzz PACKAGE TARGET. A target fails if an input does. The engine itself now and then misses its
# own deadline at the end and says so, and nothing else: that is no failure of ours.
fuzz() {
	local out
	if out=$(go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x -parallel "${WORKERS:-$processors}" "$1" < /dev/null 2>&1); then
		printf '== %s %s\n%s\n' "$1" "$2" "$(tail -n 3 <<< "$out")"
		enough "$out"
	elif grep -qx '    context deadline exceeded' <<< "$out" && ! grep -qE 'Failing input|panic:|DATA RACE' <<< "$out"; then
		printf '== %s %s\n%s\n' "$1" "$2" "the engine missed its deadline, no input failed"
	else
		printf '== %s %s\n%s\n' "$1" "$2" "$out"
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

if (($# == 2)); then
	fuzz "$1" "$2" || exit 255 # at which xargs starts nothing more
	exit
fi

list=$(go test -list '^Fuzz' ./...)
targets=()
names=()
while read -r first second _; do
	case $first in
	Fuzz*) names+=("$first") ;;
	ok)
		for name in ${names[@]+"${names[@]}"}; do
			targets+=("$second $name")
		done
		names=()
		;;
	esac
done <<< "$list"

if ((${#targets[@]} == 0)); then
	echo "no fuzz targets found" >&2
	exit 1
fi
all=${#targets[@]}
if [[ -n ${FUZZCOMMITS:-} ]]; then
	changed=$(git log -n "$FUZZCOMMITS" --name-only --format= -- '*.go' 'go.mod' | xargs -rn 1 dirname | sort -u)
	module=$(go list -m)
	day=$(($(date +%s) / 86400))
	some=()
	for i in "${!targets[@]}"; do
		folder=${targets[i]%% *}
		if (((i + day) % 10 == 0)) || grep -qxF "${folder#"$module"/}" <<< "$changed"; then
			some+=("${targets[i]}")
		fi
	done
	targets=("${some[@]}")
fi
printf '%s\n' "${targets[@]}" | WORKERS=1 xargs -P "$processors" -L 1 scripts/fuzz.sh
echo "${#targets[@]} of $all fuzz targets, $time each"
