package session_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/stretchr/testify/require"
)

func exampleShapes() [][32]byte {
	var counting, ones [32]byte
	for i := range counting {
		counting[i], ones[i] = byte(i), 0xFF
	}
	return [][32]byte{counting, ones}
}

func exampleOffer() *negotiate.Offer {
	return &negotiate.Offer{
		Schemes:         []string{negotiate.Scheme},
		Representations: []string{negotiate.RepresentationURI("binary"), negotiate.RepresentationURI("xml")},
		Transports:      []string{negotiate.TransportURI("tcp")},
		Lifetime:        time.Hour,
		RequestHead:     negotiate.DefaultRequestFields,
		ReplyHead:       negotiate.DefaultReplyFields,
		Shapes:          exampleShapes(),
	}
}

func exampleAnswer(t testing.TB) *negotiate.Answer {
	id, err := negotiate.ParseSessionID("urn:uuid:6f1c3c62-9d0f-4c5e-8a55-0f2d6f0e7b41")
	require.NoError(t, err)
	a := &negotiate.Answer{
		Scheme:         negotiate.Scheme,
		Representation: negotiate.RepresentationURI("binary"),
		Transport:      negotiate.TransportURI("tcp"),
		Address:        ":9090",
		Session:        id,
		Lifetime:       time.Hour,
		RequestHead:    negotiate.DefaultRequestFields,
		ReplyHead:      negotiate.DefaultReplyFields,
		Shapes:         exampleShapes()[:1],
	}
	token, err := hex.DecodeString("00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	copy(a.Token[:], token)
	return a
}

func offerMessage(t testing.TB, v soap.Version) []byte {
	data, err := exampleOffer().Message(v)
	require.NoError(t, err)
	return data
}

func answerMessage(t testing.TB, v soap.Version) []byte {
	data, err := exampleAnswer(t).Message(v)
	require.NoError(t, err)
	return data
}
