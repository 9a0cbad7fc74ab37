/* A server of load.wsdl, of what soapcpp2 makes of that, with a thread for each connection: load RANGES, the ranges of addresses as
 * hhfr has them (distances of their ends, as varints). Prints its port; ends with the process that started it. */
#include <pthread.h>
#include "soapH.h"
#include "load.nsmap"

static unsigned bounds[1 << 16];
static int count;

static void die(const char *what) {
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void read_ranges(const char *path) {
	FILE *f = fopen(path, "rb");
	unsigned at = 0, distance = 0;
	int shift = 0;
	if (!f)
		die("no ranges");
	for (int c; (c = getc(f)) != EOF;) {
		distance |= (unsigned)(c & 127) << shift;
		shift += 7;
		if (c < 128) {
			if (count == sizeof bounds / sizeof *bounds)
				die("too many ranges");
			bounds[count++] = at += distance;
			distance = shift = 0;
		}
	}
	fclose(f);
}

int __ns1__geoip(struct soap *soap, struct _ns1__geoip *in, struct _ns1__geoipResponse *out) {
	struct in_addr parsed;
	if (inet_pton(AF_INET, in->address, &parsed) != 1)
		return soap_sender_fault(soap, "no IPv4 address", NULL);
	unsigned address = ntohl(parsed.s_addr);
	int low = 0, high = count / 2; /* of the ranges, the first whose end is not below the address */
	while (low < high) {
		int middle = (low + high) / 2;
		if (bounds[2 * middle + 1] < address)
			low = middle + 1;
		else
			high = middle;
	}
	out->result = low < count / 2 && bounds[2 * low] <= address;
	return SOAP_OK;
}

int __ns1__sum(struct soap *soap, struct _ns1__sum *in, struct _ns1__sumResponse *out) {
	double sum = 0;
	for (int i = 0; i < in->__sizeitem; i++)
		sum += in->item[i];
	out->result = (float)sum;
	return SOAP_OK;
}

static void *serve(void *arg) {
	struct soap *soap = (struct soap *)arg;
	soap_serve(soap); /* what it says about a request goes to the client, as a fault */
	soap_destroy(soap);
	soap_end(soap);
	soap_free(soap);
	return NULL;
}

int main(int argc, char **argv) {
	if (argc != 2)
		die("load RANGES");
	read_ranges(argv[1]);
	struct soap *soap = soap_new1(SOAP_IO_KEEPALIVE | SOAP_C_UTFSTRING);
	struct sockaddr_in addr;
	socklen_t size = sizeof addr;
	soap->bind_flags = SO_REUSEADDR;
	soap->max_keep_alive = 0;
	SOAP_SOCKET s = soap_bind(soap, "127.0.0.1", 0, 1024);
	if (!soap_valid_socket(s) || getsockname(s, (struct sockaddr *)&addr, &size))
		die("no port");
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	for (;;) {
		pthread_t thread;
		if (!soap_valid_socket(soap_accept(soap)))
			die("no connection");
		pthread_create(&thread, NULL, serve, soap_copy(soap));
		pthread_detach(thread);
	}
}
