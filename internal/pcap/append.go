package pcap

import "encoding/binary"

// AppendHead appends the beginning of a pcapng file to b: a section, and one interface of a name,
// whose packets are of a link type and have times in nanoseconds.
func AppendHead(b []byte, application, name string, link int) []byte {
	le := binary.LittleEndian
	const optionApplication, optionName, optionUnit, nanoseconds = 4, 2, 9, 9
	b, at := beginBlock(b, blockSection)
	b = le.AppendUint32(b, orderMagic)
	b = le.AppendUint16(b, 1) // version 1.0
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, 1<<64-1) // the length of the section is not known
	b = appendOption(b, optionApplication, application)
	b = endBlock(appendOption(b, 0, ""), at)

	b, at = beginBlock(b, blockInterface)
	b = le.AppendUint16(b, uint16(link))
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, 0) // packets of any length
	b = appendOption(b, optionName, name)
	b = appendOption(b, optionUnit, string([]byte{nanoseconds}))
	return endBlock(appendOption(b, 0, ""), at)
}

// AppendPacket appends a packet of the interface. Its Length is 0 if its data are all of it.
// Comments are at most 65,535 bytes each.
func AppendPacket(b []byte, p PacketRecord) []byte {
	le := binary.LittleEndian
	b, at := beginBlock(b, blockEnhanced)
	ticks := uint64(p.Time.UnixNano())
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, uint32(ticks>>32))
	b = le.AppendUint32(b, uint32(ticks))
	b = le.AppendUint32(b, uint32(len(p.Data)))
	b = le.AppendUint32(b, uint32(max(p.Length, len(p.Data))))
	b = pad(append(b, p.Data...), len(p.Data))
	for _, c := range p.Comments {
		b = appendOption(b, 1, c)
	}
	if len(p.Comments) > 0 {
		b = appendOption(b, 0, "")
	}
	return endBlock(b, at)
}

// AppendSecrets appends lines of a key log of TLS.
func AppendSecrets(b, log []byte) []byte {
	b, at := beginBlock(b, blockSecrets)
	b = binary.LittleEndian.AppendUint32(b, secretsTLS)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(log)))
	return endBlock(pad(append(b, log...), len(log)), at)
}

func beginBlock(b []byte, kind uint32) (began []byte, at int) {
	at = len(b)
	return append(binary.LittleEndian.AppendUint32(b, kind), 0, 0, 0, 0), at
}

// endBlock states the length of the block that began at an offset.
func endBlock(b []byte, at int) []byte {
	n := uint32(len(b) - at + 4)
	binary.LittleEndian.PutUint32(b[at+4:], n)
	return binary.LittleEndian.AppendUint32(b, n)
}

func appendOption(b []byte, code uint16, value string) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...), len(value))
}

// pad fills up what has n bytes to a multiple of four.
func pad(b []byte, n int) []byte { return append(b, make([]byte, -n&3)...) }
