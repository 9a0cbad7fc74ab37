"""The calls that the suite gives its clients: a file with a line for each record, text, number and flag between tabs, and an empty line behind each call."""
import time


def read(path):
    """Returns the calls, each a list of records."""
    with open(path, encoding="utf-8") as f:
        calls = f.read().split("\n\n")[:-1]
    return [[(text, int(number), flag == "true") for text, number, flag in (line.split("\t") for line in call.split("\n"))] for call in calls]


def envelope(operation, records):
    """Returns the envelope of a call, or of its reply, as a program without a SOAP stack writes it."""
    rows = "".join("<record><text>%s</text><number>%d</number><flag>%s</flag></record>" % (t, n, str(f).lower()) for t, n, f in records)
    return ('<?xml version="1.0" encoding="utf-8"?>\n<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>'
            '<%s xmlns="urn:hhfr:peer:1">%s</%s></soap:Body></soap:Envelope>' % (operation, rows, operation)).encode()


def timed(calls, make):
    """Makes each call and prints the microseconds that it took. make returns what came back: records, or text that has theirs."""
    for number, records in enumerate(calls, 1):
        began = time.perf_counter()
        got = make(records)
        took = time.perf_counter() - began
        if isinstance(got, str):
            good = [t for t, _, _ in records if t in got] == [t for t, _, _ in records]
        else:
            good = got == records
        if not good:
            raise SystemExit("call %d: another reply: %s" % (number, got))
        print("%.0f" % (took * 1e6))
