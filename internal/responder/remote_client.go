package responder

import (
	"crypto/tls"
	"net/http"
)

// remoteClient is the peer of a stream's connection, as net/http describes it for a request.
type remoteClient struct {
	remote string
	local  any
	tls    *tls.ConnectionState
}

func clientOf(req *http.Request) remoteClient {
	return remoteClient{req.RemoteAddr, req.Context().Value(http.LocalAddrContextKey), req.TLS}
}
