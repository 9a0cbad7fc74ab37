"""A server of the records service in spyne, on a port that it prints."""
import wsgiref.simple_server

from spyne import Application, Boolean, ComplexModel, Fault, Integer32, ServiceBase, Unicode, rpc
from spyne.protocol.soap import Soap11
from spyne.server.wsgi import WsgiApplication

NAMESPACE = "urn:hhfr:peer:1"


class Record(ComplexModel):
    __namespace__ = NAMESPACE
    _type_info = [("text", Unicode(min_occurs=1)), ("number", Integer32(min_occurs=1)), ("flag", Boolean(min_occurs=1))]


Rows = Record.customize(max_occurs="unbounded")


class Records(ServiceBase):
    @rpc(Rows, _returns=Rows, _out_variable_name="record")
    def records(self, record):
        if any(row.text == "refuse" for row in record or []):
            raise Fault("Client", "no such record")
        return record


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


application = WsgiApplication(Application([Records], NAMESPACE, name="records", in_protocol=Soap11(validator="lxml"), out_protocol=Soap11()))
server = wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Handler)
print(server.server_port, flush=True)
server.serve_forever()
