package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wire"
)

// describedPeer is a peer that has the own shape of all messages.
type describedPeer struct {
	*peer
	own *transit.Own
}

func (p describedPeer) Own(*program.Program) *transit.Own { return p.own }

// describedShelf is an end that has it, too.
type describedShelf struct {
	*shelf
	own *transit.Own
}

func (s describedShelf) Styled(name transit.OwnName, style string) []byte {
	if name == s.own.Name && style == s.own.Style {
		return s.own.Octets
	}
	return nil
}

func placed(inner string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><q:OrderOfSomeLength ` +
		`xmlns:q="urn:example:a-name-of-some-length">` + inner + `</q:OrderOfSomeLength></s:Body></s:Envelope>`
}

func ownShape(t *testing.T) *transit.Own {
	s := shapeOf(t, placed("<quantityOfItems>1</quantityOfItems><nameOfItem>a</nameOfItem>"))
	return &transit.Own{Name: transit.OwnNameOf(s.Fingerprint()), Style: "s:q", Octets: s.Octets()}
}

// A shape takes little where both ends have the own shape of its description.
func TestShapesStandOnOwnShapes(t *testing.T) {
	own := ownShape(t)
	size := func(cfg wire.EncoderConfig, to wire.DecoderConfig) int {
		p := newPairTo(t, cfg, announcing, to)
		m := placed("<quantityOfItems>7</quantityOfItems>")
		p.send(1, p.learn(m), m)
		all := p.announced()
		require.Len(t, all, 1)
		assert.Empty(t, p.r.lacks)
		return len(all[0].Piece)
	}
	without := size(wire.EncoderConfig{}, wire.DecoderConfig{Shapes: newShelf()})
	with := size(wire.EncoderConfig{Peer: describedPeer{newPeer(), own}},
		wire.DecoderConfig{Shapes: describedShelf{newShelf(), own}, MaxHeld: 1 << 20})
	assert.Less(t, with, without/2)
}

// A peer that has lost the description asks for shapes in full, also for those that stand on others
// that it lacks, and messages wait for them. None is joined by another shape, whatever its number
// stands for meanwhile.
func TestPeersWithoutTheDescriptionAsk(t *testing.T) {
	for name, sync := range map[string]bool{"at once": false, "behind a sync": true} {
		t.Run(name, func(t *testing.T) {
			cfg := wire.EncoderConfig{Peer: describedPeer{newPeer(), ownShape(t)}, Limits: tight(4)}
			p := newPairTo(t, cfg, announcing, wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20, MaxShapes: 4})
			first := placed("<quantityOfItems>7</quantityOfItems>")
			second := placed("<quantityOfItems>7</quantityOfItems><nameOfItem>nail</nameOfItem>")
			p.put(1, p.learn(first), first)
			p.put(2, p.learn(second), second)
			require.NoError(t, p.deliver())
			require.Equal(t, []uint64{1, 2}, p.r.lacks)
			if sync {
				p.enc.Sync(p.now)
				p.put(3, p.learn("<other>1</other>"), "<other>1</other>") // takes a number that the sync ended
				require.NoError(t, p.deliver())
			}
			for _, number := range p.r.lacks {
				transfer := p.enc.Lacks(number)
				for transfer != nil && !p.enc.Piece(transfer, p.now) {
					continue
				}
			}
			require.NoError(t, p.deliver())
			assert.Zero(t, p.r.dec.Open(), "none waits any longer")
			var got []string
			for _, m := range p.r.messages {
				require.NoError(t, m.err)
				assert.True(t, m.whole)
				got = append(got, string(m.body))
			}
			if sync {
				assert.Equal(t, []string{"<other>1</other>"}, got, "the others are dropped")
			} else {
				assert.Equal(t, []string{first, second}, got)
				assert.Nil(t, p.enc.Lacks(1), "it was told in full")
			}
		})
	}
}

// Behind a resync no shape stands on an own shape: who begins there need not have the description.
func TestOwnShapesBehindAResync(t *testing.T) {
	cfg := wire.EncoderConfig{Peer: describedPeer{newPeer(), ownShape(t)}}
	p := newPairTo(t, cfg, announcing, wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1})
	p.enc.Resync(false, p.now)
	body := placed("<quantityOfItems>7</quantityOfItems>")
	p.send(1, p.learn(body), body)
}

// Without anybody to ask, what is missing is named.
func TestOwnShapesThatAreMissing(t *testing.T) {
	own := ownShape(t)
	p := newPairTo(t, wire.EncoderConfig{Peer: describedPeer{newPeer(), own}}, announcing,
		wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1})
	m := placed("<quantityOfItems>7</quantityOfItems>")
	p.put(1, p.learn(m), m)
	require.NoError(t, p.deliver())
	require.Len(t, p.r.messages, 1)
	assert.Contains(t, wire.LackingOwn(p.r.messages[0].err), "urn:hhfr:shape:sha256:")
	assert.Empty(t, wire.LackingShape(p.r.messages[0].err))
}
