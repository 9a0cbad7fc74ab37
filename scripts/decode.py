#!/usr/bin/env python3
"""An independent decoder of the hhfr wire format, written from docs/wire-format.md alone (§: its sections); packed segments are in unpack.py, packed shapes in fold.py, plain shapes in plain.py, the short form of hello in hello.py.
decode.py vectors DIR                                        check the test vectors under DIR
decode.py capture FILE.pcapng --store DIR [--save-dir OUT]   decode the hhfr streams of a recording
decode.py stream FILE... --store DIR [--save-dir OUT]        decode raw octets, one direction per file"""
import argparse, base64, bisect, collections, datetime, fold, functools, glob, hashlib, hello, json, os, plain, re, struct, sys, types, unpack, uuid
from expand import expand
from unpack import crc, need, uvarint, TEXT, VALUE, SLOT, AGAIN, SEQUENCE, ELEMENT, ATTRIBUTE, ARRAY, OPTIONAL, CHOICE, LE, BE, NUMBERS
STAGES, HELLO, SYNC, failures = (0, 1, 3, 4, 5, 7, 36, 37, 39), bytes.fromhex('01484846522F310A'), bytes.fromhex('03C5686866729A0A'), []
FORMS = ('reference', 'fingerprint:32'), ('full', 'total offset piece:rest'), ('unknown', '')    # fields are name:form; without form: a uvarint
KINDS = {1: ('hello', HELLO, 'scheme role:octet session:16 token:bytes sync_word:8 representation stages max_fragment max_message max_shapes '
             'max_shape_octets max_exchanges window max_held lifetime target:text later:rest', lambda f: f['scheme'] == 1 and (f['representation'] in (1, 2) or f['role'] & 1 > f['representation']) and
             f['role'] < 4 and len(f['token']) in (0, 16) and not (f['target'] and (f['role'] & 1 or f['token'])) and f['stages'] & ~8 in (STAGES if f['representation'] != 2 else (0,)) and 512 <= f['max fragment'] <= 16384),
         2: ('shape', b'', 'number form:octet', lambda f: f['number'] and f['form'] < len(FORMS)),
         3: ('sync', SYNC, 'sync_word:8 offset role:octet session:16 representation stages messages check:crc shapes:[number,name:8] '
             'lanes:[lane,request,reply] open:[lane,R:octet,exchange,crc:crc] own:crc', lambda f: f['role'] < 2 and all(o['R'] < 16 for o in f['open']) and all(
             order(a, n) < order(b, n) for k, n in (('shapes', 1), ('lanes', 1), ('open', 3)) for a, b in zip(f[k], f[k][1:]))),
         5: ('window', b'', 'lane R:octet exchange octets', lambda f: f['R'] < 2 and f['octets']), 9: ('flush', b'', 'lane R:octet exchange settled', lambda f: f['R'] < 2 and f['settled']),
         6: ('cancel', b'', 'lane R:octet exchange code:octet text:text', lambda f: f['R'] < 4 and len(f['text'].encode()) <= 256),
         7: ('close', b'', 'code:octet text:text messages check:crc', lambda f: len(f['text'].encode()) <= 1024),
         0x44: ('ack', b'', 'body:rest', lambda f: True), 0x4A: ('kept', b'', 'body:rest', lambda f: True), 0x4B: ('resync', b'', '', lambda f: True),
         0x48: ('idle', b'', 'lanes:[lane]', lambda f: all(a['lane'] < b['lane'] for a, b in zip(f['lanes'], f['lanes'][1:])))}
def order(entry, n): return [v & 1 if k == 'R' else v for k, v in entry.items()][:n]
def note(text, failed=True): failures.extend([text] * failed) or print(text, file=sys.stderr)
class Reader:                           # §1
    def __init__(self, buf, pos=0, end=None, short=ValueError):
        self.buf, self.pos, self.end, self.short = buf, pos, len(buf) if end is None else end, short
    def take(self, n):
        if n > self.end - self.pos: raise self.short('ends too early')
        self.pos += n; return self.buf[self.pos - n:self.pos]
    def rest(self): return self.take(self.end - self.pos)
    def octet(self): return self.take(1)[0]
    def bytes(self): return self.take(self.uvarint())
    def text(self): return self.bytes().decode()
    def crc(self): return int.from_bytes(self.take(4), 'little')
    def uvarint(self):
        v = i = 0
        while (o := self.octet()) & 128 and i < 63: v, i = v | (o & 127) << i, i + 7
        need((o or not i) and o < (2 if i == 63 else 128), 'uvarint'); return v | o << i
    def fields(self, spec):
        return {name.replace('_', ' '): self.uvarint() if not form else self.take(int(form)) if form.isdigit() else getattr(self, form)()
                if form.isalpha() else [self.fields(form[1:-1].replace(',', ' ')) for _ in range(self.uvarint())]
                for name, _, form in (part.partition(':') for part in spec.split())}
def frame(buf, at):                     # §2: the frame at `at`, parsed without the state of its direction, and where it ends. EOFError: the octets end before it does
    if (first := (r := Reader(buf, at, short=EOFError)).octet()) & 0x80:    # §5
        f = {'kind': 'data', **{name: first >> 6 - i & 1 for i, name in enumerate('FLRHTXY')}}; f.update({name: r.uvarint() for name, bit in (('lane', 'Y'), ('exchange', 'X')) if f[bit]})
        start, placed = r.pos, f['F'] & f['R'] & f['T']; placed and f.update(zip(('number', 'answers'), ((u := r.uvarint()) >> 2, r.uvarint() if u & 1 else 0)), wanted=u & 3 == 2, unknown=u & 3 == 3)    # §5.1
        if placed and u & 1 and not f['answers']: f.update(zip(('length', 'from', 'answers'), (r.uvarint(), r.uvarint(), r.uvarint())), wanted=u & 3 == 3, unknown=False); need(f['from'] <= f['length'] > 0, 'length')
        f['place'] = buf[start:r.pos]; need((f.get('number', 1) or not u) and (n := r.uvarint()) <= 16384, 'payload too long, or number 0'); return {**f, 'payload': r.take(n)}, r.pos
    need(first in KINDS or first & 0x40 and first & 0x3F not in KINDS, 'unknown kind')
    kind, mark, spec, rule = KINDS.get(first, ('skipped', b'', 'body:rest', lambda f: True))
    need(not mark or mark.startswith(buf[at:at + 8]), 'wrong mark'); r.take(7 if mark else 0)
    need((n := r.uvarint()) <= 65536 and r.take(n) is not None, 'body too long')
    r = Reader(buf, r.pos - n, r.pos); f = {'kind': kind, **(hello.brief(r) if kind == 'hello' and buf[r.pos + 1:r.pos + 2] >= b'\4' else r.fields(spec))}
    need(rule(f) and (not mark or int.from_bytes(buf[r.end - 4:r.end], 'little') == crc(buf[at:r.end - 4])), f'value or check in {kind}')
    if 'role' in f: f['role'] = ('initiator', 'responder')[f['role'] & 1]
    if kind == 'hello': return f, r.end
    if kind == 'shape': f.update(form=FORMS[f['form']][0], **r.fields(FORMS[f['form']][1]))
    need(r.pos == r.end, f'octets left over in {kind}'); return f, r.end
LISTS = SEQUENCE, ELEMENT, ATTRIBUTE, LE, BE; Node = collections.namedtuple('Node', 'kind a b kids takes column')    # takes: at least one item of content each time it stands
@functools.lru_cache(None)
def parse_shape(octets):                # §9
    r, seen = Reader(octets), []; need(r.octet() == 1, 'version of shape'); slots = r.uvarint()
    def node(depth, parent):
        need((kind := r.octet()) <= (CHOICE if depth else BE) and depth <= 200, 'kind of node, or shape too deep')
        a = r.bytes() if kind == TEXT else r.octet() if kind == VALUE else 1 if kind in (OPTIONAL, LE, BE) else r.uvarint()
        b = r.octet() if kind == VALUE else r.uvarint() if kind == ARRAY else None
        kids = [node(depth + 1, kind) for _ in range(0 if kind <= AGAIN else 1 if kind == ARRAY else a)]
        need({TEXT: lambda: a, VALUE: lambda: a <= 12 and b <= 6, SLOT: lambda: a == len(seen) < slots, AGAIN: lambda: a < len(seen),
              ARRAY: lambda: a < b or not b or a == b <= 1048576 and kids[0].takes, OPTIONAL: lambda: True, LE: lambda: True, BE: lambda: True, CHOICE: lambda: a > 1}.get(
              kind, lambda: a > (kind == SEQUENCE) and not (kind == SEQUENCE and parent in LISTS[:3]) and
              not any(k.kind == m.kind == TEXT for k, m in zip(kids, kids[1:])))(), f'not canonical before octet {r.pos}')
        takes = any(k.takes for k in kids) if kind in LISTS else kind not in (TEXT, AGAIN)
        row = flatten(kids[0]) if kind == ARRAY else [None]; seen.extend([a] * (kind == SLOT))
        return Node(kind, a, b, kids, takes, row if None not in row and sum(k.kind == VALUE for k in row) == 1 else None)
    return node(0, None), need(r.pos == r.end and len(seen) == slots, 'octets left over behind the shape, or slots that stand nowhere')
def flatten(k):                         # §10.5: the row of a column as a list; None in it: this is no column
    return sum(map(flatten, k.kids), []) if k.kind in LISTS else [k if k.kind in (TEXT, AGAIN) or k.kind == VALUE and k.a in NUMBERS[:4] else None]
class Joiner:                           # §10; keep, text: how the message goes on as text (§10.6)
    def __init__(self, shape, segments, keep=None, text=b''):
        self.todo, self.keep, self.out, self.pending, self.slots, self.prefix, self.cur, self.bit = [*segments], keep, bytearray(), 0, {}, b'ns0', 0, 0
        try:
            self.segment(), self.node((root := parse_shape(shape)[0])), self.item()
            need(self.last and self.r.pos == self.r.end and not self.cur >> self.bit, 'content left over')
        except StopIteration:
            need(keep <= self.pending, 'keep goes too far')
            self.out[len(self.out) - self.pending + keep:] = text
        if root.kind in (LE, BE):       # §10.8
            text, mark, odd = self.out.partition(b'\xff'); need(len(odd) == len(mark), 'octet behind the last character')
            self.out = text.decode('utf-8', 'surrogatepass').encode(('utf-16-le', 'utf-16-be')[root.kind - LE], 'surrogatepass') + odd
    def segment(self):                  # §10.1
        need(not self.cur >> self.bit and (self.todo or self.keep is not None), 'unused bits are not 0, or content ends too early')
        if not self.todo: raise StopIteration('the message goes on as text')
        s, self.last, self.start, self.bit, self.cur = self.todo.pop(0), not self.todo and self.keep is None, len(self.out) - self.pending, 0, 0
        self.r, self.used = Reader(s, 0, len(s) - (not self.last)), None if self.last else (s or need(False, 'segment without its last octet'))[-1]
    def item(self):                     # goes to the next item; pending: the octets of texts and prefixes since the last one
        while not self.last and self.r.pos == self.r.end and self.bit == self.used: self.segment()
        self.pending = 0; return self.r
    def put(self, octets, fixed=False):
        need(len(self.out) + len(octets) - self.start <= 4194304, 'segment joins to too much')
        self.out += octets; self.pending = self.pending + len(octets) if fixed else 0
    def bits(self, n):
        if n and self.bit in (0, 8): self.cur, self.bit = self.r.octet(), 0
        self.bit += n > 0; return (self.cur >> self.bit - 1 & 1) | self.bits(n - 1) << 1 if n else 0
    def whole_text(self): return self.r.take((self.r.uvarint() or need(False, 'text in pieces')) - 1)
    def text(self):
        while (u := self.item().uvarint()) == 0: self.put(self.r.bytes())
        self.put(self.r.take(u - 1))
    def number(self, z, scale):         # z: zigzag(m)
        digits = str(z + 1 >> 1).rjust(scale + 1, '0'); self.put(('-' * (z & 1) + (digits[:-scale] + '.' + digits[-scale:] if scale else digits)).encode())
    def node(self, k):                  # §10.2
        if k.kind in (TEXT, AGAIN): self.put(k.a if k.kind == TEXT else self.slots.get(k.a) or need(False, 'slot without prefix'), True)
        elif k.kind in LISTS or k.kind == ARRAY and k.a == k.b != 0 and not k.column:
            for kid in (kid for _ in range(k.a if k.kind == ARRAY else 1) for kid in k.kids): self.node(kid)
        elif k.kind == ARRAY:
            total, more = 0, 1
            while more:
                n, more = self.column(self.item(), k.column) if k.column else ((g := self.item().octet()) & 127, g >> 7)    # §10.4
                need((n or not more) and ((total := total + n) <= k.b or not k.b), 'rows')
                for _ in range(0 if k.column else n): self.node(k.kids[0])
            need(total >= k.a, 'too few rows')
        elif self.item() and k.kind == VALUE: self.value(self.r, k.a)
        elif k.kind == SLOT:
            predicted = self.bits(1) and re.sub(rb'[0-9]+$', lambda m: b'%d' % (int(m[0]) + 1), self.prefix)
            p = self.slots[k.a] = self.prefix = predicted or self.whole_text()
            need(len(p) <= 64 and re.fullmatch(rb'[A-Za-z]{1,4}[0-9]+(p[0-9]+)?', p), 'prefix') or self.put(p)
        elif k.kind == OPTIONAL: self.bits(1) and self.node(k.kids[0])
        elif k.kind == CHOICE: self.node(k.kids[i] if (i := self.bits((k.a - 1).bit_length())) < k.a else need(False, 'choice'))
    def column(self, r, row):           # §10.5
        kind, texts, at, n = next(k.a for k in row if k.kind == VALUE), {}, -1, (h := r.uvarint()) >> 1
        if not n: return 0, h & 1
        width, scale = r.octet(), r.octet() if kind in (4, 6) else 0; w, v, smallest = width & 127, scale >> 5, scale & 31
        need(n <= 4096 and w <= 64 and v <= 5 and smallest <= 18, 'rows, width or scale of a column')
        for _ in range(r.uvarint() or need(False, 'no exceptions') if width & 128 else 0): at += 1 + r.uvarint(); texts[at] = self.whole_text()
        numbers = int.from_bytes(r.take((n * (w + v) + 7) // 8), 'little')
        need(not numbers >> n * (w + v) and at < n, 'unused bits are not 0, or exceptions behind the rows')
        for i in range(n):
            z, s = numbers >> i * w & (1 << w) - 1, numbers >> n * w + i * v & (1 << v) - 1
            need(not (z or s) if i in texts else smallest + s <= 18 and z < (1 << 64) - 1, 'number of a column')
            for k in row: self.node(k) if k.kind != VALUE else self.put(texts[i]) if i in texts else self.number(z, smallest + s)
        return n, h & 1
    def value(self, r, kind):
        if kind == 5 and (b := self.bits(2)) != 2: return self.put((b'false', b'true')[b] if b < 2 else need(False, 'boolean'))
        u = r.uvarint() if kind in NUMBERS else r.octet() if kind > 7 else 0
        if 9 < kind < 12 or not u: self.pieces(u, kind == 11) if 9 < kind < 12 else self.text()
        elif kind == 8:
            need(u < 5, 'form of a UUID') or self.put(b'urn:uuid:' * (u > 2) + (str if u & 1 else str.upper)(str(uuid.UUID(bytes=r.take(16)))).encode())
        elif kind == 9:
            (z, d), unzigzag = divmod(u - 1, 10), lambda v: v >> 1 ^ -(v & 1)
            (t, part), minutes = divmod(unzigzag(r.uvarint()), 10 ** d), unzigzag(r.uvarint()) if z == 2 else 0
            need(z < 3 and abs(minutes) < 1440 and 0 <= (t := t + 730119 * 86400) < 3652059 * 86400, 'dateTime')    # t: since 0001-01-01
            zone = ('', 'Z', '%s%02d:%02d' % ('+-'[minutes < 0], *divmod(abs(minutes), 60)))[z]
            self.put(((datetime.datetime.min + datetime.timedelta(seconds=t)).isoformat() + (f'.{part:0{d}}' if d else '') + zone).encode())
        else:
            z, s = ((u - 1) >> 3, (u - 1) & 7) if kind in (4, 6, 12) else (u - 1, 0); t = r.octet() if s == 7 else s
            need((s < 7 or 7 <= t <= 18 or 32 <= t <= 50 or 64 <= t <= 66 and not z) and z + 1 >> 1 < 1 << 59, 'scale, or number too large')
            self.put((b'NaN', b'INF', b'-INF')[t - 64]) if t > 63 else self.number(z, t & 31); form, x = (r.octet(), r.uvarint()) if 31 < t < 64 else (0, 0)
            need(form < 12 and x + 1 >> 1 < 1000, 'exponent') or self.put(('Ee'[form & 1] + ('-' if x & 1 else '+' * (form >> 1 & 1)) + str(x + 1 >> 1).rjust(1 + (form >> 2), '0')).encode() if 31 < t < 64 else b'')
    def pieces(self, form, digits):     # §10.3; done: the characters of octets so far
        line, done, k = (form >> 1 & 63 if digits else form & 127) * 4, 0, 0
        while not k & 1:
            before, k, octets = k, (u := self.item().uvarint()) & 3, self.r.take(u >> 2)
            need(k >= before and (k or digits or len(octets) % 3 == 0), 'piece of a value')
            chars = octets if k & 2 else base64.b64encode(octets) if not digits else (octets.hex().upper() if form & 1 else octets.hex()).encode()
            ends = [i for i in range(0, len(chars), 2) if line and k < 2 and done + i and (done + i) % line == 0]
            self.put((b'\n', b'\r\n')[form >> 7].join(chars[i:j] for i, j in zip([0] + ends, ends + [None]))); done += len(chars)
def join(part, store, *text):           # part: the fingerprint of the shape, None for text (§4); and the segments
    if not part or not part[0]: return b''.join(part[1] if part else [])
    return Joiner(store.get(part[0]) or need(False, f'no shape {part[0].hex()}'), part[1], *text).out
def message(key, begun, crc, R=0):      # key: lane, R, exchange; begun: None if before the decoder joined, R then as in sync
    return types.SimpleNamespace(key=key, begun=begun, crc=crc, dim=False, stages=0, keeper=types.SimpleNamespace(), more=R >> 1 & 1, head=None if begun else (None, []), body=(b'?', []) if R & 4 else None, keep=0 if R & 8 else None, text=[], status='incomplete', done=None, memories=None, error=None)
def identity(f, at): return f['sync word'], f['session'], f['representation'], f['role'], f['stages'], at - f.get('offset', 0)    # of a direction, by its hello or a sync
def origin(i): return crc(bytes([i[3] == 'responder']) + i[1] + uvarint(i[2]) + uvarint(i[4]))    # §5.2: what each check begins with
HEAD, CHUNK = re.compile(rb'(\S+) \S+ [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n'), re.compile(rb'([0-9A-Fa-f]+)[^\n]*\n')
def upgraded(runs, clock):              # §3.1: where HTTP/1.1 ends in the first run, and the request there, if it asks for a stream
    (start, buf), at, asked = runs[0] if runs else (0, b''), 0, []
    while m := HEAD.match(buf, at):
        fields, begun = dict(re.findall(rb'(\S+):[ \t]*(.*?)[ \t]*\r\n', m[2].lower())), (*clock(start + at), start + at)
        at = m.end() + int(fields.get(b'content-length', 0)); body, chunked = buf[m.end():at], b'chunked' in fields.get(b'transfer-encoding', b'')
        while chunked and (c := CHUNK.match(buf, at)): chunked, at = int(c[1], 16), c.end() + int(c[1], 16) + 2; body += buf[c.end():at - 2]
        asked = [message((0, 0, 1), begun, 0)] if fields.get(b'upgrade') == b'hhfr/1' and m[1] not in (b'OPTIONS', b'HTTP/1.1') else []
        for q in asked: q.body, q.done, q.keep, q.text, q.error, q.stages, q.status = (None, [body]), begun, None, b'', None, 0, 'unchecked'
    return [(start + at, buf[at:]), *runs[1:]], asked
class Direction:                        # runs: (position, octets), gaps between them; clock: from a position to an order over directions
    def __init__(self, name, runs, clock, store):
        self.store, self.clock, self.id, self.last, self.fresh, self.role, self.good, self.begun, self.parts, self.later, self.done = store, clock, None, None, True, None, set(), [], [], [], 0
        self.name, self.shapes, self.lanes, self.open, self.pieces, self.since, self.chain, self.unseen, found = name, {}, {}, {}, {}, [], b'', b'', []
        runs, self.asked = upgraded(runs, clock)
        for start, at, buf in ((start, m.start(), buf) for start, buf in runs for m in re.finditer(re.escape(SYNC), buf)):
            try: len((f := frame(buf, at)[0])['open']) < 1024 and found.append((start + at, identity(f, start + at)))
            except (ValueError, EOFError): pass    # §6, joining: sync frames by position, with what identifies the direction
        counts = collections.Counter(i for _, i in found); likely = [i for i, n in counts.items() if n > 1 or len(counts) == 1]    # a single one if nothing disagrees
        for n, (start, buf) in enumerate(runs):
            at, self.blind = 0, n or not buf.startswith(HELLO)
            if self.blind:
                trusted, self.open, self.pieces, self.since, self.chain, self.unseen = [self.id] if self.id else likely, {}, {}, [], b'', None
                at, self.id = next(((p - start, i) for p, i in found if start <= p < start + len(buf) and i in trusted), (len(buf), self.id))
            try:
                while at < len(buf):
                    self.at, begin = start + at, at; f, at = frame(buf, at); self.raw = buf[begin:at]
                    need((self.id is None) == (f['kind'] == 'hello'), 'hello is not the first frame')
                    getattr(self, f['kind'], lambda f: None)(f)
                    if f['kind'] in ('hello', 'sync'): self.synced = start + at
                    if f['kind'] == 'close': return note(f"{name}: close {f['code']} {f['text']!r}, {len(buf) - at} octets behind", at < len(buf))
            except EOFError: note(f'{name}: octets missing in the frame at offset {self.at - (self.id or [start])[-1]}', False)
            except ValueError as e: return note(f'{name}: malformed at offset {self.at - (self.id or [start])[-1]}: {e}')
    def hello(self, f): self.id, self.role, self.stages, self.memories, self.used = identity(f, self.at), f['role'], f['stages'], {}, set(); self.dim = False
    def shape(self, f):                 # §4
        if f['form'] == 'full':
            key, end = (f['number'], f['total']), f['offset'] + len(f['piece'])
            before = self.pieces.get(key, self.unseen) if f['offset'] else b''    # None: pieces before the decoder joined
            need(f['piece'] and end <= f['total'] and (before is None or len(before) == f['offset']), 'piece of a shape')
            octets = self.pieces[key] = None if before is None else before + f['piece']
            if end == f['total']: octets = octets and fold.unpack_shape(octets, self.store); f['fingerprint'] = octets and hashlib.sha256(octets).digest(); self.store.update({f['fingerprint']: parse_shape(octets) and octets} if octets else {})
        if 'fingerprint' in f: self.shapes[f['number']] = f['fingerprint']
    def part(self, r, m):               # its shape, whose name is in the check of its message; announces: what its plain shape is the number of (§4.2)
        need((n := r.uvarint()) == 0 or (n in self.shapes or self.stages & 32) and self.id[2] == 1, f'shape number {n}'); self.announces = n if n and n not in self.shapes else 0
        if self.announces: self.shapes[n] = None; return None, []
        fp = self.shapes[n] if n else None
        m.dim, self.names = m.dim or n and not fp, self.names + (fp or b'')[:8]; return fp, []
    def data(self, f):                  # §5
        lane, R, H, text = f.get('lane', self.last[0] if self.last else 0), f['R'] & (1 - (f['F'] & f['T'] & (f.get('number', 1) > 0))), f['H'], f['T'] and not f['F']
        need(self.at - self.synced <= 1 << 20 and len(self.since) <= 16384, 'sync is overdue')
        now, before, key = (*self.clock(self.at), self.at), self.lanes.get((lane, R), 0), (lane, R, f['exchange']) if f['X'] else self.last
        if f['F']:
            key = lane, R, f.get('exchange', before + 1)
            need((f['X'] or self.fresh or (lane, R) in self.good) and key[2] > (0 if R else before) and key not in self.open, 'begin')
            self.open[key], self.lanes[lane, R] = message(key, now, origin(self.id)), key[2]; self.open[key].memories, self.open[key].stages = self.memories, self.stages; self.begun.append(self.open[key]), self.good.add((lane, R)), self.used.add(lane), need(len(self.used) <= 1024, 'sync is overdue')
        need(key in self.open and (f['F'] or f['X'] or not f['Y']), 'fragment of no open message')
        m, r, self.last, self.names, lane_of = self.open[key], Reader(f['payload']), key, b'', lambda whole: self.memories.setdefault(lane, unpack.Memory()) if whole and m.memories is self.memories else None    # §11.6
        need(f['F'] or H == m.more, 'head out of place')
        if H: first = not m.head; m.head = m.head or self.part(r, m); m.more = (n := r.uvarint()) & 1; m.head[1].append(r.take(n >> 1)); first and self.begins(m, m.head, lane_of(not m.more), not m.more)
        need(not m.more or r.pos == r.end and not f['L'], 'octets behind a head that goes on')
        if not m.more and (r.pos < r.end or f['L'] or not H):
            need(m.body and (m.body[0] or not m.begun) if text else m.keep is None, 'text out of place')
            first = not m.body; m.body = m.body or self.part(r, m); m.keep = 0 if text else None; (m.text if text else m.body[1]).append(r.rest()); first and self.begins(m, m.body, lane_of(f['L']), f['L'])    # keep: its number comes later
        named = bytes([0x83 | f['F'] << 6 | f['L'] << 5 | (key[1] or f['place'] > b'') << 4 | H << 3 | f['T'] << 2]) + uvarint(key[0]) + uvarint(key[2]) + f['place'] + uvarint(len(f['payload']))    # §5.2
        m.crc = crc(named + self.names + f['payload'], m.crc)
        if f['L']: m.status, m.done, self.dim, self.chain = 'unverified', now, self.dim or m.dim, self.chain + m.crc.to_bytes(4, 'little'); self.since.append(self.open.pop(key))
    def begins(self, m, part, lane, whole):
        self.parts.append((m, part, lane, self.announces)); need(whole or not self.announces, 'a text that announces its shape, in pieces')
        if self.announces: later, self.parts[self.done:] = [p for p in self.parts[self.done:] if not p[2] and p[1] is not part], [p for p in self.parts[self.done:] if p[2] or p[1] is part]; [expanded(self, self.store, *p) for p in self.parts[self.done:]]; self.done = len(self.parts); self.later += later
    def named(self, name, before): return before if before.startswith(name) else found[0] if len(found := [fp for fp in self.store if fp.startswith(name)]) == 1 else name
    def close(self, f):                 # §6, §8: the check of the messages
        good = f['messages'] == len(self.since) and (self.dim or f['check'] == int.from_bytes(hashlib.sha256(self.chain).digest()[:4 * (self.chain > b'')], 'little'))
        for m in () if self.blind or self.dim and good else self.since: m.status = 'verified' if good else 'withdrawn'
        need(good or self.blind, 'check of the messages')
    def cancel(self, f): self.chain += crc(self.raw, origin(self.id)).to_bytes(4, 'little'); self.open.pop((f['lane'], f['R'], f['exchange']), types.SimpleNamespace()).status = 'cancelled'    # §7
    def sync(self, f):                  # §6
        need(identity(f, self.at) == self.id and f['stages'] & ~8 in STAGES, 'word, role, session, representation, stages or offset of sync') or self.close(f)
        need(self.blind or all((self.shapes.get(s['number']) or s['name'])[:8] == s['name'] for s in f['shapes']), 'shapes of sync')
        self.role, self.stages, self.memories, self.used = f['role'], f['stages'], {}, set()
        opened, self.shapes = {(o['lane'], o['R'] & 1, o['exchange']): o for o in f['open']}, {s['number']: self.named(s['name'], self.shapes.get(s['number'], b'')) for s in f['shapes']}
        need(self.blind or opened.keys() == set(sorted(self.open)[:1024]) and all(m.dim or (m.crc, m.more, m.body != None, m.keep != None) == (o['crc'], o['R'] >> 1 & 1, o['R'] & 4 > 0, o['R'] & 8 > 0) for m, o in zip(map(self.open.get, opened), opened.values())), 'open messages of sync')
        if self.blind: self.open = {key: message(key, None, o['crc'], o['R']) for key, o in opened.items()}
        for key, o in opened.items(): self.open[key].crc, self.open[key].dim = o['crc'], False
        self.lanes = {(n['lane'], R): n[name] for n in f['lanes'] for R, name in enumerate(('request', 'reply'))}
        self.since, self.chain, self.last, self.fresh, self.blind, self.dim, self.good = [], b'', None, False, False, False, set(self.lanes)
def expanded(d, store, m, part, lane, announces):    # §11.6: one that its lane remembers, or without
    packed, memory, keeper, whole, forget = part[0] and d.stages & 1, lane if lane and d.stages & 2 else unpack.Memory(), lane or types.SimpleNamespace(), bool(lane or m.done), part[1][0][:1] == b'\xfa' if part[1] else False
    try:
        m.keeper = need(not m.error, m.error) or keeper    # the body's in the end, as its text is behind it
        if d.stages & 4: part[1][:] = [expand(s, packed, keeper) for s in part[1]]
        if announces:                   # §4.2
            made = plain.Plain(b''.join(part[1]), part is m.head); fp = d.shapes[announces] = hashlib.sha256(made.octets).digest(); store.update({fp: made.octets})
            if forget: memory.__init__()
            if lane and not memory.lost: plain.note(made, unpack.Unpacker(parse_shape(made.octets)[0], fp, Reader), memory)
        if not packed: return
        u = unpack.Unpacker(parse_shape(store.get(part[0]) or need(False, f'no shape {part[0].hex()}'))[0], part[0], Reader)
        part[1][:] = [u.segment(s, whole and i == len(part[1]) - 1 and not (part is m.body and m.keep is not None), memory) for i, s in enumerate(part[1])]
    except (ValueError, LookupError) as e: memory.lost, keeper.gap, m.error = True, True, e
def unpacked(d, store):                 # §11, in the order of the frames
    for p in d.later + d.parts[d.done:]: expanded(d, store, *p)
    for m in d.begun:
        try: r = Reader(b''.join(expand(s, False, m.keeper) if d.stages & 4 else s for s in m.text)); m.keep, m.text = r.uvarint() if m.text else m.keep, r.rest()
        except (ValueError, LookupError) as e: m.error = e
def report(streams, store, save):       # streams: the directions that belong together, one or two
    for d in sum(streams, []): unpacked(d, store)
    begun, first = [(m, (n, side ^ m.key[1], m.key[0], m.key[2])) for n, s in enumerate(streams) for side, d in enumerate(s) for m in d.asked + d.begun], {}
    for m, key in sorted(begun, key=lambda b: (b[0].key[1], b[0].begun)): first.setdefault(key, m.begun)    # by the request where there is one
    numbers = {key: i for i, key in enumerate(sorted(first, key=first.get), 1)}; save and os.makedirs(save, exist_ok=True)
    for m, key in sorted(begun, key=lambda b: b[0].done or b[0].begun):
        name = ('request', 'reply')[m.key[1]]
        try:
            head, body = need(m.done, m.status) or need(not m.error, m.error) or join(m.head, store), join(m.body, store, m.keep, m.text)
            if m.stages & 8: body = re.sub(b'<hhfr:header-(-|[0-9a-f]{16})/>', lambda r: need(r[1] == b'-', f'lacks the unchanging header {r[1]}') and b'<hhfr:header-', body)
            print(name, m.key[0], m.key[2], len(head), len(body), m.status); save and open(os.path.join(save, f'{numbers[key]:06}-{name}.xml'), 'wb').write(body)
        except ValueError as e: note(f'{name} {m.key[0]} {m.key[2]}: {e}', bool(m.done))
def packets(path):                      # the TCP segments of a pcapng file: source, destination, sequence number, flags, octets
    data, at, order, links = open(path, 'rb').read(), 0, '<', []
    while at + 12 <= len(data):
        if data[at:at + 4] == b'\n\r\r\n': order, links = '<' if data[at + 8] == 0x4D else '>', []
        kind, size = struct.unpack_from(order + 'II', data, at); body, at = data[at + 8:at + size - 4], at + size
        if size < 12 or at > len(data): return note(f'{path}: block cut or malformed')
        try:
            if kind == 1: links.append(struct.unpack_from(order + 'H', body)[0])
            if kind == 6 and links[(head := struct.unpack_from(order + '5I', body))[0]] in (101, 228, 229): yield tcp(body[20:20 + head[3]])
        except (struct.error, IndexError, ValueError): pass
def tcp(p):
    four, word = p[0] >> 4 == 4, lambda at: p[at] << 8 | p[at + 1]
    source, target, protocol, at, size = (p[12:16], p[16:20], p[9], (p[0] & 15) * 4, word(2)) if four else (p[8:24], p[24:40], p[6], 40, 40 + word(4))
    while not four and protocol in (0, 43, 60): protocol, at = p[at], at + 8 * p[at + 1] + 8
    need(protocol == 6 and not (four and word(6) & 0x3FFF), 'not TCP, or a fragment')
    from_port, to_port, seq, _, words, flags = struct.unpack_from('>HHIIBB', p, at)
    return (source, from_port), (target, to_port), seq, flags, p[at + (words >> 4) * 4:size]
def connections(path):                  # the TCP connections of a recording, each a dict: end -> its direction
    latest, every = {}, []
    for n, (source, target, seq, flags, data) in enumerate(packets(path)):
        ends, syn, seq = frozenset((source, target)), flags >> 1 & 1, seq + (flags >> 1 & 1)
        if ends not in latest or flags & 0x12 == 2 and source in latest[ends] and latest[ends][source].syn != seq:
            every.append(latest.update({ends: {}}) or latest[ends])
        d = latest[ends].setdefault(source, types.SimpleNamespace(syn=None, start=0, seq=seq, pos=1 << 40, parts=[]))
        d.seq, d.pos = seq, d.pos + (seq - d.seq + (1 << 31)) % (1 << 32) - (1 << 31)
        d.syn, d.start = (seq, d.pos) if syn else (d.syn, d.start); d.parts.append((d.pos, n, data))
    return every
def assemble(d):                        # runs and clock of a direction
    runs, clock, end = [], [], d.start
    for pos, n, data in sorted(d.parts):
        pos, data = max(pos, end), data[max(0, end - pos):]
        if data and (not runs or pos > end): runs.append((pos, bytearray()))
        if data: runs[-1][1].extend(data), clock.append((pos, n)); end = pos + len(data)
    return [(pos, bytes(data)) for pos, data in runs], lambda pos: clock[bisect.bisect(clock, (pos, 1 << 62)) - 1][1:]
def vector(path):
    text, v = open(path).read(), json.load(open(re.sub('hex$', 'json', path))) if os.path.exists(re.sub('hex$', 'json', path)) else {}
    if path.endswith('.hex'):
        got, end = json.loads(json.dumps(frame(bytes.fromhex(text), 0), default=bytes.hex))
        return need(end == len(bytes.fromhex(text)) and v == {k: got.get(k) for k in v}, f'differs: {got}')
    if 'octets' in v:
        base = bytes.fromhex(v.get('base', '')); out = fold.unpack_shape(bytes.fromhex(v['packed']), {hashlib.sha256(base).digest(): base})
        return need(out.hex() == v['octets'], f'unpacks to {out}')
    if 'text' in v: return need((made := plain.Plain(v['text'].encode(), v['head'])).octets.hex() == v['shape'], f'makes {made.octets.hex()}') # §4.2
    if 'compressed' in v: keeper = types.SimpleNamespace(); return need([expand(bytes.fromhex(b), v['packed'], keeper).hex() for b in [v['compressed']] * isinstance(v['compressed'], str) or v['compressed']] == ([v['segment']] * isinstance(v['segment'], str) or v['segment']), 'expands to something else')
    if 'messages' in v:                 # §11
        shapes, memory, out = [bytes.fromhex(s) for s in (v['shape'], *v.get('others', []))], unpack.Memory(), []
        for i, m in enumerate(v['messages']):
            shape = shapes[i % len(shapes)]; u = unpack.Unpacker(parse_shape(shape)[0], hashlib.sha256(shape).digest(), Reader)
            out.append([u.segment(bytes.fromhex(s['packed']), s['last'], memory).hex() for s in m])
        return need(out == [[s['segment'] for s in m] for m in v['messages']], f'unpacks to {out}')
    shape, segments = bytes.fromhex(v['shape']), [[bytes.fromhex(s['octets']) for s in v['segments'] if s.get('text', False) == t] for t in (False, True)]
    need(v['fingerprint'] == 'urn:hhfr:shape:sha256:' + hashlib.sha256(shape).hexdigest(), 'fingerprint')
    r = Reader(b''.join(segments[1])); need((out := Joiner(shape, segments[0], r.uvarint() if segments[1] else None, r.rest()).out).hex() == v['message'], f'joins to {out}')
p, streams = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter), []
p.add_argument('mode', choices=('vectors', 'capture', 'stream')), p.add_argument('files', nargs='+'), p.add_argument('--store'), p.add_argument('--save-dir')
a = p.parse_args(); vectors = sorted(glob.glob(a.files[0] + '/[cptz]*/*.json') + glob.glob(a.files[0] + '/frame/*.hex')) if a.mode == 'vectors' else []
for path in vectors:
    try: print('ok  ', path, vector(path) or '')
    except (EOFError, ValueError, KeyError) as e: failures.append(print('FAIL', path, repr(e)))
    except LookupError as e: print('skip', path, e)
store = {hashlib.sha256(o).digest(): o for o in (open(path, 'rb').read() for path in glob.glob(f'{a.store}/shapes/*') if os.path.isfile(path))}
for n, path in enumerate(a.files):
    for c in connections(path) if a.mode == 'capture' else []:
        both = [Direction(f'{path}: from port {end[1]}', *assemble(d), store) for end, d in c.items()]; streams.append(both if any(d.id for d in both) else [])
    if a.mode == 'stream' and (d := Direction(path, [(0, open(path, 'rb').read())], lambda pos, n=n: (n,), store)).id:
        mate = [s for s in streams if len(s) == 1 and s[0].id[1] == d.id[1] and not s[0].role == d.role != None]
        mate[0].append(d) if mate else streams.append([d])
report(streams, store, a.save_dir)
if not any(streams) and not vectors: note('nothing found')
sys.exit(1 if failures else 0)
