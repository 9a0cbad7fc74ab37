package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shared"
)

// A capture of an upgraded connection that ends at any byte, or lacks any packet, or two. Nothing
// is verified that was not sent, and nothing has another number unless exchanges before it are
// missing.
func TestUpgradesCutAnywhere(t *testing.T) {
	head, request, _ := strings.Cut(posted("Expect: 100-continue\r\n"+asksUpgrade, messageOf(2, false)), "\r\n\r\n")
	u := upgrade(t, 1, 2, out(head+"\r\n\r\n"),
		back(goOn), out(request))
	file := u.file(t, 150)
	for cut := range file {
		for _, in := range []io.Reader{bytes.NewReader(file[:cut]), once{bytes.NewReader(file[:cut])}} {
			r, err := capture.Decode(t.Context(), in, capture.DecodeConfig{})
			if err != nil {
				require.Less(t, cut, 200)
				continue
			}
			requireRight(t, r.Messages, true, fmt.Sprintf("cut at %d", cut))
		}
	}
	whole := u.x.said
	for dir := range whole { // the stream ends at any byte
		for cut := range whole[dir] {
			turns := slices.Clone(u.turns)
			left := cut
			for i := range turns {
				if s := &turns[i]; s.dir == dir && i > u.first+2 {
					head := len(s.octets) - len(strings.TrimPrefix(s.octets, agreesUpgrade))
					keep := min(len(s.octets)-head, left)
					left -= keep
					s.octets = s.octets[:head+keep]
				}
			}
			r := decode(t, fileOf(t, turns, 1400), nil)
			requireRight(t, r.Messages, true, fmt.Sprintf("direction %d cut at %d", dir, cut))
		}
	}
	packets := segmentsOf(t, file)
	for a := range packets {
		for b := a; b < min(a+12, len(packets)); b++ {
			var some bytes.Buffer
			writeEvery(t, &some, packets, func(n int) bool { return n != a && n != b })
			requireRight(t, decode(t, some.Bytes(), nil).Messages, false,
				fmt.Sprintf("without packets %d and %d", a, b))
		}
	}
}

// segmentsOf returns the packets of a capture.
func segmentsOf(t testing.TB, file []byte) (all []packetEnd) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, packetEnd{raw: bytes.Clone(data), ci: ci})
	}
}

// Damaged messages of an upgraded connection are not verified.
func TestNothingDamagedInAnUpgradeIsVerified(t *testing.T) {
	d := damagedIn(t, upgrade(t, 1, 3).file(t, 1400))
	d.flips(t, 8*len(d.input)/400)
	d.random(t, 100)
}

// TestIndependentDecoderOfUpgrades: it finds the same streams after HTTP, and the request that was
// upgraded.
func TestIndependentDecoderOfUpgrades(t *testing.T) {
	python, script := shared.Program(t, "python3"), shared.Testdata(t, "..", "scripts", "decode.py")
	options := out("OPTIONS /service HTTP/1.1\r\n" + asksUpgrade + "\r\n")
	after := upgrade(t, 1, 2)
	for name, turns := range map[string][]turn{
		"at once":          upgrade(t, 0, 2).turns,
		"chunked":          upgrade(t, 0, 2, chunked(messageOf(1, false))).turns,
		"OPTIONS":          upgrade(t, 0, 2, options).turns,
		"after plain SOAP": after.turns, "refused": after.turns[:after.first],
	} {
		t.Run(name, func(t *testing.T) {
			file, dir := filepath.Join(t.TempDir(), "c.pcapng"), t.TempDir()
			require.NoError(t, os.WriteFile(file, fileOf(t, turns, 100), 0o600))
			out, err := exec.CommandContext(t.Context(), python, script, "capture", file, "--save-dir",
				dir).CombinedOutput()
			if name == "refused" {
				require.Error(t, err)
				require.Contains(t, string(out), "nothing found")
				return
			}
			require.NoError(t, err, "%s", out)
			want := map[string][]byte{}
			first := 0 // it numbers only what belongs to streams
			for _, m := range decode(t, fileOf(t, turns, 100), nil).Messages {
				if m.HHFR || m.Number > 1 || name != "after plain SOAP" {
					m.Number -= first
					want[m.FileName()] = m.Body
				} else {
					first = 1
				}
			}
			assert.Equal(t, want, readDir(t, dir), "%s", out)
			assert.Equal(t, 4+b2i(name != "OPTIONS"), strings.Count(string(out), " verified"), "%s", out)
		})
	}
}

// tapeOfTurns and turnsOf write turns as bytes, and read them again: a direction, and whether it
// is lost, a length, and so many bytes each.
func tapeOfTurns(turns []turn) (tape []byte) {
	for _, s := range turns {
		tape = append(tape, byte(s.dir|2*b2i(s.lost)), byte(len(s.octets)>>8), byte(len(s.octets)))
		tape = append(tape, s.octets...)
	}
	return tape
}

func turnsOf(tape []byte) (turns []turn) {
	for len(tape) >= 3 {
		n := min(int(tape[1])<<8|int(tape[2]), len(tape)-3)
		turns = append(turns, turn{dir: int(tape[0] & 1), lost: tape[0]&2 != 0, octets: string(tape[3 : 3+n])})
		tape = tape[3+n:]
	}
	return turns
}

// FuzzUpgrades: whatever is before, in and after an upgrade, the runs of streams are in order and
// no longer than what came, and what is verified was sent.
func FuzzUpgrades(f *testing.F) {
	u := upgrade(f, 1, 2)
	options := upgrade(f, 0, 1, out("OPTIONS * HTTP/1.1\r\n"+asksUpgrade+"\r\n"))
	head, rest, _ := strings.Cut(posted("Expect: 100-continue\r\n"+asksUpgrade, messageOf(1, false)), "\r\n\r\n")
	expects := upgrade(f, 0, 1, out(head+"\r\n\r\n"), back(goOn), out(rest))
	request := u.turns[u.first].cut(150)
	early := slices.Concat(request[:1], u.turns[u.first+1].cut(len(agreesUpgrade), len(agreesUpgrade)+40), request[1:],
		u.turns[u.first+2:])
	lossy := slices.Clone(u.turns)
	lossy[u.first+1].lost = true
	for _, turns := range [][]turn{u.turns, options.turns, expects.turns, early, lossy,
		only(u.turns, 0), only(u.turns, 1), u.turns[u.first+1:]} {
		f.Add(tapeOfTurns(turns))
	}
	sent := map[string]bool{}
	for n := range 5 {
		for _, reply := range []bool{false, true} {
			sent[messageOf(n, reply)] = true
		}
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		file := fileOf(t, turnsOf(tape), 1400)
		end, octets := map[[2]int]int64{}, 0
		for _, in := range []io.Reader{bytes.NewReader(file), once{bytes.NewReader(file)}} {
			clear(end)
			octets = 0
			r, err := capture.Decode(t.Context(), in, capture.DecodeConfig{
				Octets: func(n, direction int, offset int64, b []byte) error {
					at := [2]int{n, direction}
					if offset < end[at] || len(b) == 0 {
						return fmt.Errorf("%d bytes at %d after %d", len(b), offset, end[at])
					}
					end[at] = offset + int64(len(b))
					octets += len(b)
					return nil
				}})
			require.NoError(t, err)
			assert.LessOrEqual(t, octets, len(tape))
			for _, m := range r.Messages {
				require.True(t, m.State != capture.Verified || sent[string(m.Body)], "%s", m.Body)
			}
		}
	})
}
