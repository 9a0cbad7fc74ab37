package nats

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Form is how a bucket is named.
const Form = "nats[+tls]://HOST,…/BUCKET[?replicas=N]"

// name is a bucket's name, taken apart.
type name struct {
	servers     []string
	bucket      string
	replicas    int // 0: not said
	storage     jetstream.StorageType
	credentials string
}

var bucketName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// parse takes a name apart: see [Form].
func parse(text string) (n name, err error) {
	bad := func(format string, args ...any) (name, error) {
		return name{}, &ctxstore.Error{Code: ctxstore.Invalid, Err: fmt.Errorf(format, args...), Hint: "write " + Form}
	}
	scheme, rest, _ := strings.Cut(text, "://")
	hosts, tail, _ := strings.Cut(rest, "/")
	server := map[string]string{"nats": "nats://", "nats+tls": "tls://"}[scheme]
	if server == "" {
		return bad("%q is no name of a NATS bucket", text)
	}
	if strings.Contains(hosts, "@") {
		return name{}, &ctxstore.Error{
			Code: ctxstore.Invalid, Err: errors.New("the name of a NATS bucket takes no user and password"),
			Hint: "use --store-token FILE, a certificate, or ?credentials=FILE",
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if u, err := url.Parse(server + host); err != nil || u.Hostname() == "" {
			return bad("%q is no host", host)
		}
		n.servers = append(n.servers, server+host)
	}
	bucket, query, _ := strings.Cut(tail, "?")
	if n.bucket = bucket; !bucketName.MatchString(bucket) {
		return bad("the bucket %q is not made of letters, digits, - and _", bucket)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return bad("%v", err)
	}
	for key := range values {
		value := values.Get(key)
		switch key {
		case "replicas":
			if n.replicas, err = strconv.Atoi(value); err != nil || n.replicas < 1 || n.replicas > 5 {
				return bad("replicas are from 1 to 5, not %q", value)
			}
		case "storage":
			if n.storage = jetstream.FileStorage; value == "memory" {
				n.storage = jetstream.MemoryStorage
			} else if value != "file" {
				return bad("storage is file or memory, not %q", value)
			}
		case "credentials":
			n.credentials = value
		default:
			return bad("there is no option %q", key)
		}
	}
	return n, nil
}
