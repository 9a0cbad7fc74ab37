package bench

import (
	"bytes"
	"fmt"
	"regexp"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/workload"
)

// trial is one cell.
type trial struct {
	service   string
	files     [][]byte // of the service file
	size, n   int
	way       SessionWay
	manner    manner
	transport string
	there     known
	speed     float64
	profile   link.Profile
	cpu       link.Computing // of the near end
	peer      *sessionServer // nil: a server of its own, beyond the link
}

// on puts a trial on a link, with a near end that may be slow.
func (s *trial) on(p link.Profile) {
	s.cpu, p.CPU = p.CPU, link.Computing{}
	s.profile = p
}

// clock is that of the link, or of the network.
func (s *trial) clock() clock.Clock {
	if s.peer != nil {
		return clock.Real()
	}
	return clock.Scaled(s.speed)
}

var items = regexp.MustCompile(`<item>[^<]*</item>`)

// messages makes the requests, with the values of workloads W1 and W2, or of the files in turn.
func (s *trial) messages() (list [][]byte, err error) {
	for s.service == FileService {
		if list = append(list, s.files[len(list)%len(s.files)]); len(list) == s.n {
			return list, nil
		}
	}
	source := workload.Strings(1, s.size)
	if s.service != "concat" {
		source = workload.Floats(1, s.size)
	}
	for m := range source {
		if s.service != "echo" {
			body := fmt.Sprintf(`<%s xmlns="%s">%s</%s>`, s.service, peer.Namespace,
				bytes.Join(items.FindAll(m, -1), nil), s.service)
			if m, err = soap.Wrap(soap.V11, []byte(body)); err != nil {
				return nil, err
			}
		}
		if list = append(list, m); len(list) == s.n {
			break
		}
	}
	return list, nil
}

// path is that of the service.
func (s *trial) path() string {
	if s.service == FileService {
		return "echo"
	}
	return s.service
}

// timeout is for negotiations and replies: on a link each takes what it takes.
func (s *trial) timeout() time.Duration {
	if s.peer != nil {
		return patience
	}
	return time.Hour
}

// streams is the name of the streams' transport.
func (s *trial) streams() string {
	if s.manner.tls {
		return "tls"
	}
	return s.transport
}

// patience is how long a peer may take for a reply.
const patience = time.Minute
