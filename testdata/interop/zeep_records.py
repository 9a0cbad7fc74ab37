"""Calls a records service with zeep: zeep_records.py WSDL URL [fault]. WSDL is a file or a URL. Exits 1 when an answer is another than expected."""
import sys

import zeep

wsdl, url = sys.argv[1], sys.argv[2]
client = zeep.Client(wsdl)
name = next(iter(client.wsdl.bindings))
service = client.create_service(name, url)


def rows(reply):
    return [(r.text, r.number, r.flag) for r in reply]


for call in range(3):
    sent = [("row %d of call %d: <&> é\n" % (i, call), i * (call + 1) - 100, i % 3 == 0) for i in range(200)]
    got = rows(service.records(record=[{"text": t, "number": n, "flag": f} for t, n, f in sent]))
    if got != sent:
        sys.exit("call %d: other rows" % call)

if len(sys.argv) > 3:
    try:
        service.records(record=[{"text": "refuse", "number": 0, "flag": False}])
    except zeep.exceptions.Fault as fault:
        if "no such record" not in fault.message:
            sys.exit("another fault: " + fault.message)
    else:
        sys.exit("no fault")

print("zeep", zeep.__version__, "agrees")
