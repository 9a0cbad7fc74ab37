#!/usr/bin/env python3
"""Prints what zlib makes of inputs that deflate_test.go makes as well: golden.txt."""
import zlib


def made(kind, size, seed):
    """The input: a byte for each number of a generator, by kind of input."""
    out, x = bytearray(), seed
    while len(out) < size:
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        n = x >> 16
        if kind == "zeros":
            out.append(0)
        elif kind == "noise":
            out.append(n & 255)
        elif kind == "two":
            out.append(97 + (n & 1))
        elif kind == "skewed":
            out.append((n & 255) * (n >> 8 & 15) * (n >> 12 & 7) >> 9 & 255)
        elif kind == "far":
            k = n % 40 + 5
            if len(out) > 40000:
                at = len(out) - 32400 - (n & 511)
                out += out[at:at + k]
            else:
                out.append(n & 255)
        else:
            out += b"<item n=\"%d\"><name>%s</name><price>%d</price></item>" % (
                n & 63, (b"alpha", b"beta", b"gamma", b"delta")[n >> 6 & 3] * (n >> 8 & 3), n >> 3)
    return bytes(out[:size])


sizes = [0, 1, 2, 3, 5, 258, 259, 262, 263, 1000, 4000, 33000, 66000, 140000]
n = 0
for kind in ("xml", "zeros", "noise", "two", "skewed", "far"):
    for size in sizes:
        for level in range(1, 10):
            n += 1
            window, memory = ((15, 8), (15, 9), (15, 8), (9 + n % 7, 1 + n % 9))[n % 4]
            z = zlib.compressobj(level, zlib.DEFLATED, -window, memory)
            z = z.compress(made(kind, size, n)) + z.flush()
            print(kind, size, n, level, window, memory, len(z), zlib.crc32(z))
