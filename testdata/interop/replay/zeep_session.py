"""Calls sum of a WSDL with zeep, with ids of WS-Addressing, a UsernameToken in a digest, and a timestamp: zeep_session.py WSDL. Prints the results."""
import datetime
import sys

import zeep
from zeep.wsa import WsAddressingPlugin
from zeep.wsse import utils
from zeep.wsse.username import UsernameToken


class Session:
    """Makes token and timestamp anew for each call: zeep makes them for a client."""

    def apply(self, envelope, headers):
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp = utils.WSU.Timestamp(
            utils.WSU.Created(utils.get_timestamp(now)),
            utils.WSU.Expires(utils.get_timestamp(now + datetime.timedelta(minutes=5))))
        token = UsernameToken("alice", "secret", use_digest=True, created=now, timestamp_token=stamp)
        return token.apply(envelope, headers)

    def verify(self, envelope):
        pass


client = zeep.Client(sys.argv[1], plugins=[WsAddressingPlugin()], wsse=Session())
service = client.bind("sum", "sumSoap11")
for n in range(20):
    print(service.sum(item=[n, 0.5]))
