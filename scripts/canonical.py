#!/usr/bin/env python3
"""An independent check of canonical forms of descriptions, written from docs/schemas.md (§: its
sections) alone.
canonical.py DIR...   check canonical.txt and names.txt in each folder"""
import hashlib, re, sys

STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\]|\\u00[01][0-9a-f])*"'
SUPPLIED = f'( default {STRING})?( fixed {STRING})?'
WILDCARD = rf'\((strict|lax|skip)( not {STRING}|( {STRING})+)?\)'
FACET = rf'((\w+ (\w+|{STRING}))|(pattern|values)\({STRING}( {STRING})*\))'
FACETS = rf'(\[{FACET}( {FACET})*\])?'


def texts(depth):  # §2.2, as deep as the forms here need it
    inner = texts(depth - 1) if depth else r'\w+'
    return rf'((\w+|list\({inner}\)|union\({inner}( {inner})*\)){FACETS})'


def particles(depth):
    base = rf'(\d+|any{WILDCARD})'
    if depth:
        inner = particles(depth - 1)
        base = rf'({base}|(sequence|choice|all)\({inner}( {inner})*\))'
    return base + r'(\{\d+,(\d+|\*)\})?'


NAME, TEXT = f'{STRING} {STRING}', texts(1)
BLOCK = r' block\((extension|restriction|extension restriction)\)'
MESSAGE = re.compile(r'body( \d+)*( type \d+)?( header( \d+)+)?( encoded)?')
NODE = re.compile(
    rf'element {NAME} \d+( nillable)?( abstract)?{SUPPLIED}( or( \d+)+)?( except \d+|{BLOCK})?|types( {NAME})+|type any|type( array \d+ {STRING})?( abstract)?'
    rf'( mixed)?( text {TEXT})?( attribute\({NAME} {TEXT}( required)?{SUPPLIED}\))*( attributes{WILDCARD})?'
    rf'( content {particles(3)})?( derived\({NAME} \d+\))*')


def references(line):
    """The numbers of nodes in a line, and the line without them."""
    kept = []
    keep = lambda m: kept.append(m[0]) or f'\x00{chr(0xE000 + len(kept) - 1)}'
    bare = re.sub(r'\[[^\]]*\]|\{[^}]*\}', keep, re.sub(STRING, keep, line))
    found = [int(n) for n in re.findall(r'\b\d+\b', bare)]
    return found, re.sub(r'\b\d+\b', '#', bare), kept


def check(folder):
    form = open(f'{folder}/canonical.txt', 'rb').read()
    assert form.endswith(b'\n')
    first, message, *nodes = form.decode().splitlines()
    assert first == 'hhfr schema 2' and MESSAGE.fullmatch(message), message
    for line in nodes:
        assert NODE.fullmatch(line), line
    refs = [references(line) for line in nodes]
    met = []  # §2.1: the order of the numbers
    for found in [references(message)[0]] + [r[0] for r in refs]:
        met += [n for n in dict.fromkeys(found) if n not in met]
    assert met == list(range(len(nodes))), f'numbers in the order {met}'
    group = {}  # §2.1: no two nodes describe the same
    classes = [group.setdefault(str(r[1:]), len(group)) for r in refs]
    while True:
        group = {}
        split = [group.setdefault((classes[i], *(classes[n] for n in r[0])), len(group)) for i, r in enumerate(refs)]
        if len(group) == len(set(classes)):
            break
        classes = split
    assert len(group) == len(nodes), 'nodes that describe the same'
    uri, identifier = open(f'{folder}/names.txt').read().split()
    assert uri == 'urn:hhfr:schema:sha256:' + hashlib.sha256(form).hexdigest()
    assert identifier == hashlib.md5(form).hexdigest()


for folder in sys.argv[1:]:
    try:
        check(folder)
    except AssertionError as e:
        sys.exit(f'{folder}: {e}')
print(f'{len(sys.argv) - 1} canonical forms are right')
