"""Calls servers of stacks.wsdl with zeep: zeep_client.py WSDL KEY.pem CERT.pem CALL=URL…. Prints a line for each call."""
import sys

import xmlsec
import zeep
from zeep.wsa import WsAddressingPlugin
from zeep.wsse.signature import BinarySignature

wsdl, key, cert = sys.argv[1:4]
rows = [{"text": "row %d: <&> é" % i, "number": i * 3 - 100, "flag": i % 3 == 0} for i in range(200)]


def make(call, url):
    plugins, signature = [], None
    if call == "addressed":
        plugins = [WsAddressingPlugin()]
    if call == "signed":
        signature = BinarySignature(key, cert, signature_method=xmlsec.Transform.RSA_SHA256, digest_method=xmlsec.Transform.SHA256)
    client = zeep.Client(wsdl, plugins=plugins, wsse=signature)
    return client.create_service("{urn:hhfr:peer:1}stacks", url)


for argument in sys.argv[4:]:
    call, url = argument.split("=", 1)
    service = make(call, url)
    if call == "fault":
        try:
            service.records(record=[{"text": "refuse", "number": 0, "flag": False}])
            said = "no fault"
        except zeep.exceptions.Fault as fault:
            said = fault.message
    elif call == "note":
        service.note(text="remember <this>")
        said = "sent"
    else:
        for _ in range(3):
            got = [{"text": r.text, "number": r.number, "flag": r.flag} for r in service.records(record=rows)]
        said = "%d rows" % len(got) if got == rows else "other rows"
    print("%s: %s" % (call, said))
