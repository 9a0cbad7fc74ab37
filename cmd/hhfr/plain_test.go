package main

import (
	"io"
	"net"
	"net/http"
	"strings"
)

// servePlain is the server of plainServer.
func servePlain(l net.Listener) {
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		if strings.Contains(string(body), "urn:hhfr:negotiation:1") || strings.Contains(string(body), "<bad/>") {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
				`<s:Fault><faultcode>s:Client</faultcode><faultstring>no such operation</faultstring></s:Fault>`+
				`</s:Body></s:Envelope>`)
			return
		}
		_, _ = w.Write(body)
	}))
}
