/* A server of stacks.wsdl and a client of such servers, of what soapcpp2 makes of that:
 *   gsoap server|signed KEY.pem CERT.pem                prints its port; ends with the process that started it; signed: takes signed
 *                                                       records only
 *   gsoap client KEY.pem CERT.pem PAYLOAD CALL=URL...   prints a line for each call
 *   gsoap kept|closed VALUES URL                        makes the calls of a file, as real/values.py describes it, and prints the
 *                                                       microseconds of each */
#include <openssl/sha.h>
#include <pthread.h>
#include <time.h>
#include "soapH.h"
#include "stacks.nsmap"
#include "plugin/wsaapi.h"
#include "plugin/wsseapi.h"

#define ROWS 200

static EVP_PKEY *key;
static X509 *cert;
static const char *trusted;
static int verifies;

static void die(const char *what) {
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static struct soap *make(soap_mode mode) {
	struct soap *soap = soap_new1(mode | SOAP_C_UTFSTRING);
	soap->cafile = trusted;
	soap_register_plugin(soap, soap_wsa);
	soap_register_plugin(soap, soap_wsse);
	return soap;
}

static int sign(struct soap *soap) {
	return soap_wsse_add_BinarySecurityTokenX509(soap, "X509Token", cert) ||
	       soap_wsse_add_KeyInfo_SecurityTokenReferenceX509(soap, "#X509Token") ||
	       soap_wsse_sign_body(soap, SOAP_SMD_SIGN_RSA_SHA256, key, 0);
}

/* The server. */

int __ns1__records(struct soap *soap, struct _ns1__records *in, struct _ns1__recordsResponse *out) {
	if (strstr(soap->path, "/addressed") && (soap_wsa_check(soap) || soap_wsa_reply(soap, NULL, "urn:hhfr:peer:1/records/reply")))
		return soap->error;
	if (verifies) {
		if (soap_wsse_verify_body(soap))
			return soap->error;
		soap_wsse_delete_Security(soap);
		if (sign(soap))
			return soap->error;
	}
	for (int i = 0; i < in->__sizerecord; i++)
		if (!strcmp(in->record[i].text, "refuse"))
			return soap_sender_fault(soap, "no such record", NULL);
	out->__sizerecord = in->__sizerecord;
	out->record = in->record;
	return SOAP_OK;
}

int __ns1__note(struct soap *soap, struct _ns1__note *in) {
	return soap_send_empty_response(soap, SOAP_OK);
}

int __ns1__upload(struct soap *soap, struct _ns1__upload *in, struct _ns1__uploadResponse *out) {
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256(in->data.__ptr, in->data.__size, digest);
	out->size = in->data.__size;
	out->sha256 = (char *)soap_malloc(soap, 2 * sizeof digest + 1);
	for (size_t i = 0; i < sizeof digest; i++)
		sprintf(out->sha256 + 2 * i, "%02x", digest[i]);
	return SOAP_OK;
}

/* wsa5.h has faults that are relayed to a server. */
int SOAP_ENV__Fault(struct soap *soap, char *faultcode, char *faultstring, char *faultactor, struct SOAP_ENV__Detail *detail,
                    struct SOAP_ENV__Code *code, struct SOAP_ENV__Reason *reason, char *node, char *role, struct SOAP_ENV__Detail *detail12) {
	return SOAP_NO_METHOD;
}

static void *serve(void *arg) {
	struct soap *soap = (struct soap *)arg;
	soap_serve(soap); /* what it says about a request goes to the client, as a fault */
	soap_destroy(soap);
	soap_end(soap);
	soap_free(soap);
	return NULL;
}

static int server(void) {
	struct soap *soap = make(SOAP_IO_KEEPALIVE);
	struct sockaddr_in addr;
	socklen_t size = sizeof addr;
	soap->bind_flags = SO_REUSEADDR;
	soap->max_keep_alive = 0;
	SOAP_SOCKET s = soap_bind(soap, "127.0.0.1", 0, 100);
	if (!soap_valid_socket(s) || getsockname(s, (struct sockaddr *)&addr, &size))
		die("no port");
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	for (;;) {
		pthread_t thread;
		if (!soap_valid_socket(soap_accept(soap)))
			die("no connection");
		struct soap *own = soap_copy(soap);
		if (verifies)
			soap_wsse_verify_auto(own, SOAP_SMD_NONE, NULL, 0);
		pthread_create(&thread, NULL, serve, own);
		pthread_detach(thread);
	}
}

/* The client. */

static const char *failed(struct soap *soap) {
	if (soap->error == SOAP_OK)
		return "no fault";
	soap_print_fault(soap, stderr);
	const char **text = soap_faultstring(soap);
	return text && *text ? *text : "failed";
}

static const char *records(struct soap *soap, const char *call, const char *url) {
	static char said[64];
	char text[ROWS][64];
	struct ns1__Record rows[ROWS];
	struct _ns1__records in = {ROWS, rows};
	for (int i = 0; i < ROWS; i++) {
		snprintf(text[i], sizeof text[i], "row %d: <&> \xc3\xa9", i);
		rows[i].text = text[i];
		rows[i].number = i * 3 - 100;
		rows[i].flag = i % 3 == 0;
	}
	for (int n = 0; n < 3; n++) {
		struct _ns1__recordsResponse out = {0};
		if (!strcmp(call, "addressed") && soap_wsa_request(soap, soap_wsa_rand_uuid(soap), url, "urn:hhfr:peer:1/records"))
			return failed(soap);
		if (!strcmp(call, "signed")) {
			soap_wsse_verify_auto(soap, SOAP_SMD_NONE, NULL, 0);
			if (sign(soap))
				return failed(soap);
		}
		if (soap_call___ns1__records(soap, url, NULL, &in, &out))
			return failed(soap);
		if (!strcmp(call, "signed") && soap_wsse_verify_body(soap))
			return failed(soap);
		if (!strcmp(call, "addressed") && soap_wsa_check(soap))
			return failed(soap);
		if (out.__sizerecord != ROWS)
			return "another number of rows";
		for (int i = 0; i < ROWS; i++)
			if (strcmp(out.record[i].text, text[i]) || out.record[i].number != rows[i].number || out.record[i].flag != rows[i].flag)
				return "another row";
		soap_wsse_delete_Security(soap);
		soap_destroy(soap);
		soap_end(soap);
	}
	snprintf(said, sizeof said, "%d rows", ROWS);
	return said;
}

static const char *fault(struct soap *soap, const char *url) {
	struct ns1__Record row = {"refuse", 0, 0};
	struct _ns1__records in = {1, &row};
	struct _ns1__recordsResponse out = {0};
	soap_call___ns1__records(soap, url, NULL, &in, &out);
	return failed(soap);
}

static const char *note(struct soap *soap, const char *url) {
	struct _ns1__note in = {"remember <this>"};
	if (soap_send___ns1__note(soap, url, NULL, &in) || soap_recv_empty_response(soap))
		return failed(soap);
	return "sent";
}

static const char *upload(struct soap *soap, const char *url, const char *path) {
	static char said[128];
	struct _ns1__upload in = {{0}};
	struct _ns1__uploadResponse out = {0};
	FILE *f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END))
		die("no payload");
	in.data.__size = (int)ftell(f);
	rewind(f);
	in.data.__ptr = (unsigned char *)soap_malloc(soap, in.data.__size);
	if (fread(in.data.__ptr, 1, in.data.__size, f) != (size_t)in.data.__size)
		die("payload");
	fclose(f);
	in.data.id = "payload";
	in.data.type = "application/octet-stream";
	soap_set_omode(soap, SOAP_ENC_MTOM);
	if (soap_call___ns1__upload(soap, url, NULL, &in, &out))
		return failed(soap);
	snprintf(said, sizeof said, "%d %s", out.size, out.sha256);
	return said;
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* one makes a call with the rows, and prints how long it took. */
static void one(struct soap *soap, const char *url, struct ns1__Record *rows, int n) {
	struct _ns1__records in = {n, rows};
	struct _ns1__recordsResponse out = {0};
	double began = now();
	if (soap_call___ns1__records(soap, url, NULL, &in, &out))
		die(failed(soap));
	printf("%.0f\n", now() - began);
	if (out.__sizerecord != n)
		die("another number of rows");
	for (int i = 0; i < n; i++)
		if (strcmp(out.record[i].text, rows[i].text) || out.record[i].number != rows[i].number || out.record[i].flag != rows[i].flag)
			die("another row");
	soap_destroy(soap);
	soap_end(soap);
}

static int values(int kept, const char *path, const char *url) {
	static char lines[ROWS][4096];
	struct ns1__Record rows[ROWS];
	struct soap *soap = soap_new1(SOAP_C_UTFSTRING | (kept ? SOAP_IO_KEEPALIVE : 0));
	FILE *f = fopen(path, "r");
	int n = 0;
	if (!f)
		die("no values");
	while (n < ROWS && fgets(lines[n], sizeof lines[n], f)) {
		if (*lines[n] == '\n') {
			one(soap, url, rows, n);
			n = 0;
			continue;
		}
		rows[n].text = strtok(lines[n], "\t");
		rows[n].number = atoi(strtok(NULL, "\t"));
		rows[n].flag = *strtok(NULL, "\t") == 't';
		n++;
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "kept") || !strcmp(argv[1], "closed"))
		return values(!strcmp(argv[1], "kept"), argv[2], argv[3]);
	FILE *f = fopen(argv[2], "r");
	key = f ? PEM_read_PrivateKey(f, NULL, NULL, NULL) : NULL;
	f = fopen(argv[3], "r");
	cert = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
	trusted = argv[3];
	if (!key || !cert)
		die("key or certificate");
	verifies = !strcmp(argv[1], "signed");
	if (verifies || !strcmp(argv[1], "server"))
		return server();
	for (int i = 5; i < argc; i++) {
		struct soap *soap = make(SOAP_IO_KEEPALIVE);
		char *call = argv[i], *url = strchr(call, '=');
		const char *said;
		*url++ = 0;
		soap->send_timeout = soap->recv_timeout = 120;
		if (!strcmp(call, "fault"))
			said = fault(soap, url);
		else if (!strcmp(call, "note"))
			said = note(soap, url);
		else if (!strcmp(call, "upload"))
			said = upload(soap, url, argv[4]);
		else
			said = records(soap, call, url);
		printf("%s: %s\n", call, said);
		soap_destroy(soap);
		soap_end(soap);
		soap_free(soap);
	}
	return 0;
}
