package live

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gopacket/gopacket/afpacket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Kinds of interfaces (linux/if_arp.h).
const (
	kindEthernet = 1
	kindLoopback = 772
	kindRadiotap = 803
	kindNone     = 0xFFFE // tunnels
	kindRawIP    = 519
	kindPPP      = 512
	kindIPIP     = 768
	kindIP6      = 769
	kindSIT      = 776
	kindGRE      = 778
	kindGRE6     = 823
)

const (
	// blocks of blockLen bytes are the ring that the kernel writes packets to.
	blocks   = 32
	blockLen = 512 << 10
	// pollFor is how long next waits.
	pollFor = 100 * time.Millisecond
)

// packetRing is a packet socket with a ring of packets.
type packetRing struct{ *afpacket.TPacket }

func open(name string) (packetSource, uint32, error) {
	cooked, link, iface := false, uint32(linkEthernet), name
	switch kind, err := kindOf(name); {
	case err != nil:
		return nil, 0, err
	case kind == kindEthernet, kind == kindLoopback:
	case kind == kindRadiotap:
		link = linkRadiotap
	case kind == kindNone, kind == kindRawIP, kind == kindPPP, kind == kindIPIP, kind == kindIP6, kind == kindSIT,
		kind == kindGRE, kind == kindGRE6:
		// What is below IP is different for each of them, and the kernel leaves it out.
		cooked, link = true, linkRaw
	default:
		return nil, 0, fmt.Errorf("%s: %w (%d of linux/if_arp.h)", name, ErrLink, kind)
	}
	options := []any{
		afpacket.OptBlockSize(blockLen), afpacket.OptNumBlocks(blocks), afpacket.OptPollTimeout(pollFor),
		afpacket.OptBlockTimeout(pollFor / 2), afpacket.OptAddVLANHeader(!cooked && link == linkEthernet),
	}
	if cooked {
		options = append(options, afpacket.SocketDgram)
	}
	if iface != Any {
		options = append(options, afpacket.OptInterface(iface))
	}
	socket, err := afpacket.NewTPacket(options...)
	if err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("%w: %w", ErrRight, err)
		}
		return nil, 0, err
	}
	if err := socket.SetBPF(once()); err != nil {
		socket.Close()
		return nil, 0, fmt.Errorf("leaving out the doubles of loopback: %w", err)
	}
	return packetRing{socket}, link, nil
}

// kindOf is the kind of an interface.
func kindOf(name string) (int, error) {
	if name == Any {
		return kindNone, nil
	}
	if _, err := net.InterfaceByName(name); err != nil {
		return 0, fmt.Errorf("%w: %s; there are %s", ErrInterface, name, names())
	}
	text, err := os.ReadFile("/sys/class/net/" + name + "/type")
	if err != nil {
		return kindEthernet, nil //nolint:nilerr // without /sys: what most are
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// names lists the interfaces.
func names() string {
	all, _ := net.Interfaces()
	list := make([]string, 0, len(all)+1)
	for _, i := range all {
		list = append(list, i.Name)
	}
	return strings.Join(append(list, Any), ", ")
}

// once is a filter that passes everything but outgoing packets of loopback, which come in again.
func once() []bpf.RawInstruction {
	index := uint32(1)
	if all, err := net.Interfaces(); err == nil {
		for _, i := range all {
			if i.Flags&net.FlagLoopback != 0 {
				index = uint32(i.Index)
			}
		}
	}
	const all = 0xFFFFFFFF
	program, _ := bpf.Assemble([]bpf.Instruction{ // of these it does not fail
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: index, SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: all},
	})
	return program
}

func (r packetRing) next() (data []byte, length int, at time.Time, err error) {
	data, info, err := r.ZeroCopyReadPacketData()
	switch {
	case errors.Is(err, afpacket.ErrTimeout), errors.Is(err, unix.EINTR):
		return nil, 0, at, nil
	case err != nil:
		return nil, 0, at, fmt.Errorf("capturing: %w", err)
	}
	return data[:min(len(data), snap)], info.Length, info.Timestamp, nil
}

func (r packetRing) drops() int {
	_, stats, err := r.SocketStats()
	if err != nil {
		return 0
	}
	return int(stats.Drops())
}

func (r packetRing) close() { r.Close() }
