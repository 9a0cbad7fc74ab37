"""The packed form of shapes, for decode.py, written from docs/wire-format.md (§4.1)."""
import hashlib, os, re, zlib
VOCABULARY = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../internal/shape/transit/vocabulary.txt'), 'rb').read()
MOST, END, CLOSE, VALUE, APART, ROWS, OTHER, TYPES = 1 << 20, 5, 6, 14, 15, 16, 17, 19
LISTS, UNTIL = {5: 1, 6: 2, 4: 3, 9: 4}, {5: 0, 6: 1}           # kind of node: mark; until in elements and attributes
OTHERS, FIELDS = {7: 7, 8: 8, 2: 11, 3: 12}, {7: 2, 8: 0, 2: 1, 3: 1}    # kind of node: mark; how many numbers follow
KINDS = {mark: kind for kind, mark in [*LISTS.items(), *OTHERS.items()]}
TEXT, NAME = re.compile(rb'[\t\n\r -\xff]+'), re.compile(rb'<(?:[\v\f]([\x80-\xff]*[\0-\x7f]))?([^\0- />]*)')
def need(good, what):
    if not good: raise ValueError('packed shape: ' + what)
def number(b, at):                      # a uvarint, and where it ends
    n = next((i for i in range(at, len(b)) if b[i] < 128), None); need(n is not None and n - at < 10 and (b[n] or n == at), 'number')
    return bytes(b[at:n + 1]), n + 1
def uvarint(v): return bytes([v & 127 | 128 * (v > 127)]) + (uvarint(v >> 7) if v > 127 else b'')
def tail(kind, f):                      # §4.1.1: what a list with this in it ends with behind a close
    if kind == 6: return (m := TEXT.match(f)) and (m := re.search(rb'["\']', m[0])) and m[0]
    return (m := NAME.match(f)) and kind == 5 and b'</' + (b'\f' + m[1] if m[1] else b'') + m[2] + b'>'
def fold(octets):
    at, slots = 0, number(octets, 1)
    def node(until):                    # folds a node, and reports whether a text is at its end
        nonlocal at
        kind, at = octets[at], at + 1
        if kind in (0, *LISTS): n, at = number(octets, at); n = sum((c & 127) << 7 * i for i, c in enumerate(n))
        if kind == 0: at += n; need(TEXT.fullmatch(octets, at - n, at), 'base with marks in its texts'); return octets[at - n:at], True
        if kind == 1: at += 2; t, u = octets[at - 2:at]; return bytes([TYPES + t] if u == until and t <= 12 else [VALUE, t, u]), False
        f, text = b'', False
        if kind in LISTS:
            for _ in range(n): part, after = node(UNTIL.get(kind, until)); f, text = f + bytes([APART] * (text and TEXT.match(part) is not None)) + part, after
            end = tail(kind, f)
            return bytes([LISTS[kind]]) + (f[:-len(end)] + bytes([CLOSE]) if end and f.endswith(end) and f != end else f + bytes([END])), False
        for _ in range(FIELDS.get(kind, 0)): n, at = number(octets, at); f += n
        f = bytes([ROWS]) if (kind, f) == (7, b'\0\0') else bytes([OTHERS[kind]] if kind in OTHERS else [OTHER, kind]) + f
        part, text = node(until) if kind > 6 else (b'', False)
        return f + part, text
    at = slots[1]; return slots[0] + node(3)[0]
def unfold(folded):
    buf = bytearray(folded); slots, at = number(buf, 0)
    def peek(kind, start):              # the next octet; a tail is written out first
        need(at < len(buf), 'ends too early')
        if buf[at] == CLOSE: buf[at:at + 1] = (tail(kind, buf[start:at]) or need(False, 'tail')) + bytes([END]); need(len(buf) <= MOST, 'too large')
        return buf[at]
    def node(kind, start, until):       # of a list that begins at start
        nonlocal at
        begin, mark = at, peek(kind, start)
        while at < len(buf) and (peek(kind, start) > 31 or buf[at] in b'\t\n\r'): at += 1
        if at > begin: text = bytes(buf[begin:at]); at += buf[at:at + 1] == bytes([APART]); return b'\0' + uvarint(len(text)) + text
        at += 1
        if mark >= TYPES: return bytes([1, mark - TYPES, until])
        if mark == VALUE: at += 2; need(at <= len(buf), 'value cut'); return b'\1' + buf[at - 2:at]
        if mark == OTHER: at += 1; need(at <= len(buf), 'kind cut'); return bytes(buf[at - 1:at]) + node(kind, start, until)
        if mark == ROWS: return b'\7\0\0' + node(kind, start, until)
        out, inner = bytes([KINDS.get(mark) or need(False, f'mark {mark}')]), at; k = out[0]
        if k in LISTS:
            kids = []
            while peek(k, inner) != END: kids.append(node(k, inner, UNTIL.get(k, until)))
            at += 1; return out + uvarint(len(kids)) + b''.join(kids)
        for _ in range(FIELDS[k]): n, at = number(buf, at); out += n
        return out + (node(kind, start, until) if k > 6 else b'')
    out = b'\1' + slots + node(0, 0, 3); need(at == len(buf) and len(out) <= MOST, 'octets left over, or too large'); return out
def unpack_shape(octets, store):        # None without the base
    need(octets and octets[0] in (0, 1, 3, 7) and (octets[0] < 3 or 9 + 3 * (octets[0] > 3) <= len(octets) <= 4096), 'form')
    if not octets[0]: return octets[1:]
    base, rest = b'', octets[1:]
    if octets[0] >= 3: name, check, rest = rest[:8], rest[8:11], rest[8 + 3 * (octets[0] > 3):]; base = next((fold(o) for fp, o in store.items() if o and fp.startswith(name)), None)
    if base is None: return None
    z = zlib.decompressobj(-15, (VOCABULARY + base)[-32768:])
    try: out = z.decompress(rest, MOST + 1)
    except zlib.error as e: need(False, str(e))
    need(len(out) <= MOST and z.eof and not z.unused_data, 'octets behind it, or too large'); out = unfold(out); return out if octets[0] < 7 or hashlib.sha256(out).digest().startswith(check) else None
