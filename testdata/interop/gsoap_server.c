/* A standalone server of the records service, of what soapcpp2 makes of its description. Prints its port; ends with the process that started it. */
#include "soapH.h"
#include "recordsSoap11.nsmap"

int __ns1__records(struct soap *soap, struct _ns1__records *in, struct _ns1__recordsResponse *out) {
	for (int i = 0; i < in->__sizerecord; i++)
		if (!strcmp(in->record[i].text, "refuse"))
			return soap_sender_fault(soap, "no such record", NULL);
	out->__sizerecord = in->__sizerecord;
	out->record = in->record;
	return SOAP_OK;
}

/* The same for the binding of SOAP 1.2. */
int __ns1__records_(struct soap *soap, struct _ns1__records *in, struct _ns1__recordsResponse *out) { return __ns1__records(soap, in, out); }

int main(void) {
	struct soap *soap = soap_new1(SOAP_IO_KEEPALIVE | SOAP_C_UTFSTRING);
	struct sockaddr_in addr;
	socklen_t size = sizeof addr;
	/* One connection at a time: a client that keeps its own open and idle makes others wait this long. */
	soap->send_timeout = soap->recv_timeout = 1;
	soap->bind_flags = SO_REUSEADDR;
	SOAP_SOCKET s = soap_bind(soap, "127.0.0.1", 0, 16);
	if (!soap_valid_socket(s) || getsockname(s, (struct sockaddr *)&addr, &size)) {
		soap_print_fault(soap, stderr);
		return 1;
	}
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	for (;;) {
		if (!soap_valid_socket(soap_accept(soap))) {
			soap_print_fault(soap, stderr);
			return 1;
		}
		soap_serve(soap); /* what it says about a request goes to the client, as a fault */
		soap_destroy(soap);
		soap_end(soap);
	}
}
