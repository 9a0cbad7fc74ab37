"""Plain shapes of the hhfr wire format, for decode.py, written from section 4.2 of docs/wire-format.md."""
import base64, datetime, re
from unpack import crc, order, need, uvarint, is_word, signed, WEIGHT, TEXT, VALUE, SLOT, AGAIN, SEQUENCE, ELEMENT, ATTRIBUTE, ARRAY, BOOLEAN, UUID, DATETIME
OPEN, DECIMAL, BASE64, HEX, SCIENTIFIC = 7, 6, 10, 11, 12
S, XSI, ENVELOPES = rb'[ \t\r\n]', b'http://www.w3.org/2001/XMLSchema-instance', (b'http://schemas.xmlsoap.org/soap/envelope/', b'http://www.w3.org/2003/05/soap-envelope')
TOKEN = re.compile(rb'<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<!DOCTYPE|</([^ \t\r\n>]+)([ \t\r\n]*>)|<([^ \t\r\n/>]+)((?:[ \t\r\n]+[^ \t\r\n=/>]+[ \t\r\n]*=[ \t\r\n]*(?:"[^"]*"|\'[^\']*\'))*)([ \t\r\n]*/?>)', re.S)
ATTR = re.compile(rb'([ \t\r\n]+)([^ \t\r\n=/>]+)([ \t\r\n]*=[ \t\r\n]*)(?:(")([^"]*)"|(\')([^\']*)\')')
DECLARATION = re.compile(rb'<\?xml\s+version\s*=\s*["\']1\.[0-9]+["\'](\s+encoding\s*=\s*["\'][A-Za-z][A-Za-z0-9._-]{0,39}["\'])?(\s+standalone\s*=\s*["\'](yes|no)["\'])?\s*\?>', re.A)
GENERATED, NUMBER = re.compile(rb'[A-Za-z]{1,4}[0-9]+(p[0-9]+)?'), re.compile(rb'-?(0|[1-9][0-9]*)(?:\.([0-9]+))?')
FLOAT = re.compile(rb'([^eE]*)([eE])([+-]?)([0-9]{1,3})')
DATE = re.compile(rb'([0-9]{4}-[0-9]{2}-[0-9]{2}T([0-9]{2}):[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?')
ID = re.compile(rb'(urn:uuid:)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12})')
WORDS = [b'NaN', b'INF', b'-INF']
def number(b):                          # m and scale; None: it is none
    m = NUMBER.fullmatch(b)
    if not m or len(b.lstrip(b'-')) > 20 or len(m[2] or b'') > 18: return None
    digits, u = b.replace(b'.', b'').lstrip(b'-'), 0
    for d in digits:
        if u > ((1 << 63) - 10) // 10: return None
        u = u * 10 + d - 48
    return None if b[:1] == b'-' and not u else (-u if b[:1] == b'-' else u, len(m[2] or b''))
def exponent(b):                        # m, scale, and the minutes that tell the exponent
    f = FLOAT.fullmatch(b); n = f and number(f[1])
    if not n or abs(n[0]) >= 1 << 59 or f[3] == b'-' and not int(f[4]): return None
    x = int(f[4]) * (-1 if f[3] == b'-' else 1)
    return *n, 16 * (x << 1 ^ x >> 63) + (f[2] == b'e') + 2 * (f[3] == b'+') + 4 * (len(f[4]) - 1) * (f[4][:1] == b'0'), x < 0 or f[3] == b'+' or n[1] > 0
def moment(b):                          # form, units, minutes
    d = DATE.fullmatch(b)
    try: t = datetime.datetime.strptime(d[1].decode(), '%Y-%m-%dT%H:%M:%S') if d and int(d[1][17:19]) < 60 else None
    except ValueError: t = None
    if not t: return None
    units, zone, part = int((t - datetime.datetime(2000, 1, 1)).total_seconds()), d[4] or b'', d[3] or b''
    for c in part:
        if abs(units) > 9 * 10 ** 17: return None
        units = units * 10 + c - 48
    minutes = int(zone[1:3]) * 60 + int(zone[4:]) if len(zone) > 1 else 0
    if len(zone) > 1 and (int(zone[1:3]) > 23 or int(zone[4:]) > 59 or zone[:1] == b'-' and not minutes): return None
    return 1 + len(part) + 10 * (2 if len(zone) > 1 else zone == b'Z'), units, -minutes if zone[:1] == b'-' else minutes
def lines(b, longest):                  # width, and what ends a line
    n = b[:longest + 2].find(b'\n')
    if n < 1: return 0, b''
    end = b'\r\n' if b[n - 1:n] == b'\r' else b'\n'; w = n + 1 - len(end)
    return (w, end) if w and w % 4 == 0 and w <= longest else (0, b'')
def take(b, width, end):                # the characters up to a line end that stands elsewhere, and how far that is
    chars, at = b'', 0
    while at < len(b):
        if width and chars and len(chars) % width == 0:
            if len(b) - at <= len(end) or b[at:at + len(end)] != end: return chars, at
            at += len(end)
        run = re.match(rb'[^\r\n]*', b[at:at + (width - len(chars) % width if width else len(b))])[0]; chars += run; at += len(run)
        if not run or not width or len(chars) % width: return chars, at
    return chars, at
def strict(chars):
    try: b = base64.b64decode(chars, validate=True); return b if base64.b64encode(b) == chars else None
    except ValueError: return None
def kind_of(b):                         # the type of a value
    if n := number(b): return 2 if not n[1] and abs(n[0] + .5) < 1 << 31 else DECIMAL
    if b in WORDS or (e := exponent(b)) and e[3]: return SCIENTIFIC if re.search(rb'[eE]', b) else 4
    if b in (b'true', b'false'): return BOOLEAN
    if ID.fullmatch(b): return UUID
    if moment(b): return DATETIME
    head, has = b[:4096], lambda s, b: re.search(s, b) is not None
    if len(b) >= 16 and (has(rb'[\r\n]', b[:254]) or len(b) % 2 == 0) and re.fullmatch(rb'[0-9a-fA-F\r\n]*' if lines(head, 252)[0] else rb'[0-9a-fA-F]*', head) and has(rb'[0-9]', head) and has(rb'[a-f]', head) != has(rb'[A-F]', head): return HEX
    if len(b) < 16 or not re.fullmatch(rb'[A-Za-z0-9+/=\r\n]*', head): return 0
    chars, n = take(head, *lines(head, 508))
    if len(head) == len(b) and (n < len(b) or len(chars) % 4): return 0
    chars = chars if len(head) == len(b) else chars[:len(chars) // 4 * 4]
    return BASE64 if len(chars) >= 16 and strict(chars) is not None and (chars.endswith(b'=') or has(rb'[0-9+/]', chars)) and has(rb'[a-z]', chars) and has(rb'[A-Z]', chars) else 0
def same(a, b):                         # alike, as 4.2 has it
    if a[0] != b[0] or a[0] == SLOT: return False
    if a[0] in (TEXT, AGAIN): return a[1] == b[1]
    if a[0] == VALUE: return a[2] == b[2]
    return len(a[1]) == len(b[1]) and all(map(same, a[1], b[1]))
def fold(a, b):                         # a has what both have
    if a[0] == VALUE:
        empty = [a[2] == 0 and not any(t for _, t in n[3]) for n in (a, b)]
        if empty[0] and not empty[1]: a[1] = b[1]
        elif not empty[1] and a[1] != b[1]: a[1] = max(a[1], b[1], DECIMAL) if {a[1], b[1]} <= {2, 4, DECIMAL, SCIENTIFIC} else 0
        a[3] += b[3]
    elif a[0] in (ELEMENT, ATTRIBUTE, ARRAY):
        for k, l in zip(a[1], b[1]): fold(k, l)
        if a[0] == ARRAY: a[2] += b[2]
class Plain:                            # octets: the serialization. A value is [VALUE, type, until, [place in the text, octets] of each]; what hangs in an element is
    def __init__(self, text, head):     # [ARRAY, gap and element, [place, how often] of each]: it is an array if it came again at once
        self.src, self.slots, self.at = text, {}, 0
        nodes = self.head() if head else self.document()
        nodes = self.merge(nodes); root = nodes[0] if len(nodes) == 1 else (SEQUENCE, nodes)
        self.root = root; self.octets = b'\1' + uvarint(len(self.slots)) + self.serial(root)
    def merge(self, nodes):
        out = []
        for n in sum((n[1] if n[0] == ARRAY and not repeats(n) else [n] for n in nodes), []):
            if n[0] == TEXT and out and out[-1][0] == TEXT: out[-1] = TEXT, out[-1][1] + n[1]
            elif n[0] != TEXT or n[1]: out.append(n)
        return out
    def serial(self, n):
        if n[0] == TEXT: return bytes([TEXT]) + uvarint(len(n[1])) + n[1]
        if n[0] == VALUE: return bytes(n[:3])
        if n[0] == ARRAY: row = self.merge(n[1]); return bytes([ARRAY, 0, 0]) + self.serial(row[0] if len(row) == 1 else (SEQUENCE, row))
        if n[0] in (SLOT, AGAIN): return bytes([n[0]]) + uvarint(n[1])
        kids = self.merge(n[1]); return bytes([n[0]]) + uvarint(len(kids)) + b''.join(map(self.serial, kids))
    def place(self): self.at += 1; return self.at
    def value(self, kind, until, b): return [VALUE, kind, until, [(self.place(), b)]]
    def slot(self, key, prefix):
        if key in self.slots: return AGAIN, self.slots[key]
        self.slots[key] = len(self.slots); return SLOT, self.slots[key], [(self.place(), prefix)]
    def head(self):
        first, rest = self.src.split(b'\n', 1); nodes, cr = [], first.endswith(b'\r')
        line = first
        if first.startswith(b'HTTP/'):
            a, b = first.split(b' ', 1); cut = len(b) - b.endswith(b'\r'); nodes += [(TEXT, a + b' '), self.value(0, 3, b[:cut])]
        else:
            a, b = first.split(b' ', 1); target, version = b.split(b' ', 1); nodes += [(TEXT, a + b' '), self.value(0, 6, target), (TEXT, b' ' + version[:-1] if cr else b' ' + version)]
        end = b'\r\n' if cr else b'\n'
        while True:
            nodes.append((TEXT, end))
            if not rest: return nodes
            line, rest = rest.split(b'\n', 1); end = b'\r\n' if line.endswith(b'\r') else b'\n'; line = line[:len(line) + 1 - len(end)]
            if m := re.match(rb'[^: \t]+: *', line): nodes += [(TEXT, m[0]), self.value(kind_of(line[m.end():]), 3, line[m.end():])]
            elif line: nodes.append(self.value(0, 3, line))
    def gap(self, b, mark): return [self.value(0, 0, b)] if mark or b.strip(b' \t\r\n') else [(TEXT, b)]
    def document(self):
        src, at = self.src, 0
        before, mark = b'', False
        if m := re.match(rb'\xef\xbb\xbf[ \t\r\n]*', src): before, at = m[0], m.end()
        if m := DECLARATION.match(src, at): before, at = (before + m[0], m.end()) if m.end() - m.start() <= 256 else (before, at)
        while True:
            i = src.index(b'<', at); before += src[at:i]; m = need(TOKEN.match(src, i), 'XML') or TOKEN.match(src, i)
            if m[3]: break
            need(not m[0].startswith(b'<!D') and not m[1], 'prolog'); before += m[0]; mark, at = True, m.end()
        nodes = self.gap(before, mark) if mark else [(TEXT, before)]
        node, at = self.element(m, {}, 1); nodes.append(node)
        return nodes + self.gap(src[at:], b'<' in src[at:])
    def name(self, raw, scope, element=True):
        prefix, colon, local = raw.rpartition(b':') if raw.count(b':') < 2 else (*raw.split(b':', 1)[:1], b':', raw.split(b':', 1)[1])
        uri, key = scope.get(prefix, (b'', None)) if prefix or element else (b'', None)
        return prefix, local, uri, ([self.slot(key, prefix), (TEXT, b':' + local)] if key else [(TEXT, raw)])
    def element(self, m, scope, depth):
        need(depth <= 48, 'depth'); attrs, scope, src = [a for a in ATTR.finditer(m[4])], dict(scope), self.src
        for a in attrs:
            v = a[5] if a[4] else a[7]
            if a[2] == b'xmlns': scope[b''] = v, None
            elif a[2].startswith(b'xmlns:'): scope[a[2][6:]] = v, (m.start(), a[2]) if GENERATED.fullmatch(a[2][6:]) and len(a[2]) <= 70 else None
        kids = [(TEXT, b'<')] + self.name(m[3], scope)[3]
        for a in attrs:
            v, q = (a[5], b'"') if a[4] else (a[7], b"'"); own = [(TEXT, a[1])]
            if a[2].startswith(b'xmlns:'): key = scope[a[2][6:]][1]; own += [(TEXT, b'xmlns:'), self.slot(key, a[2][6:]) if key else (TEXT, a[2][6:])]; fixed = [(TEXT, v)]
            elif a[2] == b'xmlns': own.append((TEXT, a[2])); fixed = [(TEXT, v)]
            else:
                prefix, local, uri, named = self.name(a[2], scope, False); own += named; fixed = None
                if uri == XSI and local == b'type' or uri in ENVELOPES and local in (b'mustUnderstand', b'actor', b'role', b'encodingStyle') or not uri and not prefix and local == b'Algorithm':
                    p, colon, rest = v.partition(b':'); key = scope.get(p, (b'', None))[1] if colon and p else None; fixed = (key, p, rest)
            own.append((TEXT, a[3] + q))
            if fixed is None: own.append(self.value(kind_of(v), 1 if q == b'"' else 2, v))
            elif isinstance(fixed, tuple): own += [self.slot(fixed[0], fixed[1]), (TEXT, b':' + fixed[2])] if fixed[0] else [(TEXT, v)]
            else: own += fixed
            kids.append((ATTRIBUTE, own + [(TEXT, q)]))
        kids.append((TEXT, m[5])); at = m.end()
        if m[5].endswith(b'/>'): return (ELEMENT, kids), at
        inside, begin, run, mark, kept = [], at, at, False, dict(self.slots)
        while True:
            i = src.index(b'<', at); t = TOKEN.match(src, i); need(t and not t[0].startswith(b'<!D'), 'XML')
            if t[3]:
                gap, first = self.gap(src[run:i], mark), [self.place(), 1]; node, at = self.element(t, scope, depth + 1); entry = [ARRAY, gap + [node], [first]]; run, mark = at, False
                if inside and gap[0][0] == TEXT and same(inside[-1], entry): inside[-1][2][-1][1] += 1; fold(inside[-1][1][1], node)
                else: inside.append(entry)
            elif t[1]:
                need(t[1] == m[3], 'end tag'); text = src[run:i]
                if len(inside) > 256: self.slots = kept; inside = [self.value(OPEN, 4, src[begin:i])]
                elif inside: inside += self.gap(text, mark)
                else: inside = [self.value(0 if mark else kind_of(text), 0, text)]
                return (ELEMENT, kids + inside + [(TEXT, b'</')] + self.name(m[3], scope)[3] + [(TEXT, t[2])]), t.end()
            else: at, mark = t.end(), True
def words(b): return [w for w in re.findall(rb'[0-9A-Za-z_\x80-\xff]+', b)]
def repeats(n): return any(k > 1 for _, k in n[2])
def leaves(n):                          # of the values, slots and arrays of a tree each, in order
    if n[0] in (VALUE, SLOT) or n[0] == ARRAY and repeats(n): yield n
    for k in n[1] if n[0] in (SEQUENCE, ELEMENT, ATTRIBUTE, ARRAY) else []: yield from leaves(k)
def field(kind, b):                     # what a value has in the memory, by sort; None: it is not noted
    if kind in (2, DECIMAL, 4, SCIENTIFIC):
        n = number(b)
        if n and abs(n[0]) < 1 << 59: return [('kind', 1 if kind == 2 else 1 + n[1]), ('number', n[0])]
        if b in WORDS: return [('kind', 65 + WORDS.index(b)), ('number', 0)]
        e = exponent(b); return [('kind', 33 + e[1]), ('number', e[0]), ('minutes', e[2])] if e else [('kind', 0), ('text', b)]
    if kind == BOOLEAN: return [('kind', b == b'true')] if b in (b'true', b'false') else [('kind', 2), ('text', b)]
    if kind == UUID: return [('kind', 1 + (b[-36:] != b[-36:].lower()) + 2 * (len(b) > 36)), ('octets', bytes.fromhex(b[-36:].replace(b'-', b'').decode()))] if ID.fullmatch(b) else [('kind', 0), ('text', b)]
    if kind == DATETIME:
        if not (m := moment(b)): return [('kind', 0), ('text', b)]
        f, t, z = m; return [('kind', f), ('number', t)] + [('minutes', z)] * (f > 20)
    if kind in (BASE64, HEX):
        w, end = lines(b, 508 if kind == BASE64 else 252); chars, n = take(b, w, end); crlf = 128 * (end == b'\r\n' and w > 0)
        first = re.search(rb'[^0-9\r\n+/=]' if kind == BASE64 else rb'[A-Za-z]', b); upper = kind == HEX and first and first[0] <= b'F'
        octets = strict(chars) if kind == BASE64 else bytes.fromhex(chars.decode()) if len(chars) % 2 == 0 and re.fullmatch(rb'[0-9A-F]*' if upper else rb'[0-9a-f]*', chars) else None
        if n < len(b) or len(chars) > 8192 or octets is None: return None
        return [('kind', (w // 4 | crlf) if kind == BASE64 else (w // 4 << 1 | upper | crlf)), ('octets', octets)]
    return [('text', b)]
def note(plain, unpacker, memory):      # what the memory of a lane has of a text
    u, columns, last, all = unpacker, {}, b'', leaves(plain.root)
    by = {id(k): (k, inside) for k, _, inside in order(u.shape)}
    for key, _ in u.signs:
        (k, inside), n = by[key], next(all)
        if n[0] == ARRAY and k.column is not None: next(all); continue
        for place, b in n[3 if n[0] == VALUE else 2]:
            if n[0] == ARRAY: fields = [('number', 2 * b)]
            elif n[0] == SLOT: fields, last = [('kind', 1)] if b == (re.sub(rb'[0-9]+$', lambda m: b'%d' % (int(m[0]) + 1), last) if last else b'ns1') else [('kind', 0), ('text', b)], b
            else: fields = field(n[1], b)
            if fields is None: return
            for i, (sort, v) in enumerate(fields): columns.setdefault((key, sort), (place, i, k, inside, sort, []))[5].append(v)
    if memory.whole() > WEIGHT: memory.__init__()
    u.m = memory; u.time, u.moved = None, None; u.places, remembered = memory.places(u.fingerprint, u.signs); before = memory.weight
    for _, _, k, inside, sort, values in sorted(columns.values(), key=lambda c: c[:2]):
        p = u.place(k)
        for v in values:
            if sort == 'kind': p.kind = int(v)
            elif sort == 'number': u.note(k, p, v)
            elif sort == 'minutes': p.minutes = v
            elif v != p.octets:
                if sort == 'text':
                    for w in words(v): memory.words.enter(w)
                    memory.texts.enter(v)
                u.keep(p, v)
        if inside and sort == 'number': w = (max(values) - min(values)).bit_length(); p.base, p.width = min(values) - ((1 << w) - 1 - max(values) + min(values)) // 2 * (0 < w < 63), w
    memory.weight = memory.weight if remembered else before
