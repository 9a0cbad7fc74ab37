package soaprm_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// seeds are real messages of both versions.
func seeds(f *testing.F) {
	dir := shared.Dir(f, "specs", "vectors", "wsrm")
	for _, path := range shared.Files(f, dir, func(p string) bool { return filepath.Ext(p) == ".xml" }) {
		f.Add(shared.Read(f, path))
	}
}

// FuzzEndpoint: whatever comes, the answer is an envelope, nothing or an error of HTTP, the service
// gets what was in no sequence, and no message of a sequence more than once.
func FuzzEndpoint(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		e := newEnds(t, 1, 0)
		e.cfg.Patience = time.Nanosecond
		e.restart()
		k := &talk{ends: e, pairing: pairing{soaprm.V11, addressing.V200508, soap.V12}}
		k.create()
		message = bytes.ReplaceAll(message, []byte("urn:uuid:11111111-1111-4111-8111-111111111111"), []byte(k.id))
		calls := 0
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, where, bytes.NewReader(message))
			r.Header.Set("Content-Type", "text/xml")
			w := httptest.NewRecorder()
			e.link.handler.ServeHTTP(w, r)
			if parsed, err := soap.Parse(message, soap.Limits{}); err == nil && w.Body.Len() > 0 {
				b := header.Parse(parsed)
				answer, err := soap.Parse(w.Body.Bytes(), soap.Limits{MaxBytes: 1 << 20})
				if b != nil && b.Number > 0 && w.Code < http.StatusServiceUnavailable {
					require.NoError(t, err, "%s", w.Body)
					assert.NotNil(t, answer)
					assert.LessOrEqual(t, len(e.calls), 1)
				}
			}
			calls++
		}
		assert.LessOrEqual(t, len(e.calls), calls)
	})
}

// FuzzAnswer: whatever a service answers, a source neither fails nor believes that something
// arrived which it did not send.
func FuzzAnswer(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, answer []byte) {
		e := newEnds(t, 1, 0)
		s := e.source(soaprm.V11, "", soap.V12)
		id := s.Status().Identifier
		answer = bytes.ReplaceAll(answer, []byte("urn:uuid:11111111-1111-4111-8111-111111111111"), []byte(id))
		e.link.mu.Lock()
		e.link.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
		e.link.mu.Unlock()
		_, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 0), Action: "urn:add",
			OneWay: true})
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		assert.LessOrEqual(t, s.Status().Done, uint64(1))
		require.NoError(t, s.Close())
	})
}

// FuzzDuration: what is read is not negative, and what is written is read as the same.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"PT10M", "PT0S", "P1Y2M3DT4H5M6.7S", "PT1.5S", "P", "PT", "-PT1S", "P999999999Y",
		"PT1.100000001S"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := soaprm.ParseDuration(s)
		if !ok {
			return
		}
		assert.GreaterOrEqual(t, d, time.Duration(0))
		again, ok := soaprm.ParseDuration(soaprm.FormatDuration(d))
		if d < 24*365*time.Hour { // a float has no nanoseconds beyond
			assert.True(t, ok)
			assert.InDelta(t, float64(d), float64(again), float64(time.Microsecond))
		}
	})
}

// FuzzChain: a chain never lets in what it would have to understand, and takes out only what it
// does.
func FuzzChain(f *testing.F) {
	seeds(f)
	chain := headers.Chain{addressing.HeaderHandler{}}
	f.Fuzz(func(t *testing.T, message []byte) {
		_, in, err := chain.In(t.Context(), message)
		if err != nil {
			return
		}
		a, err := soap.Split(in.Message, soap.Limits{})
		require.NoError(t, err)
		for i := range a.Header {
			b := &a.Header[i]
			assert.False(t, b.MustUnderstand && b.ForReceiver(a.Version), "%v", b.Name)
		}
	})
}
