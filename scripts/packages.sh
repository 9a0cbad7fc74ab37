#!/usr/bin/env bash
# Makes packages of hhfr in dist/packages: .deb for Debian and its relatives and for Termux, with man
# pages and completions. PACKAGES chooses some of them, NFPM is the program that writes them.
set -euo pipefail
cd "$(dirname "$0")/.."

nfpm=${NFPM:?the program nfpm; make packages sets it}
packages=${PACKAGES:-debian/amd64 debian/arm64 debian/armhf termux/aarch64}
# The version of the last tag; without one 0.0.0, at the commit's date.
VERSION=${VERSION:-$(git describe --tags --match 'v*' --exact-match 2> /dev/null || git log -1 --format='0.0.0~%cd.%h' --date=format:%Y%m%d)}
export VERSION=${VERSION#v} CGO_ENABLED=0

out=dist/packages
rm -rf "$out"
mkdir -p "$out/man" "$out/completion"
go test ./cmd/hhfr -count=1 -run '^TestManPages$' -man "$PWD/$out/man" > /dev/null
gzip -9n "$out"/man/*.1
go build -o "$out/hhfr-here" ./cmd/hhfr
"$out/hhfr-here" completion bash > "$out/completion/hhfr.bash"
"$out/hhfr-here" completion zsh > "$out/completion/_hhfr"
"$out/hhfr-here" completion fish > "$out/completion/hhfr.fish"
rm "$out/hhfr-here"

build() { # GOOS GOARCH GOARM
	GOOS=$1 GOARCH=$2 GOARM=${3:-} go build -trimpath -ldflags='-s -w' -o "$out/$TARGET/hhfr" ./cmd/hhfr
}

for package in $packages; do
	export TARGET=${package/\//-} ARCH=${package#*/}
	config=packaging/nfpm.yaml
	case $package in
	debian/amd64 | debian/arm64) build linux "$ARCH" ;;
	debian/armhf) build linux arm 7 ;;
	termux/aarch64)
		build android arm64
		config=packaging/termux.yaml
		;;
	*)
		echo "no package $package" >&2
		exit 2
		;;
	esac
	name=$out/hhfr_${VERSION}_$ARCH.deb
	if [[ $package == termux/* ]]; then
		name=$out/hhfr-termux_${VERSION}_$ARCH.deb
	fi
	"$nfpm" package --packager deb --config "$config" --target "$name"
done
