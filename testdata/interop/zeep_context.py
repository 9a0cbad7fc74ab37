"""Uses a context service by its description, with zeep: zeep_context.py URL. Exits 1 when an answer is another than expected."""
import sys

import zeep
from lxml import etree

url = sys.argv[1]
NS = "http://docs.oasis-open.org/ws-caf/2005/10/wsctx"
ID = "context-identifier"


def same(what, want, got):
    if want != got:
        sys.exit("%s: want %r, got %r" % (what, want, got))


def canonical(element):
    """An element without the declarations that are around it."""
    return etree.tostring(element, method="c14n", exclusive=True)


def fault(what, call):
    """The name of the element in the fault that a call ends in."""
    try:
        call()
    except zeep.exceptions.Fault as f:
        return etree.QName(f.detail[0]).localname
    sys.exit("%s: no fault" % what)


client = zeep.Client(url + "?wsdl")
for port in ("Soap11", "Soap12"):
    service = client.bind("ContextService", port)
    uri = "urn:example:" + port
    order = etree.fromstring('<o:order xmlns:o="urn:example"><o:item n="1">thin &amp; links \u00e9</o:item></o:order>')
    got = service.setContents(**{ID: uri, "expect-version": 0, "_value_1": [order]})
    version = got["version"]
    got = service.getContents(**{ID: uri})
    same("contents", canonical(order), canonical(got["_value_1"][0]))
    same("version", version, got["version"])
    same("conflict", "versionConflictFault",
         fault("conflict", lambda: service.setContents(**{ID: uri, "expect-version": 0, "_value_1": [order]})))
    same("unknown", "unknownContextFault", fault("unknown", lambda: service.getContents(**{ID: "urn:example:none"})))

    begun = service.begin(type="urn:example:type", timeout=60)
    parent = begun[ID]
    child = service.begin(parent=parent)[ID]
    same("status", NS + "/status/active", service.getStatus(**{ID: child}))
    same("pending", "childActivityPendingFault", fault("pending", lambda: service.complete(**{ID: parent})))
    service.setTimeout(**{ID: child, "timeout": 30})
    if not 0 < float(service.getTimeout(**{ID: child})) <= 30:
        sys.exit("the timeout is not what was set")
    service.complete(**{ID: child})
    service.complete(**{ID: parent})
    same("completed", NS + "/status/completed", service.getStatus(**{ID: parent}))
    same("state", "invalidStateFault", fault("state", lambda: service.setContents(**{ID: parent, "_value_1": [order]})))
    own = [e["_value_1"] for e in service.list(prefix="urn:example:")]
    if uri not in own:
        sys.exit("%s is not in %r" % (uri, own))
    service.delete(**{ID: uri})
    same("deleted", "unknownContextFault", fault("deleted", lambda: service.getContents(**{ID: uri})))
print("agrees")
