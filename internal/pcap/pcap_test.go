package pcap_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/pcap"
	"github.com/hhfr/hhfr/internal/shared"
)

// packetsOf reads a capture to its end; err is nil there.
func packetsOf(r io.Reader) (all []pcap.PacketRecord, logs [][]byte, err error) {
	reader, err := pcap.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, nil, err
	}
	for {
		p, err := reader.Next()
		logs = append(logs, reader.Secrets()...)
		if err != nil {
			return all, logs, ended(err)
		}
		all = append(all, p)
	}
}

// another reads a capture with gopacket; err is nil at its end.
func another(file []byte) (all []pcap.PacketRecord, err error) {
	in := bytes.NewReader(file)
	if !bytes.HasPrefix(file, []byte("\x0A\x0D\x0D\x0A")) {
		r, err := pcapgo.NewReader(in)
		if err != nil {
			return nil, err
		}
		for {
			data, info, err := r.ReadPacketData()
			if err != nil {
				return all, ended(err)
			}
			all = append(all, pcap.PacketRecord{Time: info.Timestamp, Link: int(r.LinkType()), Length: info.Length,
				Data: data})
		}
	}
	r, err := pcapgo.NewNgReader(in, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
	if err != nil {
		return nil, err
	}
	for {
		data, info, options, err := r.ReadPacketDataWithOptions()
		if err != nil {
			return all, ended(err)
		}
		all = append(all, pcap.PacketRecord{Time: info.Timestamp, Link: int(info.AncillaryData[0].(layers.LinkType)),
			Length: info.Length, Data: data, Comments: options.Comments})
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// TestCorpusAsGopacketReadsIt: each capture has the packets that gopacket finds in it, times by the
// nanosecond, and errors are only where gopacket has one.
func TestCorpusAsGopacketReadsIt(t *testing.T) {
	files := shared.Files(t, shared.Dir(t, "corpus", "pcap"), func(path string) bool {
		return slices.Contains([]string{".pcap", ".pcapng", ".cap"}, filepath.Ext(path))
	})
	read := 0
	for _, path := range files {
		file := shared.Read(t, path)
		if !pcap.Begins(file[:min(4, len(file))]) {
			continue // in gzip, or of another kind
		}
		want, refused := another(file)
		got, _, err := packetsOf(bytes.NewReader(file))
		if refused == nil {
			assert.NoError(t, err, path)
		}
		require.Len(t, got, len(want), path)
		for i := range want {
			assert.Equal(t, want[i], got[i], "%s, packet %d", path, i+1)
		}
		read += len(got)
	}
	assert.Greater(t, read, 1000)
}

// file joins blocks of one byte order behind the header of a section.
type file struct {
	order interface {
		binary.AppendByteOrder
		binary.ByteOrder
	}
	bytes []byte
}

func (f *file) block(kind uint32, body ...[]byte) {
	b := bytes.Join(body, nil)
	b = append(b, make([]byte, -len(b)&3)...)
	f.bytes = f.order.AppendUint32(f.order.AppendUint32(f.bytes, kind), uint32(12+len(b)))
	f.bytes = f.order.AppendUint32(append(f.bytes, b...), uint32(12+len(b)))
}

func (f *file) u16(v ...uint16) (b []byte) {
	for _, v := range v {
		b = f.order.AppendUint16(b, v)
	}
	return b
}

func (f *file) u32(v ...uint32) (b []byte) {
	for _, v := range v {
		b = f.order.AppendUint32(b, v)
	}
	return b
}

func (f *file) option(code uint16, value string) []byte {
	return slices.Concat(f.u16(code, uint16(len(value))), []byte(value), make([]byte, -len(value)&3))
}

func (f *file) section(major uint16) {
	f.block(0x0A0D0D0A, f.u32(0x1A2B3C4D), f.u16(major, 0), f.u32(1<<32-1, 1<<32-1))
}

// sections is a file with all kinds of blocks of packets, times of several units, and what is
// passed over.
func sections(big bool) []byte {
	f := &file{order: binary.LittleEndian}
	if big {
		f.order = binary.BigEndian
	}
	f.section(1)
	f.block(1, f.u16(101, 0), f.u32(4))                                                    // microseconds
	f.block(1, f.u16(1, 0), f.u32(0), f.option(9, "\x09"), f.option(1, "one"))             // nanoseconds
	f.block(1, f.u16(276, 0), f.u32(0), f.option(9, "\x8A"), f.option(0, ""))              // 1/1024 s
	f.block(1, f.u16(113, 0), f.u32(0), f.option(9, "\x00"), f.option(14, "12345678"[:3])) // odd
	f.block(0xBAD, []byte("unknown"))
	f.block(6, f.u32(0, 0x5F, 0xFFFF0001, 5, 9), []byte("12345\x00\x00\x00"), f.option(1, "a"), f.option(2, "flag"),
		f.option(1, "b"), f.option(0, ""))
	f.block(6, f.u32(1, 0x18000000, 7, 3, 3), []byte("abc\x00"))
	f.block(6, f.u32(2, 1, 512+256, 4, 4), []byte("wxyz"), f.option(1, "cut off")[:6])
	f.block(2, f.u16(3, 7), f.u32(0, 1, 1, 1), []byte("p"))
	f.block(3, f.u32(6), []byte("simp"))
	f.block(5, f.u32(0, 0, 0))
	f.section(2)
	f.block(6, []byte("of a version that is not known"))
	f.section(1)
	f.block(1, f.u16(101, 0), f.u32(0))
	f.block(3, f.u32(2), []byte("hi"))
	return f.bytes
}

func TestSections(t *testing.T) {
	at := func(s, ns int64) time.Time { return time.Unix(s, ns).UTC() }
	micros := int64(0x5F)<<32 + 0xFFFF0001
	nanos := int64(0x18000000)<<32 + 7
	want := []pcap.PacketRecord{
		{Time: time.UnixMicro(micros).UTC(), Link: 101, Length: 9, Data: []byte("12345"), Comments: []string{"a", "b"}},
		{Time: at(0, nanos), Link: 1, Length: 3, Data: []byte("abc")},
		{Time: at((1<<32+768)/1024, 750e6), Link: 276, Length: 4, Data: []byte("wxyz")},
		{Time: at(0, 1000), Link: 113, Length: 1, Data: []byte("p")},
		{Link: 101, Length: 6, Data: []byte("simp")},
		{Link: 101, Length: 2, Data: []byte("hi")},
	}
	for _, big := range []bool{false, true} {
		whole := sections(big)
		got, _, err := packetsOf(iotest.OneByteReader(bytes.NewReader(whole)))
		require.NoError(t, err)
		assert.Equal(t, want, got)
		for cut := 1; cut < len(whole); cut++ {
			got, _, err := packetsOf(bytes.NewReader(whole[:cut]))
			if err != nil {
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF, cut)
			}
			assert.LessOrEqual(t, len(got), len(want))
			assert.Equal(t, want[:len(got)], append([]pcap.PacketRecord{}, got...))
		}
	}
}

// TestWhatIsImpossible: what a file says of lengths, numbers and units is an error where it cannot
// be, and takes no memory.
func TestWhatIsImpossible(t *testing.T) {
	f := &file{order: binary.LittleEndian}
	begin := func() {
		f.bytes = nil
		f.section(1)
		f.block(1, f.u16(101, 0), f.u32(0))
	}
	for name, add := range map[string]func(){
		"block of no length":    func() { f.bytes = append(f.bytes, f.u32(6, 0)...) },
		"block below its head":  func() { f.bytes = append(f.bytes, f.u32(6, 28, 0)...) },
		"packet over its block": func() { f.block(6, f.u32(0, 0, 0, 100, 100), []byte("x")) },
		"simple over its block": func() { f.block(3, f.u32(1<<32-1), []byte("x")) },
		"interface not there":   func() { f.block(6, f.u32(7, 0, 0, 1, 1), []byte("x")) },
		"number of 32 bits":     func() { f.block(6, f.u32(1<<31, 0, 0, 1, 1), []byte("x")) },
		"unit of 10^-20":        func() { f.block(1, f.u16(101, 0), f.u32(0), f.option(9, "\x14")) },
		"unit of 2^-64":         func() { f.block(1, f.u16(101, 0), f.u32(0), f.option(9, "\xC0")) },
		"interface of 4 GB":     func() { f.bytes = append(f.bytes, f.u32(1, 1<<32-4)...) },
		"short interface":       func() { f.block(1, f.u16(101, 0)) },
		"short section":         func() { f.block(0x0A0D0D0A, f.u32(0x1A2B3C4D)) },
		"section of odd order":  func() { f.block(0x0A0D0D0A, f.u32(1, 0, 0, 0)) },
		"simple, no interface":  func() { f.section(1); f.block(3, f.u32(1), []byte("x")) },
		"a packet of 4 GB": func() {
			f.bytes = append(f.bytes, f.u32(6, 1<<32-4, 0, 0, 0, 1<<32-64, 1<<32-64)...)
		},
		"options of 4 GB, cut":   func() { f.bytes = append(f.bytes, f.u32(6, 1<<32-4, 0, 0, 0, 1, 1)...) },
		"unknown of 4 GB, cut":   func() { f.bytes = append(f.bytes, f.u32(0xBAD, 1<<32-4)...) },
		"secrets of 4 GB, cut":   func() { f.bytes = append(f.bytes, f.u32(10, 1<<32-4)...) },
		"secrets above the rest": func() { f.block(10, f.u32(0x544C534B, 1<<30)); f.bytes = append(f.bytes, 1) },
	} {
		begin()
		add()
		got, logs, err := packetsOf(bytes.NewReader(f.bytes))
		assert.Error(t, err, name)
		assert.Empty(t, got, name)
		assert.Empty(t, logs, name)
	}
	le := binary.LittleEndian
	head := func(version uint16) []byte {
		b := le.AppendUint16(le.AppendUint32(nil, 0xA1B2C3D4), version)
		return append(le.AppendUint32(append(b, make([]byte, 10)...), 100), 1, 0, 0, 0)
	}
	record := func(n, length uint32) []byte {
		return le.AppendUint32(le.AppendUint32(make([]byte, 8), n), length)
	}
	for name, in := range map[string][]byte{
		"version 3":         head(3),
		"over what is sent": append(head(2), record(5, 4)...),
		"over the longest":  append(head(2), record(1<<20, 1<<20)...),
		"4 GB":              append(head(2), record(1<<32-1, 1<<32-1)...),
		"nothing":           {},
		"no capture":        []byte("<?xml"),
	} {
		got, _, err := packetsOf(bytes.NewReader(in))
		assert.Error(t, err, name)
		assert.Empty(t, got, name)
	}
}

// TestAppend: what is written is what gopacket and this package read.
func TestAppend(t *testing.T) {
	when := time.Unix(1_800_000_000, 123456789).UTC()
	long := strings.Repeat("c", 1<<16-1)
	want := []pcap.PacketRecord{
		{Time: when, Link: pcap.LinkRaw, Length: 5, Data: []byte("12345"), Comments: []string{"one", long, ""}},
		{Time: when.Add(1), Link: pcap.LinkRaw, Length: 1 << 16, Data: make([]byte, 1<<16)},
		{Time: when, Link: pcap.LinkRaw, Data: []byte{}},
		{Time: when, Link: pcap.LinkRaw, Length: 9, Data: []byte("1234")},
	}
	b := pcap.AppendHead(nil, "hhfr", "name", pcap.LinkRaw)
	b = pcap.AppendSecrets(b, []byte("a line\n"))
	for _, p := range want {
		b = pcap.AppendPacket(b, p)
	}
	other, err := another(b)
	require.NoError(t, err)
	assert.Equal(t, want, other)
	got, logs, err := packetsOf(bytes.NewReader(b))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, [][]byte{[]byte("a line\n")}, logs)

	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	assert.Equal(t, "hhfr", r.SectionInfo().Application)
	first, err := r.Interface(0)
	require.NoError(t, err)
	assert.Equal(t, "name", first.Name)
}

func FuzzReader(f *testing.F) {
	f.Add(sections(false))
	f.Add(sections(true))
	b := pcap.AppendPacket(pcap.AppendHead(nil, "hhfr", "hhfr", 1),
		pcap.PacketRecord{Time: time.Unix(1, 1), Data: []byte("data"), Comments: []string{"note"}})
	f.Add(pcap.AppendSecrets(b, []byte("line\n")))
	var classic bytes.Buffer
	w := pcapgo.NewWriterNanos(&classic)
	require.NoError(f, w.WriteFileHeader(65535, layers.LinkTypeRaw))
	info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 1), CaptureLength: 4, Length: 9}
	require.NoError(f, w.WritePacket(info, []byte("data")))
	f.Add(classic.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		all, logs, _ := packetsOf(bytes.NewReader(in))
		n := 0
		for _, p := range all {
			n += len(p.Data)
			for _, c := range p.Comments {
				n += len(c)
			}
		}
		for _, log := range logs {
			n += len(log)
		}
		if n > len(in) {
			t.Fatalf("%d bytes out of %d", n, len(in))
		}
	})
}
