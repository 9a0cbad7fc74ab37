package flow_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// keyLine is a line of a key log.
func keyLine(digit string) string {
	return "CLIENT_RANDOM " + strings.Repeat(digit, 64) + " " + strings.Repeat("ab", 48) + "\n"
}

// blockOf is a block of a pcapng file.
func blockOf(order binary.AppendByteOrder, kind uint32, body []byte) []byte {
	body = append(bytes.Clone(body), make([]byte, -len(body)&3)...)
	b := order.AppendUint32(order.AppendUint32(nil, kind), uint32(12+len(body)))
	return order.AppendUint32(append(b, body...), uint32(12+len(body)))
}

// secretsOf is a block of secrets.
func secretsOf(order binary.AppendByteOrder, kind uint32, text string) []byte {
	body := order.AppendUint32(order.AppendUint32(nil, kind), uint32(len(text)))
	return blockOf(order, 10, append(body, text...))
}

// TestSecrets: the secrets in pcapng files of either byte order are found, wherever they are, and
// however the file is read.
func TestSecrets(t *testing.T) {
	const tls, wireguard = 0x544C534B, 0x57474B4C
	for name, order := range map[string]binary.AppendByteOrder{
		"little": binary.LittleEndian, "big": binary.BigEndian,
	} {
		section := blockOf(order, 0x0A0D0D0A, append(order.AppendUint32(nil, 0x1A2B3C4D), 0, 0, 0, 0,
			255, 255, 255, 255, 255, 255, 255, 255))
		order.(binary.ByteOrder).PutUint16(section[12:], 1)
		file := bytes.Join([][]byte{
			section, secretsOf(order, tls, keyLine("1")), secretsOf(order, wireguard, keyLine("2")),
			blockOf(order, 0xBAD, nil), secretsOf(order, tls, keyLine("3")+keyLine("4")[:100]), blockOf(order, 10, nil),
			blockOf(order, 10, order.AppendUint32(order.AppendUint32(nil, tls), 1<<30)), section,
			secretsOf(order, tls, strings.TrimSpace(keyLine("5"))),
		}, nil)
		for _, whole := range []bool{false, true} {
			keys := new(tlsrecord.KeyLog)
			if whole {
				require.NoError(t, flow.AddSecrets(keys, iotest.OneByteReader(bytes.NewReader(file))))
			} else {
				f, err := flow.Open(bytes.NewReader(file))
				require.NoError(t, err)
				_, err = flow.Read(flow.Config{Keys: keys}, f)
				require.NoError(t, err)
			}
			assert.Equal(t, 3, keys.Len(), "%s %v", name, whole)
		}
		for cut := range file {
			_ = flow.AddSecrets(new(tlsrecord.KeyLog), bytes.NewReader(file[:cut]))
		}
	}
}

// TestRecordedSecrets: a recording has the keys that are written into it.
func TestRecordedSecrets(t *testing.T) {
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, nil)
	for _, digit := range []string{"1", "2"} {
		_, err := rec.Secrets().Write([]byte(keyLine(digit)))
		require.NoError(t, err)
	}
	require.NoError(t, rec.Close())
	_, err := rec.Secrets().Write([]byte(keyLine("3")))
	require.NoError(t, err)
	keys := new(tlsrecord.KeyLog)
	require.NoError(t, flow.AddSecrets(keys, &file))
	assert.Equal(t, 2, keys.Len())
}
