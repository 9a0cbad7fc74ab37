"""Calls the services of a test peer from their descriptions, with zeep: zeep_client.py BASE-URL. Exits 1 when an answer is another than expected."""
import sys

import zeep

base = sys.argv[1]


def service(name, port):
    client = zeep.Client(base + "/" + name + "?wsdl")
    return client, client.bind(name, name + port)


def same(what, want, got):
    if want != got:
        sys.exit("%s: want %r, got %r" % (what, want, got))


for port in ("Soap11", "Soap12"):
    _, concat = service("concat", port)
    same("concat", "thin  linksé<&>", concat.concat(item=["thin ", " links", "é<&>"]))
    same("concat of nothing", None, concat.concat(item=[]))

    _, numbers = service("sum", port)
    same("sum", 1.25, numbers.sum(item=[1.5, -0.25]))
    same("sum of nothing", 0.0, numbers.sum(item=[]))
    same("sum beyond the range", float("inf"), numbers.sum(item=[3e38, 3e38]))

    _, records = service("records", port)
    rows = [{"text": "one\n two", "number": -1, "flag": True}, {"text": "&", "number": 2147483647, "flag": False}]
    got = records.records(record=rows)
    same("records", rows, [{"text": r.text, "number": r.number, "flag": r.flag} for r in got])

    _, geoip = service("geoip", port)
    same("inside", True, geoip.geoip(address="129.125.102.100"))
    same("outside", False, geoip.geoip(address="192.0.2.1"))
    try:
        geoip.geoip(address="nowhere")
    except zeep.exceptions.Fault as fault:
        same("fault", '"nowhere" is no IPv4 address', fault.message)
    else:
        sys.exit("no fault for what is no address")

    _, blob = service("blob", port)
    same("blob", 1000, len(blob.blob(size=1000)))

    _, ticker = service("ticker", port)
    first = ticker.ticker()
    second = ticker.ticker()
    same("ticks grow", True, second.number > first.number)

print("zeep", zeep.__version__, "agrees")
