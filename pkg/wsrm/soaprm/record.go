package soaprm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

const (
	// servedPrefix begins the URIs of the records of an [SequenceDestination], sourcePrefix those
	// of a [SequenceSource].
	servedPrefix = "urn:hhfr:wsrm:served:"
	sourcePrefix = "urn:hhfr:wsrm:source:"
)

// pairRecord is what is stored of a pair of sequences besides the state of its engine. It changes
// when the pair is created, closed and terminated, never by a message.
type pairRecord struct {
	// Form is the version of this form, 1.
	Form int `json:"form"`
	// Version and Addressing are those of the sequence; SOAP is that of its messages.
	Version    Protocol     `json:"version"`
	Addressing string       `json:"addressing"`
	SOAP       soap.Version `json:"soap"`
	// URL is that of the service, at a source.
	URL string `json:"url,omitempty"`
	// Identifier is that of the sequence of requests, Offered that of replies; empty: there is
	// none.
	Identifier string `json:"identifier"`
	Offered    string `json:"offered,omitempty"`
	// AcksTo is where replies, at a source, and acknowledgements go; empty: on the connections of
	// requests. Decoupled, at a destination: something goes to another address than that.
	AcksTo    string `json:"acksTo,omitempty"`
	Decoupled bool   `json:"decoupled,omitempty"`
	// State is where the state of the engine lies.
	State string `json:"state"`
	// CreatedBy is the MessageID of the CreateSequence, and Peer who sent it, at a destination; see
	// [accept.Peer].
	CreatedBy string `json:"createdBy,omitempty"`
	Peer      string `json:"peer,omitempty"`
	// Expires is when the sequence ends; zero: never.
	Expires time.Time `json:"expires,omitzero"`
	// Last is the number of the last message; 0: not known yet.
	Last       uint64 `json:"last,omitempty"`
	Closed     bool   `json:"closed,omitempty"`
	Terminated bool   `json:"terminated,omitempty"`
}

const (
	recordForm = 1
	// tombstone is how long an ended sequence is remembered, so that what comes late is told from
	// what never was.
	tombstone = time.Hour
)

func (r *pairRecord) put(ctx context.Context, store ctxstore.Store, uri string, life time.Duration) error {
	octets, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = store.Put(ctx, uri, octets, ctxstore.PutOptions{TTL: life})
	return unstored(err)
}

func readRecord(value []byte) (*pairRecord, error) {
	r := &pairRecord{}
	if err := json.Unmarshal(value, r); err != nil {
		return nil, &Error{Code: Unstored, Err: fmt.Errorf("a record of a sequence: %w", err)}
	}
	if r.Form != recordForm || r.Identifier == "" || r.State == "" {
		return nil, &Error{Code: Unstored, Err: errors.New("a record of a sequence of another form")}
	}
	return r, nil
}

func unstored(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: Unstored, Err: err}
}

// stateOf is where the state of the sequence with an identifier of ours lies: among the sequences
// of the store, under a name that none of a stream has.
func stateOf(id string) string {
	return ctxstore.SequencePrefix + "rm:" + strings.ReplaceAll(strings.TrimPrefix(id, "urn:uuid:"), "-", "")
}

// states is the store of the states of engines. What has an effect stays for good; else a state
// goes when nothing has changed it for life.
type states struct {
	store ctxstore.Store
	life  time.Duration
}

// Commit implements [wsrm.Store].
func (s states) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	o := ctxstore.PutOptions{IfRevision: &expect, TTL: s.life}
	if effect, err := wsrm.EffectOf(value); err != nil || len(effect) > 0 {
		o.TTL = 0
	}
	return s.store.Put(ctx, uri, value, o)
}

// engine goes on with a state, or begins one.
func (s states) engine(ctx context.Context, cfg wsrm.Config, uri string) (*wsrm.Engine, error) {
	entry, err := s.store.Get(ctx, uri)
	var e *wsrm.Engine
	switch {
	case errors.Is(err, ctxstore.NotFound):
		e, err = wsrm.New(cfg, s, uri)
	case err == nil:
		e, err = wsrm.Restore(cfg, s, uri, entry.Value, entry.Revision)
	}
	return e, unstored(err)
}

const (
	// windowOf is how many messages of a direction may be sent and not done, and hold how many
	// bytes they may have together.
	windowOf = 1024
	hold     = 8 << 20
	// MaxMessage is the longest message under a guarantee, in bytes, with some space for the header
	// blocks that are added. One of more than maxShort lies beside the state, in pieces.
	MaxMessage = headers.MaxMessage - 64<<10
	maxShort   = hold / 2
)

func engineConfig(ordered bool) wsrm.Config {
	return wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: ordered, Window: windowOf, Hold: hold}
}
