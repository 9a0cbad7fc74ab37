// A client of archive.wsdl by gSOAP, which writes one request to stdout: store, or list where it is
// given an argument.
#include "soapH.h"
#include "ArchiveSoapBinding.nsmap"

int main(int argc, char **argv) {
	struct soap *soap = soap_new1(SOAP_XML_STRICT);
	struct ns1__Entry entry, previous;
	struct Table counts;
	struct ArrayOfInt folders;
	struct ns1__listResponse listed;
	enum xsd__boolean stored;
	int numbers[] = {17, 21, 17}, cells[] = {0, 1, 2, 3, 4, 5}, mail = 815, old = 814;
	time_t when = 1700000000;

	soap_default_ns1__Entry(soap, &entry);
	soap_default_ns1__Entry(soap, &previous);
	soap_default_Table(soap, &counts);
	soap_default_ArrayOfInt(soap, &folders);
	entry.date = previous.date = &when;
	entry.location = "Rack 7", previous.location = "Rack 6";
	entry.mailId = &mail, previous.mailId = &old;
	entry.referenceId = 4711, previous.referenceId = 4710;
	entry.subject = "Meter & more", previous.subject = "Before";
	entry.previous = previous.previous = &previous; // a circle
	counts.__ptr = cells, counts.__size[0] = 2, counts.__size[1] = 3;
	folders.__ptr = numbers, folders.__size = 3;
	soap->sendfd = 1;
	soap->recvfd = 0;
	if (argc > 1)
		soap_call_ns1__list(soap, "", "", "support@example.com", when, 100, &folders, &listed);
	else
		soap_call_ns1__store(soap, "", "", &entry, &counts, NULL, &stored);
	return 0; // there is no reply
}
