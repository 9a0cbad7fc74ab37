"""Calls servers of stacks.wsdl, and the services of hhfr serve, with zeep: zeep_client.py WSDL KEY.pem CERT.pem CALL=URL…. Prints a line for each call."""
import base64
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


def services(base):
    """Calls each service by its own description."""
    for version in ("1.1", "1.2"):
        def of(name, service="", port=""):
            client = zeep.Client("%s/%s?wsdl" % (base, name))
            return client.bind(service or name, (port or name + "Soap") + version.replace(".", ""))

        def say(name, said):
            print("%s %s: %s" % (name, version, said))

        say("concat", of("concat").concat(item=["thin ", " links", "é<&>"]))
        say("sum", of("sum").sum(item=[1.5, -0.25]))
        got = of("records").records(record=[{"text": "<one>", "number": -1, "flag": True},
                                            {"text": "zwei é", "number": 2147483647, "flag": False}])
        say("records", ", ".join("%s %d %s" % (r.text, r.number, str(r.flag).lower()) for r in got))
        say("geoip", str(of("geoip").geoip(address="129.125.102.100")).lower())
        try:
            say("refused", of("geoip").geoip(address="nowhere"))
        except zeep.exceptions.Fault as fault:
            say("refused", fault.message)
        say("blob", base64.b64encode(of("blob").blob(size=30, seed=7)).decode())
        say("ticker", "ticks" if of("ticker").ticker().number > 0 else "no tick")
        ledger = of("ledger")
        entry = ledger.read(**{"from": ledger.add(id="a-1", amount=-5).count, "most": 1}).entry[0]
        say("ledger", "%s %d" % (entry.id, entry.amount))
        context = of("context", "ContextService", "Soap")
        begun = context.begin(type="urn:example:type", timeout=60)
        say("context", context.getStatus(**{"context-identifier": begun["context-identifier"]}))


for argument in sys.argv[4:]:
    call, url = argument.split("=", 1)
    if call == "services":
        services(url)
        continue
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
