/* Calls the records service at a URL, with what soapcpp2 makes of its description: gsoap_client URL plain|chunked [fault].
 * Three calls on one kept-alive connection. Exits 1 when an answer is another than expected. */
#include "soapH.h"
#include "recordsSoap11.nsmap"

#define ROWS 200

static int die(struct soap *soap, const char *what) {
	fprintf(stderr, "%s\n", what);
	if (soap->error)
		soap_print_fault(soap, stderr);
	return 1;
}

int main(int argc, char **argv) {
	if (argc < 3)
		return 2;
	soap_mode mode = SOAP_IO_KEEPALIVE | SOAP_C_UTFSTRING | (strcmp(argv[2], "chunked") ? 0 : SOAP_IO_CHUNK);
	struct soap *soap = soap_new1(mode);
	soap->connect_timeout = soap->send_timeout = soap->recv_timeout = 30;
	for (int call = 0; call < 3; call++) {
		struct ns1__Record rows[ROWS];
		struct _ns1__records in = {ROWS, rows};
		struct _ns1__recordsResponse out = {0};
		char text[ROWS][64];
		for (int i = 0; i < ROWS; i++) {
			snprintf(text[i], sizeof text[i], "row %d of call %d: <&> \xc3\xa9", i, call);
			rows[i].text = text[i];
			rows[i].number = i * (call + 1) - 100;
			rows[i].flag = i % 3 == 0;
		}
		if (soap_call___ns1__records(soap, argv[1], NULL, &in, &out) != SOAP_OK)
			return die(soap, "call");
		if (out.__sizerecord != ROWS)
			return die(soap, "another number of rows");
		for (int i = 0; i < ROWS; i++)
			if (strcmp(out.record[i].text, text[i]) || out.record[i].number != rows[i].number || out.record[i].flag != rows[i].flag)
				return die(soap, "another row");
		soap_destroy(soap);
		soap_end(soap);
	}
	if (argc > 3) {
		struct ns1__Record row = {"refuse", 0, 0};
		struct _ns1__records in = {1, &row};
		struct _ns1__recordsResponse out = {0};
		if (soap_call___ns1__records(soap, argv[1], NULL, &in, &out) == SOAP_OK)
			return die(soap, "no fault");
		const char **text = soap_faultstring(soap);
		if (!text || !*text || !strstr(*text, "no such record"))
			return die(soap, "another fault");
	}
	soap_destroy(soap);
	soap_end(soap);
	soap_free(soap);
	printf("gSOAP %d agrees\n", GSOAP_VERSION);
	return 0;
}
