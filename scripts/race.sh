#!/usr/bin/env bash
# Runs tests under the race detector: race.sh PACKAGE…. The detector's runtime now and then fails in a
# check of its own ("ThreadSanitizer: CHECK failed"), and ends a package in which nothing else failed:
# such packages run once more.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# race PACKAGE…. Commands that tests start would sleep for a second at their end, as the detector has it.
race() {
	GORACE=atexit_sleep_ms=10 go test -race -timeout 25m -shuffle=on "$@" 2>&1 | tee "$log"
}

race "$@" && exit
if grep -q '^ThreadSanitizer: CHECK failed' "$log" && ! grep -qE '^ *--- FAIL|DATA RACE|^panic:' "$log"; then
	mapfile -t again < <(awk '$1 == "FAIL" && $2 != "" { print $2 }' "$log")
	echo "the race detector itself failed; once more: ${again[*]}"
	race "${again[@]}"
	exit
fi
exit 1
