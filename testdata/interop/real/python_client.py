"""Calls a server of stacks.wsdl: python_client.py requests|zeep|curl kept|closed VALUES WSDL URL. Prints the microseconds of each call."""
import os
import subprocess
import sys
import tempfile

import values

client, connections, path, wsdl, url = sys.argv[1:]
kept, calls = connections == "kept", values.read(path)
HEADERS = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'}


def by_requests():
    import requests

    one = requests.Session()

    def make(records):
        post = one.post if kept else requests.post  # the latter connects for each call
        reply = post(url, data=values.envelope("records", records), headers=HEADERS)
        reply.raise_for_status()
        return reply.text if reply.encoding else reply.content.decode()

    values.timed(calls, make)


def by_zeep():
    import zeep

    one = zeep.Client(wsdl)
    if not kept:
        one.transport.session.headers["Connection"] = "close"
    service = one.create_service("{urn:hhfr:peer:1}stacks", url)

    def make(records):
        rows = [{"text": t, "number": n, "flag": f} for t, n, f in records]
        return [(r.text, r.number, r.flag) for r in service.records(record=rows)]

    values.timed(calls, make)


def by_curl():
    """All calls by one curl on one connection, or by a curl for each; with Expect: 100-continue."""
    with tempfile.TemporaryDirectory() as folder:
        configs, replies = [], []
        for n, records in enumerate(calls):
            body, reply = os.path.join(folder, "body%d" % n), os.path.join(folder, "reply%d" % n)
            with open(body, "wb") as f:
                f.write(values.envelope("records", records))
            lines = ['url = "%s"' % url, 'data-binary = "@%s"' % body, 'output = "%s"' % reply, "silent", "show-error", "fail",
                     'header = "Expect: 100-continue"', 'write-out = "%{time_total}\\n"']
            lines += ['header = "%s: %s"' % (name, value.replace('"', '\\"')) for name, value in HEADERS.items()]
            configs.append("\n".join(lines) + "\n")
            replies.append(reply)
        for config in ["next\n".join(configs)] if kept else configs:
            done = subprocess.run(["curl", "-q", "-K", "-"], input=config.encode(), stdout=subprocess.PIPE, check=True)
            for took in done.stdout.decode().split():
                print("%.0f" % (float(took) * 1e6))
        for n, reply in enumerate(replies):
            with open(reply, encoding="utf-8") as f:
                got = f.read()
            for text, _, _ in calls[n]:
                if text not in got:
                    sys.exit("call %d: another reply: %s" % (n + 1, got))


{"requests": by_requests, "zeep": by_zeep, "curl": by_curl}[client]()
