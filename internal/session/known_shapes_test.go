package session_test

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// knows is a coder whose peer has shapes.
type knows struct {
	streamer.Coder
	shapes []shape.Fingerprint
}

func (k knows) PeerHas(int) []shape.Fingerprint { return k.shapes }

func fingerprints(from, to int) (fps []shape.Fingerprint) {
	for i := from; i < to; i++ {
		fps = append(fps, sha256.Sum256(binary.BigEndian.AppendUint32(nil, uint32(i))))
	}
	return fps
}

// A context remembers the most recent shapes of its peer, also when it is full.
func TestFullContextsGoOnLearning(t *testing.T) {
	store, now := memory.New(memory.Config{}), time.Now()
	facts := negotiate.Facts{
		Session:        negotiate.SessionID{1},
		Scheme:         "urn:hhfr:scheme:hhfr:1",
		Representation: "urn:hhfr:representation:shapes:1",
		Transport:      "urn:hhfr:transport:tcp",
		Path:           "/echo",
		Address:        "127.0.0.1:1",
		Expires:        now.Add(time.Hour),
	}
	document, err := session.ContextDocument(facts, [16]byte{2})
	require.NoError(t, err)
	_, err = store.Put(t.Context(), facts.Session.URI(), document, ctxstore.PutOptions{})
	require.NoError(t, err)
	for _, end := range []int{10, negotiate.MaxShapes, negotiate.MaxShapes + 7} {
		fps := fingerprints(max(0, end-negotiate.MaxShapes), end)
		session.KeepKnown(t.Context(), store, facts.Session.URI(), facts.Session, now, knows{shapes: fps},
			func(err error) { assert.NoError(t, err) })
		entry, err := store.Get(t.Context(), facts.Session.URI())
		require.NoError(t, err)
		got, err := negotiate.ParseFacts(entry.Value)
		require.NoError(t, err)
		require.Len(t, got.PeerShapes, len(fps))
		for i, fp := range fps {
			assert.Equal(t, [32]byte(fp), got.PeerShapes[i])
		}
	}
}
