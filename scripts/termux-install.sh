#!/bin/sh
# Installs hhfr in Termux, from a file that was made elsewhere, or from this checkout with Termux's
# Go:
#
#	sh termux-install.sh [FILE]
#
# FILE is a binary of scripts/cross.sh for this phone (hhfr-android-arm64, or hhfr-linux-armv7 for
# 32 bits), or the package hhfr-termux_*.deb of make packages.
set -eu

fail() {
	echo "termux-install.sh: $*" >&2
	exit 1
}

if [ -z "${PREFIX:-}" ] || [ ! -x "$PREFIX/bin/pkg" ]; then
	fail "this is for Termux, whose PREFIX has bin/pkg; elsewhere go build ./cmd/hhfr"
fi
case $(uname -m) in
aarch64) wants=android-arm64 ;;
armv7l | armv8l) wants=linux-armv7 ;; # Go has no android build for 32 bits without a C compiler
*) fail "no build for $(uname -m): phones have aarch64, armv7l or armv8l" ;;
esac

"$PREFIX/bin/pkg" install -y ca-certificates

case ${1:-} in
*.deb)
	[ -r "$1" ] || fail "$1: no such file; make packages makes it, in dist/packages"
	case $1 in /*) ;; *) set -- "./$1" ;; esac # apt takes a bare name for that of a package
	"$PREFIX/bin/apt" install -y "$1"
	;;
?*)
	[ -r "$1" ] || fail "$1: no such file; scripts/cross.sh makes it, in dist/hhfr-$wants"
	# install replaces a program that runs, which cp cannot.
	install -m 700 "$1" "$PREFIX/bin/hhfr"
	;;
*)
	cd "$(dirname "$0")/.."
	[ -d cmd/hhfr ] || fail "no file given, and no checkout around this script"
	"$PREFIX/bin/pkg" install -y golang
	go build -trimpath -o "$PREFIX/bin/hhfr" ./cmd/hhfr
	;;
esac

"$PREFIX/bin/hhfr" version || fail "this build does not run here: it takes hhfr-$wants"
"$PREFIX/bin/hhfr" doctor || true # what fails has said what to do
