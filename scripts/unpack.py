"""Packed segments of the hhfr wire format, written from section 11 of docs/wire-format.md alone. decode.py uses it; § are sections of that page."""
import copy, functools, re
from itertools import accumulate, takewhile
TEXT, VALUE, SLOT, AGAIN, SEQUENCE, ELEMENT, ATTRIBUTE, ARRAY, OPTIONAL, CHOICE, LE, BE = range(12)
NUMBERS, BOOLEAN, UUID, DATETIME, MOST, WEIGHT, TABLE = (2, 3, 4, 6, 12), 5, 8, 9, 16384, 98304, list(range(256))
WORD = b'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_'
for _ in range(8): TABLE = [c >> 1 ^ (0x82F63B78 if c & 1 else 0) for c in TABLE]
def crc(data, before=0): return functools.reduce(lambda c, o: c >> 8 ^ TABLE[(c ^ o) & 255], data, before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
def need(good, what):                   # ValueError: malformed
    if not good: raise ValueError(what)
def uvarint(v): return bytes([v]) if v < 128 else bytes([v & 127 | 128]) + uvarint(v >> 7)
def unzigzag(u): return u >> 1 ^ -(u & 1)
def signed(v): return (v + (1 << 63)) % (1 << 64) - (1 << 63)    # modulo 2^64
class Place:                            # §11.4
    kind, number, known, step, stride, base, width, minutes, octets = 1, 0, False, 0, 0, 0, 0, 0, b''
    def note(self, v):
        step = signed(v - self.number); self.stride = step if self.known and step == self.step else 0; self.step, self.number, self.known = step, v, True
class Ring:                             # §11.5.1: words or texts
    def __init__(self, most): self.most, self.entered, self.entries = most, 0, []
    def enter(self, b):
        if 3 <= len(b) <= 40: n = self.entered % self.most; self.entries[n:n + 1] = [b]; self.entered += 1
    def read(self, r): n = r.bits((max(len(self.entries), 1) - 1).bit_length()); need(n < len(self.entries), 'entry that is not there'); return self.entries[n]
class Memory:                           # §11.6
    def __init__(self): self.lost, self.shapes, self.alike, self.words, self.texts, self.gaps, self.weight, self.step = False, {}, {}, Ring(2048), Ring(256), [b'', b''], 0, 0
    def whole(self): return self.weight + sum(8 + len(b) for ring in (self.words, self.texts) for b in ring.entries)
    def places(self, fingerprint, signs):
        if len(signs) > 1024: return {}, False
        first = signs[0][1] if signs else 0
        if fingerprint not in self.shapes:
            known, theirs = self.alike.get(first, ({}, [])); begin = {own: copy.copy(known[its]) for (own, a), (its, b) in takewhile(lambda two: two[0][1] == two[1][1], zip(signs, theirs)) if its in known}
            self.weight += 192 + 64 * len(signs); octets = sum(len(p.octets) for p in begin.values()); fits = self.whole() + octets <= WEIGHT
            self.shapes[fingerprint] = begin if fits else {}; self.weight += octets * fits
        self.alike[first] = self.shapes[fingerprint], signs; return self.shapes[fingerprint], True
class In:                               # §10.1, §11.1: octets and bits of a packed segment, or of one as it is
    def __init__(self, reader): self.r, self.cur, self.used = reader, 0, 8
    def bits(self, n):
        if n and self.used == 8: self.cur, self.used = self.r.octet(), 0
        self.used += n > 0; return (self.cur >> self.used - 1 & 1) | self.bits(n - 1) << 1 if n else 0
    def flag(self): return self.bits(1) == 1
    def packed(self, n, w): need(w <= 64, 'width'); v = int.from_bytes(self.r.take((n * w + 7) // 8), 'little'); return [v >> i * w & (1 << w) - 1 for i in range(n)]
    def done(self): return self.r.pos == self.r.end
class Out:                              # §10.1: the segment
    def __init__(self): self.out, self.at, self.used = bytearray(), None, 8
    def bits(self, v, n):
        for i in range(n):
            if self.used == 8: self.at, self.used = len(self.out), 0; self.out.append(0)
            self.out[self.at] |= (v >> i & 1) << self.used; self.used += 1
    def uvarint(self, u): self.out += uvarint(u)
def is_word(o): return o in WORD or o > 127
def is_place(k): return k.kind in (VALUE, SLOT, OPTIONAL, CHOICE) or k.kind == ARRAY and (k.column is not None or not k.a == k.b != 0)
def order(k, column=False, inside=False): return [(k, column, inside)] + sum((order(kid, column or k.column is not None, inside or k.kind == ARRAY) for kid in k.kids), [])
def signs(shape):                       # §11.6: of each place its node, and its sign
    sign, all = 0, []
    for k, column, inside in order(shape):
        if k.kind == TEXT: sign = crc(k.a, sign)
        elif is_place(k) and not column: sign = crc(bytes([k.kind, next((v.a for v in [k, *(k.column or [])] if v.kind == VALUE), 0), inside]), sign); all.append((id(k), sign))
    return all
class Unpacker:                         # the segments of one part, one behind the other. shape: the parsed shape; Reader: of decode.py
    def __init__(self, shape, fingerprint, Reader):
        self.shape, self.fingerprint, self.Reader, self.signs = shape, fingerprint, Reader, signs(shape); self.walk = self.node(shape, False)
    def segment(self, packed, last, memory):
        self.r, self.out, self.m, self.last = In(self.Reader(packed)), Out(), memory, last; self.whole, reset = self.r.flag(), self.r.flag()
        if reset: memory.__init__()
        if not self.whole:
            need(packed[0] in (0, 2) and len(packed) - 1 <= MOST, 'segment that is not packed')
            if not last:                # only to know where the next segment goes on
                self.r, self.end = In(self.Reader(packed, 1, len(packed) - 1)), packed[-1]; self.go()
            return packed[1:]
        need(not memory.lost, 'it needs what messages before it said') or need(memory.whole() <= WEIGHT, 'memory over its limit'); self.places, remembered = memory.places(self.fingerprint, self.signs); before = memory.weight
        self.columns, self.scales, self.rows, self.room, self.beside, self.time, self.moved, self.counts = {}, {}, 0, 8 * MOST, [], None, None, {}
        self.steps = -1 if last else self.r.r.uvarint(); self.go(); need(self.r.done() and not self.r.cur >> self.r.used, 'left over')
        need(not any(self.columns.values()) and not any(self.counts.values()), 'fields left over')
        if not last: need(self.steps == 0, 'steps left over'); self.out.out.append(self.out.used if self.out.at is not None else 0)
        need(len(self.out.out) <= MOST, 'segment too long')
        memory.weight = memory.weight if remembered else before; return bytes(self.out.out)
    def go(self): next(self.walk, None)
    def step(self, bit=False):          # before each item: waits for the next segment where this one ends
        while not self.last and (self.steps == 0 if self.whole else self.r.done() and not (bit and self.r.used < 8 and self.r.used != self.end)): yield
        self.steps = self.steps - 1 if self.whole else 0
    def node(self, k, inside):          # §11.2
        if k.kind in (SEQUENCE, ELEMENT, ATTRIBUTE, LE, BE) or k.kind == ARRAY and k.a == k.b != 0 and k.column is None:
            for _ in range(k.a if k.kind == ARRAY else 1):
                for kid in k.kids: yield from self.node(kid, inside or k.kind == ARRAY)
        elif k.kind == ARRAY:
            more = True
            while more:
                yield from self.step(); n, more = self.group(k, inside) if k.column else self.group_of_rows(k, inside)
                for _ in range(n): yield from self.node(k.kids[0], True)
        elif k.kind == VALUE: yield from self.value(k, inside)
        elif k.kind in (SLOT, OPTIONAL, CHOICE):
            yield from self.step(True); bits = (k.a - 1).bit_length() if k.kind == CHOICE else 1; v = self.kind(k, inside, bits)
            need(k.kind != CHOICE or v < k.a, 'choice'); self.out.bits(v, bits)
            if k.kind == SLOT and v == 0: self.text_item(k, inside)
            elif k.kind == CHOICE or k.kind == OPTIONAL and v: yield from self.node(k.kids[v if k.kind == CHOICE else 0], inside)
    def value(self, k, inside):
        yield from self.step(k.a == BOOLEAN); out, as_is = self.out, not self.whole
        if k.a in (10, 11):
            if as_is:
                self.r.r.octet()
                while True:
                    yield from self.step(); n = self.r.r.uvarint(); self.r.r.take(n >> 2)
                    if n & 1: return
            v, octets = self.kind(k, inside, 9), self.octets(k, inside); self.out.out.append(v & 255)
            self.out.uvarint(len(octets) << 2 | (3 if v > 255 else 1)); self.out.out += octets; return
        if k.a == BOOLEAN:
            v = self.kind(k, inside, 2); need(v < 3, 'boolean'); out.bits(v, 2)
            if v < 2: return
        elif k.a in NUMBERS:
            v = self.r.r.uvarint() if as_is else self.kind(k, inside, 8 if k.a in (4, 6, 12) else 1)
            if v and as_is:
                if k.a in (4, 6, 12) and (v - 1) & 7 == 7 and 32 <= self.r.r.octet() < 64: return self.r.r.octet() + self.r.r.uvarint()
                return
            if v:
                m, t = self.number(k, inside), v - 1; need(abs(m) < 1 << 59 and (t <= 18 or 32 <= t <= 50 or 64 <= t <= 66), 'number'); z = (m << 1) ^ (m >> 63)
                if k.a not in (4, 6, 12): return out.uvarint(z + 1)
                out.uvarint((z << 3) + min(t, 7) + 1)
                if t >= 7: out.out.append(t)
                if 32 <= t < 64: e = self.minutes(k, inside); need(e & 15 < 12 and 0 <= e >> 4 < 1999, 'exponent'); out.out.append(e & 15); out.uvarint(e >> 4)
                return
            out.uvarint(0)
        elif k.a in (UUID, DATETIME):
            v = self.r.r.octet() if as_is else self.kind(k, inside, 8); need(k.a == UUID or v <= 30, 'form'); out.out.append(v)
            if v and k.a == UUID: out.out += self.r.r.take(16) if as_is else self.octets(k, inside); return
            if v:
                for read in (self.number, self.minutes)[:1 + (v > 20)]:
                    u = read(k, inside) if self.whole else unzigzag(self.r.r.uvarint()); out.uvarint((u << 1) ^ (u >> 63))
                return
        if k.a in (BOOLEAN, UUID, DATETIME) or k.a in NUMBERS: yield from self.step()
        while not self.whole and self.r.r.buf[self.r.r.pos] == 0: self.r.r.octet(); self.r.r.bytes(); yield from self.step()
        self.text_item(k, inside)
    def text_item(self, k, inside):
        if not self.whole: self.r.r.take(self.r.r.uvarint() - 1); return
        b = self.string(k, inside, 'text'); self.out.uvarint(len(b) + 1); self.out.out += b
    def octets(self, k, inside): return self.string(k, inside, 'octets')
    def group(self, k, inside):         # §10.5, as it is
        scaled = any(kid.kind == VALUE and kid.a in (4, 6) for kid in k.column)
        if inside and self.whole: octets = self.octets(k, inside); r = self.Reader(octets); more = self.skip(r, scaled); need(r.pos == r.end, 'group')
        else: r = self.r.r; start = r.pos; more = self.skip(r, scaled); octets = r.buf[start:r.pos]
        self.out.out += octets; return 0, more
    def skip(self, r, scaled):
        h = r.uvarint(); need(h >> 1 <= 4096 and h != 1, 'rows of a group')
        if h >> 1:
            w = r.octet(); bits = (w & 127) + (r.octet() >> 5 if scaled else 0)
            for _ in range(r.uvarint() if w & 128 else 0): r.uvarint(); r.take(r.uvarint() - 1)
            r.take(((h >> 1) * bits + 7) // 8)
        return h & 1
    def group_of_rows(self, k, inside):     # §11.3
        if not self.whole: g = self.r.r.octet(); return g & 127, g >> 7
        if not self.counts.get(id(k)):
            n = self.number(k, inside) % (1 << 64); need(n != 1 and n >> 1 <= MOST * 127, 'rows'); self.counts[id(k)] = [n >> 1, n & 1]
        left, more = self.counts[id(k)]; g = min(left, 127); need(g or not more, 'array goes on behind its last row'); more = more or left > g
        self.counts[id(k)] = [left - g, self.counts[id(k)][1]] if left > g else None; self.out.out.append(g | 128 * more); return g, more
    def place(self, k): return self.places.setdefault(id(k), Place())    # §11.4
    def kind(self, k, inside, bits):
        if inside or not self.whole: return self.column(k, 'kind', bits) if self.whole else self.r.bits(bits)
        p = self.place(k); p.kind = self.r.bits(bits) if bits == 1 or not self.r.flag() else p.kind; return p.kind
    def expected(self, k, p):
        if k.kind == VALUE and k.a == DATETIME and self.time is not None:
            if not p.known: return self.time
            if self.moved is not None: return signed(p.number + self.moved)
        return signed(p.number + p.stride)
    def note(self, k, p, v):
        known = p.known; p.note(v); self.time, self.moved = (v, p.step if known else None) if k.kind == VALUE and k.a == DATETIME else (self.time, self.moved)
    def number(self, k, inside):
        if inside: return self.column(k, 'number')
        p = self.place(k); v = self.expected(k, p); v = v if self.r.flag() else signed(v + unzigzag(self.r.r.uvarint())); self.note(k, p, v); return v
    def minutes(self, k, inside):
        if inside: return self.column(k, 'minutes')
        p = self.place(k); p.minutes = p.minutes if self.r.flag() else unzigzag(self.r.r.uvarint()); return p.minutes
    def string(self, k, inside, sort):
        if inside: return self.column(k, sort)
        if (p := self.place(k)) and self.r.flag(): return p.octets
        b = self.read(k, sort, p.octets); self.keep(p, b); return b
    def keep(self, p, b): b = b if len(b) <= 4096 else b''; self.m.weight += len(b) - len(p.octets); p.octets = b
    def read(self, k, sort, before):
        return self.text(before) if sort == 'text' else self.r.r.take(16 if k.kind == VALUE and k.a == UUID else len(before) if self.r.flag() else self.r.r.uvarint())
    def column(self, k, sort, bits=0):  # §11.5
        key = id(k), sort
        if key not in self.columns:
            if not self.r.flag(): self.rows = self.r.r.uvarint()
            self.room -= self.rows; need(self.rows and self.room >= 0, 'length of a column'); p = self.place(k)
            self.columns[key] = getattr(self, {'kind': 'kinds', 'number': 'numbers', 'minutes': 'offsets'}.get(sort, 'strings'))(k, p, self.rows, bits or sort)[::-1]
        need(self.columns[key], 'column too short'); return self.columns[key].pop()
    def kinds(self, k, p, n, bits):
        r, method = self.r, self.r.bits(2); need(method < 3, 'method')
        kinds = [low + v for low, w in [(r.bits(bits), r.bits(4))] for v in r.packed(n, w)] if method == 2 else [r.bits(bits) if method else p.kind] * n
        need(max(kinds) >> bits == 0, 'kind'); p.kind = kinds[-1]; self.scales[id(k)] = [v for v in kinds if v]; return kinds
    def numbers(self, k, p, n, _):
        r, method, want = self.r, self.r.bits(3), self.expected(k, p); zigzag = lambda: unzigzag(r.r.uvarint())
        if method == 0: v = [want + i * p.stride for i in range(n)]
        elif method in (1, 2):
            if method == 2: p.base = signed(p.base + zigzag()); p.width = r.bits(7)
            v = [p.base + x for x in r.packed(n, p.width)]
        elif method == 3:
            first, s = want + zigzag(), zigzag(); v = [*accumulate((s + x for x in r.packed(n - 1, r.bits(7))), initial=first)]
        elif method == 4:
            d = r.bits(4) + 1; few = [*accumulate((zigzag() for _ in range(d)), initial=want)][1:]
            indices = r.packed(n, (d - 1).bit_length()); need(max(indices) < d, 'index'); v = [few[i] for i in indices]
        elif method == 6:
            scales, low = self.scales.get(id(k), [0]), signed(p.base + zigzag()); v = [(signed(low + x), 10 ** (max(scales) - s)) for x, s in zip(r.packed(n, r.bits(7)), scales)]
            need(min(scales) < max(scales) < 20 and len(v) == n and not any(x % f for x, f in v), 'aligned'); v = [x // f for x, f in v]
        else: need(method == 5 and len(self.beside) == n, 'method'); s = zigzag(); v = [b + s + x for b, x in zip(self.beside, r.packed(n, r.bits(7)))]
        self.beside = v = [signed(x) for x in v]
        if n > 1: p.number, p.known = v[-2], True
        self.note(k, p, v[-1]); self.moved = None; return v[:]
    def offsets(self, k, p, n, _): return [self.minutes(k, False) for _ in range(n)]
    def strings(self, k, p, n, sort):
        method, before, b = self.r.bits(2), p.octets, []
        if method == 0: return [before] * n
        d = 1 if method == 1 else self.r.r.uvarint() if method == 2 else n; need(0 < d <= n, 'entries')
        for _ in range(d): before = self.read(k, sort, before); b.append(before)
        if method == 1: b *= n
        elif method == 2: indices = self.r.packed(n, (d - 1).bit_length()); need(max(indices) < d, 'index'); b = [b[i] for i in indices]
        self.keep(p, b[-1]); return b
    # §11.5.1
    def text(self, before):
        r, new, alone = self.r, (), False
        if r.flag(): b, new, alone = self.words()
        elif (form := r.bits(2)) == 0: return self.m.texts.read(r)
        elif form == 3:
            m = re.fullmatch(rb'(.*?)([0-9]{1,18})([^0-9]*)', before, re.S); need(m, 'no number to count on'); self.m.step = self.m.step if r.flag() else unzigzag(r.r.uvarint())
            n = b'%0*d' % (len(m[2]), int(m[2]) + self.m.step); need(len(n) == len(m[2]) and n.isdigit(), 'number out of range'); return m[1] + n + m[3]
        else:
            h, t = (r.r.uvarint(), r.r.uvarint()) if form == 2 else (0, 0); need(h + t <= len(before), 'more than there is')
            b = before[:h] + r.r.bytes() + before[len(before) - t:]
            if form == 2: new = self.edited(b, h, len(b) - t)
        for word in new: self.m.words.enter(word)
        if not alone: self.m.texts.enter(b)
        return b                        # edited: the runs of b that the octets from start to end touch
    def edited(self, b, start, end):
        while start and is_word(b[start - 1]): start -= 1
        while start < end:
            to = next((i for i in range(start, len(b)) if is_word(b[i]) != is_word(b[start])), len(b))
            if is_word(b[start]): yield b[start:to]
            start = to
    def words(self):
        r, b, new, alone = self.r, b'', [], True
        while True:
            known = not r.flag(); word = self.m.words.read(r) if known else self.word(); b += word; new += [] if known else [word]
            if not r.flag(): b += b' '
            elif not r.flag(): return b, new, alone
            else:
                gaps = self.m.gaps
                if not r.flag(): gaps[:] = [gaps[1], gaps[0]] if r.flag() else [r.r.bytes(), gaps[0]]
                b += gaps[0]
                if not r.flag(): return b, new, False
            alone = False
    def word(self):
        r = self.r; c = next((i for i in range(3) if not r.flag()), 3); n = r.bits(4); n += r.r.uvarint() if n == 15 else 0; need(n <= MOST, 'word')
        chars = [r.bits((5, 4, 6, 8)[c]) for _ in range(n)]; need(c != 2 or 63 not in chars, 'character')
        return bytes(WORD[v] if c == 2 else v + (97, 48, 0, 0)[c] for v in chars)
