#!/usr/bin/env bash
# Runs the tests of a build tag: tagged.sh TAG NAME TIMEOUT [MODULE]. That none ran is a failure.
# With SHORT=1 they do a fifth of what takes long.
set -euo pipefail
cd "$(dirname "$0")/../${4:-.}"

tag=$1 name=$2 timeout=$3
log=$(mktemp)
trap 'rm -f "$log"' EXIT

status=0
go test ${SHORT:+-short} -count=1 -tags "$tag" -run "$name" -timeout "$timeout" -v ./... > "$log" 2>&1 || status=$?
grep -vE '^(\?|=== |testing: warning|PASS$|ok .*no tests to run)' "$log" || true
if ((status != 0)); then
	exit "$status"
fi
if ! grep -qE "^--- PASS: .*$name" "$log"; then
	echo "no test named *$name* passed: nothing was checked" >&2
	exit 1
fi
