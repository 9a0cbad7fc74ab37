#!/usr/bin/env bash
# Builds hhfr decode for browsers: one HTML file with all that it needs, page.sh [FILE].
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-dist/hhfr.html}
from=cmd/hhfr/internal/page
most=2500000 # bytes of the program, compressed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without inlining it is larger, and its compressed form smaller.
GOOS=js GOARCH=wasm go build -trimpath -gcflags=all=-l -ldflags='-s -w -buildid=' -o "$work/hhfr.wasm" "./$from/wasm"
gzip -9 -n "$work/hhfr.wasm"
size=$(wc -c < "$work/hhfr.wasm.gz")

# The policy of the page names its script and its style by their hashes, newlines around them
# included.
{
	echo
	cat "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$from/page.js"
} > "$work/script"
{
	echo
	sed -n '/^<style>$/,/^<\/style>$/p' "$from/page.html" | sed '1d;$d'
} > "$work/style"
hash() { echo "sha256-$(openssl dgst -sha256 -binary "$1" | base64 | tr -d '\n')"; }
sed "s|@SCRIPT-HASH@|$(hash "$work/script")|; s|@STYLE-HASH@|$(hash "$work/style")|" "$from/page.html" > "$work/page"

mkdir -p "$(dirname "$out")"
while IFS= read -r line; do
	case $line in
	@PROGRAM@) base64 "$work/hhfr.wasm.gz" ;;
	@SCRIPT@) tail -n +2 "$work/script" ;;
	*) printf '%s\n' "$line" ;;
	esac
done < "$work/page" > "$out"
echo "$out: $(wc -c < "$out") bytes, of which the program is $size bytes in gzip"
if ((size > most)); then
	echo "the program is above $most bytes" >&2
	exit 1
fi
