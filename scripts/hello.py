"""The short form of hello (docs/wire-format.md, §3.1), for decode.py."""
import hashlib
from unpack import need

SPEC = 'scheme role:octet seed:8 token:bytes stages abilities other:octet'
USUAL = {'max fragment': 16384, 'max message': 1 << 62, 'max shapes': 1024, 'max shape octets': 4 << 20, 'max exchanges': 4096,
         'window': 1 << 18, 'max held': 1 << 20, 'lifetime': 3600}


def brief(r):
    """The fields of a hello in the short form, as the long form has them."""
    f = r.fields(SPEC)
    role, seed, other = f['role'], f.pop('seed'), f['other']
    need(4 <= role < 8, 'role')
    need(seed[6] >> 4 == 8, 'session of another version')
    need(role & 1 or not f['token'], 'token of an initiator')
    half = bytearray(hashlib.sha256(seed).digest()[:8])
    half[0] = half[0] & 0x3F | 0x80
    session = seed + half
    f.update(role=role & 3, session=session, representation=1, target='')
    f['sync word'] = hashlib.sha256(session + bytes([role & 1])).digest()[:8]
    for k, (name, value) in enumerate(USUAL.items()):
        f[name] = r.uvarint() if other >> k & 1 else value if name != 'lifetime' or role & 1 else 0
    f['later'] = r.rest()
    return f
