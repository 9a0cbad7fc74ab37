#!/usr/bin/env bash
# Prints the figures that docs/architecture.md compares: sizes of types and packages, checks,
# hand-overs of a call.
set -euo pipefail
cd "$(dirname "$0")/.."

exec go run ./scripts/figures
