package main

import (
	"crypto/tls"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/resolve"
)

// proxyTLS are the flags of TLS with the upstream and with clients.
type proxyTLS struct {
	clientTLS
	listenCert, listenKey string
}

func (o *proxyTLS) flags(f *pflag.FlagSet) {
	o.clientTLS.flags(f, "upstream")
	f.StringVar(&o.listenCert, "listen-cert", "", "PEM file with the certificate to show to clients: --listen takes https")
	f.StringVar(&o.listenKey, "listen-key", "", "PEM file with the key of --listen-cert")
}

// open reads the files; upstream is to be closed. listen is nil if clients speak HTTP without TLS.
func (o *proxyTLS) open(system resolve.System) (upstream *secured, listen *tls.Config, err error) {
	own, err := keyPair("--listen-cert", o.listenCert, "--listen-key", o.listenKey)
	if err != nil {
		return nil, nil, err
	}
	if upstream, err = o.clientTLS.open(system); err != nil || own == nil {
		return upstream, nil, err
	}
	listen = &tls.Config{Certificates: own, NextProtos: []string{"http/1.1"}}
	upstream.log(listen)
	return upstream, listen, nil
}
