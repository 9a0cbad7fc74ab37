#!/usr/bin/env python3
"""Draws docs/pictures/*.svg from the results beside them: pictures.py [FOLDER to write to].

bytes.json has figures of `compare` and of the interop test of EXI, session.json those of `hhfr bench
session`, estimate.txt the output of `hhfr estimate`. The same results give the same pictures."""

import json
import pathlib
import sys
from xml.sax.saxutils import escape

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "pictures"
FONT = "font-family='ui-sans-serif,system-ui,Segoe UI,Helvetica,Arial,sans-serif'"
MONO = "font-family='ui-monospace,SFMono-Regular,Menlo,Consolas,monospace'"
WIDTH = 760

# Text follows the reader's colours; the bars are readable on both.
STYLE = """<style>
text { fill: #1f2328 } .soft { fill: #59636e } .line { stroke: #d1d9e0 } .card { fill: #f6f8fa }
.gzip { fill: #9a8478 } .zstd { fill: #b58900 } .exi { fill: #6c71c4 }
.hhfr { fill: #1a8f6e } .first-call, .met { fill: #1a8f6e; stroke: #1a8f6e }
.soap-new, .soap-kept { fill: #9a8478; stroke: #9a8478 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .soft { fill: #9198a1 } .line { stroke: #3d444d } .card { fill: #161b22 }
.hhfr { fill: #2bb38b } .first-call, .met { fill: #2bb38b; stroke: #2bb38b }
}
</style>"""


class Picture:
    """A picture that grows downward."""

    def __init__(self, title):
        self.parts, self.title, self.height = [], title, 0

    def text(self, x, y, text, size=13, kind="", anchor="start", font=FONT, weight="normal"):
        self.parts.append(
            f"<text x='{x:g}' y='{y:g}' font-size='{size}' {font} text-anchor='{anchor}' font-weight='{weight}'"
            f" class='{kind}' xml:space='preserve'>{escape(text)}</text>")

    def bar(self, x, y, width, height, kind):
        self.parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{max(width, 1):.1f}' height='{height:g}' rx='2' class='{kind}'/>")

    def line(self, x, y, x2, y2, kind="line", width=1):
        self.parts.append(
            f"<line x1='{x:.1f}' y1='{y:g}' x2='{x2:.1f}' y2='{y2:g}' class='{kind}' stroke-width='{width}'/>")

    def dot(self, x, y, kind):
        self.parts.append(f"<circle cx='{x:.1f}' cy='{y:g}' r='4' class='{kind}'/>")

    def write(self, name, folder):
        head = (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {self.height:g}' width='{WIDTH}' "
                f"height='{self.height:g}' role='img'>\n<title>{escape(self.title)}</title>\n{STYLE}\n")
        (folder / name).write_text(head + "\n".join(self.parts) + "\n</svg>\n", encoding="utf-8")


def grouped(n):
    """A number of bytes as people write it."""
    return f"{n:,.0f}" if n >= 100 else f"{n:.1f}"


def draw_bytes(folder):
    """Bars of each way to carry a message, in parts of its envelope."""
    rows = json.loads((SOURCE / "bytes.json").read_text())["rows"]
    ways = [("gzip", "gzip"), ("zstd", "zstd, window kept"), ("exi", "EXI, strict schema"), ("hhfr", "hhfr")]
    p = Picture("Bytes of a message, in percent of its envelope: gzip, zstd, EXI, hhfr")
    p.text(0, 18, "Bytes of a message, by what is in it", 15, weight="bold")
    left, right, y = 240, WIDTH - 130, 40
    for row in rows:
        p.text(0, y + 13, row["title"], weight="bold")
        p.text(0, y + 30, f"envelope {grouped(row['envelope'])} bytes", 11, "soft")
        for key, title in ways:
            width = (right - left) * row[key] / row["envelope"] / 0.6
            weight = "bold" if key == "hhfr" else "normal"
            p.text(left - 8, y + 11, title, 11, "soft", "end", weight=weight)
            p.bar(left, y, width, 13, key)
            p.text(left + width + 6, y + 11, f"{grouped(row[key])}  ({100 * row[key] / row['envelope']:.0f} %)", 11,
                   weight=weight)
            y += 17
        y += 14
    p.text(0, y + 4, "100 messages each, in order. gzip: each by itself. zstd: the best of four compressors whose window "
           "goes over", 11, "soft")
    p.text(0, y + 19, "all messages. EXI: each by itself, with a schema that knows every type. hhfr: with framing, "
           "without the shape (102 to 121 bytes, once).", 11, "soft")
    p.height = y + 30
    p.write("bytes.svg", folder)


def draw_session(folder):
    """Time-lines of one session: a dot for each reply."""
    ways = json.loads((SOURCE / "session.json").read_text())["ways"]
    p = Picture("Ten calls over GPRS: when their replies are there, with plain SOAP and with hhfr")
    p.text(0, 18, "Ten calls, one after the other, over GPRS (40 kbit/s, round trip 600 ms)", 15, weight="bold")
    left, right, top = 10, WIDTH - 20, 44
    last = max(way["ms"][-1] for way in ways)
    seconds = int(last / 1000) + 1
    bottom = top + 50 * len(ways)
    for s in range(0, seconds + 1, 2):
        x = left + (right - left) * s / seconds
        p.line(x, top - 6, x, bottom - 6)
        p.text(x, bottom + 10, f"{s} s", 11, "soft", "middle")
    y = top
    for way in ways:
        at = [left + (right - left) * ms / 1000 / seconds for ms in way["ms"]]
        p.text(left, y + 10, way["title"], 12, weight="bold")
        end = f"{way['ms'][-1] / 1000:.1f} s, {way['bytes']:,} bytes"
        p.text(right, y + 10, end, 12, "", "end")
        p.line(left, y + 26, at[-1], y + 26, way["way"], 2)
        for x in at:
            p.dot(x, y + 26, way["way"])
        y += 50
    p.text(0, bottom + 32, "A dot is a reply. Messages of ten floats that change, there and back; times are what bytes "
           "and round trips take.", 11, "soft")
    p.height = bottom + 42
    p.write("session.svg", folder)


def draw_estimate(folder):
    """A terminal."""
    lines = ["$ hhfr estimate testdata/pcap/pump.pcap --price-per-mb 0.40", *(SOURCE / "estimate.txt").read_text().rstrip("\n").split("\n")]
    p = Picture("What hhfr estimate prints")
    p.height = 24 + 16 * len(lines)
    p.bar(0, 0, WIDTH, p.height, "card")
    for i, line in enumerate(lines):
        head = line[:1] not in ("", "$") and line.split()[0] in ("WAY", "OPERATION", "LINK")
        p.text(14, 24 + 16 * i, line, 12.5, "soft" if head else "", font=MONO,
               weight="bold" if line.startswith(("$", "hhfr ", "Smallest")) else "normal")
    p.write("estimate.svg", folder)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    draw_bytes(folder)
    draw_session(folder)
    draw_estimate(folder)


if __name__ == "__main__":
    main()
