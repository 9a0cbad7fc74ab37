"""A server of stacks.wsdl with http.server: prints its port, and ends with its standard input. Head and body of a reply are two writes, as http.server has it."""
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import values

RECORD = re.compile(r"<(?:\w+:)?text>([^<]*)</.*?number>(-?\d+)</.*?flag>(\w+)</", re.S)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        reply = values.envelope("recordsResponse", [(t, int(n), f in ("true", "1")) for t, n, f in RECORD.findall(body)])
        self.send_response(200)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
