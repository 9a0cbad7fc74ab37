#!/usr/bin/env python3
"""Prints bodies as writers with zlib code them, in base64, behind their names: coded.txt."""
import base64
import gzip
import io
import zlib

CALL = ('<?xml version="1.0" encoding="UTF-8"?>\n<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/'
        'envelope/" xmlns:ns1="urn:example:orders"><SOAP-ENV:Body><ns1:order><customer>C-%04d</customer><item>%s</item>'
        '<count>%d</count></ns1:order></SOAP-ENV:Body></SOAP-ENV:Envelope>\n')
UNIX = bytes.fromhex("1f8b0800000000000003")


def call(n):
    return (CALL % (n * 7919 % 10000, ("bolt", "nut", "washer", "screw")[n % 4], n)).encode()


def deflated(plain, level, window, memory):
    z = zlib.compressobj(level, zlib.DEFLATED, -window, memory)
    return z.compress(plain) + z.flush()


def in_gzip(header, plain, *params):
    end = zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    return header + deflated(plain, *params) + end


def by_file(plain):
    to = io.BytesIO()
    with gzip.GzipFile(fileobj=to, mode="wb", mtime=1700000000, filename="") as f:
        f.write(plain)
    return to.getvalue()


def say(name, body):
    print(name, base64.b64encode(body).decode())


for n in range(32):
    say("call", in_gzip(UNIX, call(n), 6, 15, 9))  # as PHP does
long = b"<all>" + b"".join(call(n)[39:] for n in range(400)) + b"</all>"
say("zlib", zlib.compress(call(1)))
say("raw", deflated(call(2), 6, 15, 8))
say("python", by_file(call(3)))
say("python, long", by_file(long))
say("java", in_gzip(bytes.fromhex("1f8b08000000000000ff"), call(4), 6, 15, 8))
say("nginx", in_gzip(UNIX, call(5), 1, 10, 3))
say("level 4, long", in_gzip(UNIX, long, 4, 15, 8))
flushed = zlib.compressobj(6, zlib.DEFLATED, 31)
say("flushed", flushed.compress(long[:999]) + flushed.flush(zlib.Z_SYNC_FLUSH) + flushed.compress(long[999:]) +
    flushed.flush())
say("with a name", UNIX[:3] + b"\x08" + UNIX[4:] + b"a.xml\0" + in_gzip(b"", call(6), 6, 15, 8))
say("empty", gzip.compress(b"", mtime=0))
say("wrong check", in_gzip(UNIX, call(7), 6, 15, 8)[:-5] + b"12345")
say("cut", in_gzip(UNIX, call(8), 6, 15, 8)[:-30])
say("two members", gzip.compress(call(9), mtime=0) * 2)
say("bytes behind", zlib.compress(call(10)) + b"!")
say("none", call(11))
say("bomb", gzip.compress(b"<a>" + bytes(3 << 20), mtime=0))
