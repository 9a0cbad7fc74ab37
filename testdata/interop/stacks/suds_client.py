"""Calls servers of stacks.wsdl, and the services of hhfr serve, with suds: suds_client.py WSDL CALL=URL…. Prints a line for each call."""
import sys

import suds
from suds.client import Client

rows = [("row %d: <&> é" % i, i * 3 - 100, i % 3 == 0) for i in range(200)]


def client(wsdl, **options):
    return Client(wsdl, cache=None, **options)


def records(service, rows):
    got = service.records([{"text": text, "number": number, "flag": flag} for text, number, flag in rows])
    return [(str(r.text), r.number, r.flag) for r in got]


def fault(call):
    try:
        call()
        return "no fault"
    except suds.WebFault as fault:
        return fault.fault.faultstring


def services(base):
    """Calls each service by its own description; suds has SOAP 1.1 only."""
    def of(name, port=""):
        return client("%s/%s?wsdl" % (base, name)).service[port or name + "Soap11"]

    def say(name, said):
        print("%s 1.1: %s" % (name, said))

    say("concat", of("concat").concat(["thin ", " links", "é<&>"]))
    say("sum", of("sum").sum([1.5, -0.25]))
    got = records(of("records"), [("<one>", -1, True), ("zwei é", 2147483647, False)])
    say("records", ", ".join("%s %d %s" % (text, number, str(flag).lower()) for text, number, flag in got))
    say("geoip", str(of("geoip").geoip("129.125.102.100")).lower())
    say("refused", fault(lambda: of("geoip").geoip("nowhere")))
    say("blob", of("blob").blob(30, 7))
    say("ticker", "ticks" if of("ticker").ticker().number > 0 else "no tick")
    ledger = of("ledger")
    entry = ledger.read(ledger.add("a-1", -5).count, 1).entry[0]
    say("ledger", "%s %d" % (entry.id, entry.amount))
    context = of("context", "Soap11")
    begun = context.begin(type="urn:example:type", timeout=60)
    say("context", context.getStatus(begun["context-identifier"]))


for argument in sys.argv[2:]:
    call, url = argument.split("=", 1)
    if call == "services":
        services(url)
        continue
    service = client("file://" + sys.argv[1], location=url).service
    if call == "fault":
        said = fault(lambda: records(service, [("refuse", 0, False)]))
    elif call == "note":
        service.note("remember <this>")
        said = "sent"
    else:
        for _ in range(3):
            got = records(service, rows)
        said = "%d rows" % len(got) if got == rows else "other rows"
    print("%s: %s" % (call, said))
