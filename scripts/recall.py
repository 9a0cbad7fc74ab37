"""Segments by a window of the hhfr wire format, for expand.py, written from section 11.8 of docs/wire-format.md."""
import functools
from fold import VOCABULARY
from unpack import MOST, need
NEAR, FAR, LONG, EVEN = 65536, 262144, 100, 2048
def literal_keys(one, two):             # the two probabilities of each bit of a literal, by the octets before it
    context, hashed = one & 63, (one << 8 | two) * 0x9E3779B1 & 0xFFFFFFFF
    return lambda node: (('last', context, node), ('two', ((hashed >> 8) + node * 0x2545F491) * 0x9E3779B1 % (1 << 32) >> 18))
def follow(p, key, bit, rate): v = p.get(key, EVEN); p[key] = v - (v >> rate) if bit else v + (4096 - v >> rate)
@functools.lru_cache(None)
def literals():                         # what the end of the vocabulary makes of the model of literals
    p, one, two = {}, 62, 62
    for octet in VOCABULARY[-8192:]:
        keys, node = literal_keys(one, two), 1
        for i in range(7, -1, -1):
            for key, rate in zip(keys(node), (5, 4)): follow(p, key, octet >> i & 1, rate)
            node = node << 1 | octet >> i & 1
        one, two = octet, one
    return p
class Coder:
    def __init__(self, octets, tokens): self.p, self.q, self.width, self.buf, self.at = tokens, dict(literals()), (1 << 32) - 1, octets, 4; self.code = int.from_bytes(octets[:4].ljust(4, b'\0'), 'big')
    def choose(self, zero):
        if bit := self.code >= zero: self.code -= zero; self.width -= zero
        else: self.width = zero
        while self.width < 1 << 24: self.width <<= 8; self.code = self.code << 8 | (self.buf[self.at] if self.at < len(self.buf) else 0); self.at += 1
        return int(bit)
    def bit(self, *key): bit = self.choose((self.width >> 12) * self.p.get(key, EVEN)); follow(self.p, key, bit, 4); return bit
    def literal(self, one, two):
        keys, node = literal_keys(one, two), 1
        while node < 256:
            a, b = keys(node); bit = self.choose((self.width >> 13) * (self.q.get(a, EVEN) + self.q.get(b, EVEN)))
            follow(self.q, a, bit, 5), follow(self.q, b, bit, 4); node = node << 1 | bit
        return node & 255
    def number(self, *name):
        node = rest = 1
        for _ in range(5): node = node << 1 | self.bit(*name, 'size', node)
        for _ in range((node & 31) - 1): rest = rest << 1 | (self.bit(*name, 'high', node & 31, rest) if rest < 8 else self.choose(self.width >> 1))
        return rest - 1
def kind_of(c): return 1 if c == 60 else 2 if c == 62 else 3 if c in b'"\'' else 4 if c <= 32 else 5 if 48 <= c <= 57 else 6 if 97 <= c | 32 <= 122 else 0
def recall(b, keeper, anew):            # keeper: what has the window, of a lane or of a part
    if anew: keeper.said, keeper.tokens, keeper.gap, keeper.far = b'', {}, False, False
    need(not getattr(keeper, 'gap', False), 'window that lacks what was given up')
    far = getattr(keeper, 'far', False)
    if len(b) > 1 and not b[0]: need(not far, 'window that is far gets far'); far, b = True, b[1:]
    reach, before, tokens = FAR if far else NEAR, getattr(keeper, 'said', b''), dict(getattr(keeper, 'tokens', {}))
    n = next((i for i in range(min(3, len(b))) if b[i] < 128), None); need(n is not None and (b[n] or not n), 'size'); size = sum((c & 127) << 7 * i for i, c in enumerate(b[:n + 1]))
    need(0 < size <= MOST and (len(b) == n + 1 or b[-1]), 'size, or zeros at the end')
    c, out, kept, past, dists = Coder(b[n + 1:], tokens), bytearray(VOCABULARY + before), bytearray(), 0, [0] * 4
    start = len(out); at = lambda i: out[-i] if len(out) - len(VOCABULARY) >= i else 62
    while len(out) < start + size:
        if not c.bit('copy', past, kind_of(at(1))): octet = c.literal(at(1), at(2)); out.append(octet), kept.append(octet); past = past << 2 & 12; continue
        if c.bit('repeat', past):
            which = 0
            while which < 3 and c.bit('which', which, past): which += 1
            length, past = 1 + c.number('length', 1), past << 2 & 12 | (3 if which else 2); dists.insert(0, dists.pop(which))
        else:
            length = 3 + c.number('length', 0); dists = [1 + c.number('far', min(length - 3, 3))] + dists[:3]; past = past << 2 & 12 | 1
        need(0 < dists[0] <= len(out) and len(out) + length <= start + size, 'copy of nothing'); spare = length >= LONG and dists[0] < len(out) - start + reach // 2
        for _ in range(length): out.append(out[-dists[0]]); spare or kept.append(out[-1])
    need(c.at >= len(c.buf), 'octets left over'); keeper.said, keeper.tokens, keeper.far = (before + kept)[-reach:], tokens, far; return bytes(out[start:])
