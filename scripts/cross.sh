#!/usr/bin/env bash
# Builds hhfr for every system it is made for, into dist/, and vets the code, with its tests, as it
# differs there: 64-bit Linux and Android have the files that `make lint` vets.
# A binary over MAX_MB (default 26) is a failure, and so is one whose size is more than a fiftieth off
# what docs/data/sizes.csv says, or that finds methods by name. With --record it writes that file,
# of which pages are made (go test ./internal/layers -run TestClaims -update).
set -euo pipefail
cd "$(dirname "$0")/.."

max=$((${MAX_MB:-26} * 1000 * 1000))
export CGO_ENABLED=0
mkdir -p dist

sizes=docs/data/sizes.csv
recorded=$(mktemp)
trap 'rm -f "$recorded"' EXIT
printf '# scripts/cross.sh --record, %s, %s\nsystem,bytes\n' "$(date -u +%F)" "$(go env GOVERSION)" > "$recorded"

failed=0
if go build -ldflags=-dumpdep -o /dev/null ./cmd/hhfr 2>&1 | grep -m 1 ReflectMethod; then
	echo "hhfr finds methods by name, so that the linker keeps those of every type" >&2
	failed=1
fi
for target in linux/amd64 linux/arm64 linux/arm/7 android/arm64 windows/amd64 darwin/arm64; do
	IFS=/ read -r GOOS GOARCH GOARM <<< "$target"
	export GOOS GOARCH
	name=hhfr-$GOOS-$GOARCH
	if [[ -n ${GOARM:-} ]]; then
		export GOARM
		name+=v$GOARM
	else
		unset GOARM
	fi
	if [[ $GOOS == windows ]]; then
		name+=.exe
	fi
	go build -trimpath -ldflags='-s -w' -o "dist/$name" ./cmd/hhfr
	case $target in
	linux/arm/* | windows/* | darwin/*) go vet ./... ;;
	esac
	size=$(wc -c < "dist/$name")
	printf '%-24s %10d bytes\n' "$name" "$size"
	if ((size > max)); then
		echo "$name is over $max bytes" >&2
		failed=1
	fi
	echo "$target,$size" >> "$recorded"
	stated=$(sed -n "s:^$target,::p" "$sizes")
	if [[ ${1:-} != --record ]] && ((size * 50 > ${stated:-0} * 51 || size * 50 < ${stated:-0} * 49)); then
		echo "$sizes says ${stated:-nothing} of the size of $target; --record writes it" >&2
		failed=1
	fi
done
if [[ ${1:-} == --record ]]; then
	cp "$recorded" "$sizes"
fi
exit "$failed"
