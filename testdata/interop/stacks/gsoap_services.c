/* Calls the services of hhfr serve, of what soapcpp2 makes of their descriptions: gsoap_services services=URL.... Prints a line for each call.
 * Each operation has a function for the port of SOAP 1.1 and one for that of 1.2, which differ in the envelope. */
#include "soapH.h"
#include "blobSoap11.nsmap"

static struct soap *soap;
static const char *base;

static const char *at(const char *service) {
	static char url[200];
	snprintf(url, sizeof url, "%s/%s", base, service);
	return url;
}

/* done ends the program if a call failed. */
static void done(int failed) {
	if (failed) {
		soap_print_fault(soap, stderr);
		exit(1);
	}
}

#define BY_VERSION(operation, ...) done(twelve ? soap_call_##operation##_(soap, __VA_ARGS__) : soap_call_##operation(soap, __VA_ARGS__))

static void services(int twelve) {
	const char *version = twelve ? "1.2" : "1.1";
	char *items[] = {"thin ", " links", "\xc3\xa9<&>"};
	struct _ns1__concat concat = {3, items};
	struct _ns1__concatResponse joined;
	BY_VERSION(__ns1__concat, at("concat"), NULL, &concat, &joined);
	printf("concat %s: %s\n", version, joined.result);

	float numbers[] = {1.5, -0.25};
	struct _ns1__sum sum = {2, numbers};
	struct _ns1__sumResponse added;
	BY_VERSION(__ns1__sum, at("sum"), NULL, &sum, &added);
	printf("sum %s: %g\n", version, added.result);

	struct ns1__Record rows[] = {{"<one>", -1, 1}, {"zwei \xc3\xa9", 2147483647, 0}};
	struct _ns1__records records = {2, rows};
	struct _ns1__recordsResponse back;
	BY_VERSION(__ns1__records, at("records"), NULL, &records, &back);
	printf("records %s: ", version);
	for (int i = 0; i < back.__sizerecord; i++)
		printf("%s%s %d %s", i ? ", " : "", back.record[i].text, back.record[i].number, back.record[i].flag ? "true" : "false");
	printf("\n");

	struct _ns1__geoip geoip = {"129.125.102.100"}, nowhere = {"nowhere"};
	struct _ns1__geoipResponse located;
	BY_VERSION(__ns1__geoip, at("geoip"), NULL, &geoip, &located);
	printf("geoip %s: %s\n", version, located.result ? "true" : "false");
	if (twelve)
		soap_call___ns1__geoip_(soap, at("geoip"), NULL, &nowhere, &located);
	else
		soap_call___ns1__geoip(soap, at("geoip"), NULL, &nowhere, &located);
	printf("refused %s: %s\n", version, soap->error ? *soap_faultstring(soap) : "no fault");

	ULONG64 seed = 7;
	struct _ns1__blob blob = {30, &seed};
	struct _ns1__blobResponse random;
	BY_VERSION(__ns1__blob, at("blob"), NULL, &blob, &random);
	printf("blob %s: %s\n", version, soap_s2base64(soap, random.payload.__ptr, NULL, random.payload.__size));

	struct _ns1__ticker ticker = {0};
	struct _ns1__tickerResponse tick;
	BY_VERSION(__ns1__ticker, at("ticker"), NULL, &ticker, &tick);
	printf("ticker %s: %s\n", version, tick.number > 0 ? "ticks" : "no tick");

	struct _ns1__add add = {"a-1", -5};
	struct _ns1__addResponse appended;
	BY_VERSION(__ns1__add, at("ledger"), NULL, &add, &appended);
	int one = 1;
	struct _ns1__read read = {&appended.count, &one};
	struct _ns1__readResponse entries;
	BY_VERSION(__ns1__read, at("ledger"), NULL, &read, &entries);
	printf("ledger %s: %s %lld\n", version, entries.entry->id, (long long)entries.entry->amount);

	struct _ns2__begin begin = {0};
	begin.type = "urn:example:type";
	begin.timeout = "60";
	struct _ns2__begun begun;
	BY_VERSION(__ns2__begin, at("context"), NULL, &begin, &begun);
	struct _ns2__getStatus get = {begun.context.context_identifier};
	char *status;
	BY_VERSION(__ns2__getStatus, at("context"), NULL, &get, &status);
	printf("context %s: %s\n", version, status);
}

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		base = strchr(argv[i], '=') + 1;
		soap = soap_new1(SOAP_IO_KEEPALIVE | SOAP_C_UTFSTRING);
		services(0);
		services(1);
		soap_destroy(soap);
		soap_end(soap);
		soap_free(soap);
	}
	return 0;
}
