"""Calls a mock of a WSDL with zeep: zeep_mock.py URL < calls. A line of stdin is a call: its binding and operation, and the values of
hhfr schema sample in JSON. Prints the operations that answered, a line each."""
import json
import sys

import zeep


def arguments(value):
    """What zeep takes for values in JSON: attributes are as elements, lists in them texts, and text beside them is _value_1."""
    if isinstance(value, list):
        return [arguments(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {"_value_1" if name == "$" else name.lstrip("@"): " ".join(map(str, v)) if name[0] == "@" and isinstance(v, list) else arguments(v)
            for name, v in value.items()}


client = zeep.Client(sys.argv[1], settings=zeep.Settings(xml_huge_tree=True))
ports = {port.binding.name.localname: (service.name, name) for service in client.wsdl.services.values() for name, port in service.ports.items()}
for line in sys.stdin:
    call = json.loads(line)
    service = client.bind(*ports[call["binding"]])
    getattr(service, call["operation"])(**arguments(call["values"]))
    print(call["operation"], flush=True)
