package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
)

// stores puts an entry into a store, and gets it.
func stores(ctx context.Context) error {
	store := memory.New(memory.Config{})
	if _, err := store.Put(ctx, "urn:x:entry", []byte("value"), ctxstore.PutOptions{}); err != nil {
		return err
	}
	entry, err := store.Get(ctx, "urn:x:entry")
	fmt.Println("ctxstore:", string(entry.Value))
	return err
}

// schemas makes a message of values that a schema describes.
func schemas(context.Context) error {
	s, err := schema.Parse([]byte(
		`<element name="get"><complexType><element name="key" type="int"/></complexType></element>`))
	if err != nil {
		return err
	}
	message, err := s.Message(map[string]any{"key": 7})
	fmt.Println("schema:", bytes.Contains(message, []byte("<key>7</key>")))
	return err
}

// envelopes reads an envelope and answers with a fault.
func envelopes(context.Context) error {
	text := []byte(fmt.Sprintf(envelope, "one"))
	e, err := soap.Parse(text, soap.Limits{})
	if err != nil {
		return err
	}
	fault, err := soap.BuildFault(e.Version, soap.Fault{Reason: "no"})
	fmt.Println("soap:", soap.Recognize(text).Version == e.Version, soap.IsFault(fault))
	return err
}

// offers writes what a client offers, and reads it as a server does.
func offers(context.Context) error {
	offer := negotiate.Offer{
		Schemes:         []string{negotiate.Scheme},
		Representations: []string{negotiate.RepresentationURI("binary")},
		Transports:      []string{negotiate.TransportURI("tcp")},
	}
	text, err := offer.Message(soap.V11)
	if err != nil {
		return err
	}
	read, version, err := negotiate.ParseOffer(text)
	if err != nil {
		return err
	}
	fmt.Println("negotiate:", version, read.Transports)
	return nil
}
