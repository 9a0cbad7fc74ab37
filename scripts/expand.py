"""Compressed segments of the hhfr wire format, for decode.py, written from section 11.7 of docs/wire-format.md."""
from fold import VOCABULARY
from recall import recall
from unpack import MOST, need
def frame_reader():                     # what expands one frame
    try: from compression import zstd as z; return z.ZstdDecompressor(zstd_dict=z.ZstdDict(VOCABULARY, is_raw=True))
    except ImportError: pass
    try: import zstandard as z; return z.ZstdDecompressor(dict_data=z.ZstdCompressionDict(VOCABULARY, z.DICT_TYPE_RAWCONTENT)).decompressobj()
    except ImportError: raise LookupError('a compressed segment (wire-format section 11.7) needs Python 3.14, or the module zstandard')
def expand(b, packed, keeper):          # §11.7: a segment before it was compressed; keeper: what has its window
    if b[:1] == b'\xf8' and not packed: return need(b[1:2] in (b'\xf6', b'\xf8', b'\xfa', b'\xfc'), 'marked as plain for nothing') or b[1:]
    if b[:1] in (b'\xf6', b'\xfa'): return recall(b[1:], keeper, b[0] == 0xFA)
    if b[:1] != b'\xfc': return b
    need(len(b) > 4 and b[1] in (0x20, 0x60), 'header of a frame'); size, z = b[2] if b[1] == 0x20 else 256 + b[2] + 256 * b[3], frame_reader(); need(size <= MOST, 'size of a frame')
    try: out = z.decompress(b'\x28\xb5\x2f\xfd' + b[1:])
    except Exception as e: need(False, f'frame: {e}')
    need(z.eof and not z.unused_data and len(out) == size, 'size of a frame'); return out
