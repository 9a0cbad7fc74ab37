#!/usr/bin/env bash
# Makes a release in dist/release: an archive for every system that hhfr is made for, with man pages
# and completions, the packages, the page for browsers, a bill of materials (CycloneDX) and
# SHA256SUMS. It is reproducible: the same commit gives the same bytes with the same Go, wherever its
# folder is. A second build, of a clone elsewhere, proves that before the checksums are written.
#
# TARGETS chooses some systems, PACKAGES some packages; NFPM and BILL are the programs that write
# packages and bills.
set -euo pipefail
cd "$(dirname "$0")/.."

bill=${BILL:?the program cyclonedx-gomod; make release sets it}
targets=${TARGETS:-linux/amd64 linux/arm64 linux/arm/7 android/arm64 windows/amd64 darwin/arm64}
if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
	echo "release.sh: the checkout has changes: nobody could make this release again" >&2
	exit 1
fi
commit=$(git rev-parse HEAD)
# What is dated has the commit's time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0

scripts/packages.sh
version=$(git describe --tags --match 'v*' --exact-match 2> /dev/null || git log -1 --format='0.0.0-%cd.%h' --date=format:%Y%m%d)
version=${VERSION:-$version}
version=${version#v}
out=$PWD/dist/release
rm -rf "$out"
mkdir -p "$out"
cp dist/packages/*.deb "$out"

# program FOLDER TARGET FILE: builds the program of a checkout.
program() {
	local system arch arm
	IFS=/ read -r system arch arm <<< "$2"
	(cd "$1" && GOOS=$system GOARCH=$arch GOARM=$arm go build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$3" ./cmd/hhfr)
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q --no-hardlinks . "$work/elsewhere"
git -C "$work/elsewhere" -c advice.detachedHead=false checkout -q "$commit"

for target in $targets; do
	name=hhfr-$version-${target//\//-}
	binary=hhfr
	if [[ $target == windows/* ]]; then
		binary=hhfr.exe
	fi
	folder=$work/$name
	mkdir -p "$folder"
	program . "$target" "$folder/$binary"
	program "$work/elsewhere" "$target" "$work/again"
	if ! cmp -s "$folder/$binary" "$work/again"; then
		echo "release.sh: another folder gives another $target" >&2
		exit 1
	fi
	cp -r LICENSE README.md CHANGELOG.md dist/packages/man dist/packages/completion "$folder"
	if [[ $target == windows/* ]]; then
		find "$folder" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
		(cd "$work" && find "$name" | LC_ALL=C sort | TZ=UTC zip -q -X -@ "$out/$name.zip")
	else
		tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$name" |
			gzip -9n > "$out/$name.tar.gz"
	fi
done

scripts/page.sh "$out/hhfr-$version.html"
"$work/elsewhere/scripts/page.sh" "$work/again"
if ! cmp -s "$out/hhfr-$version.html" "$work/again"; then
	echo "release.sh: another folder gives another page" >&2
	exit 1
fi

GOOS=linux GOARCH=amd64 "$bill" app -json -licenses -noserial -notimestamp -main cmd/hhfr -output "$out/hhfr-$version.cdx.json" . 2> "$work/bill.txt" || {
	cat "$work/bill.txt" >&2
	exit 1
}
(cd "$out" && sha256sum -- * > "$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
cat "$out/SHA256SUMS"
