package capture

import (
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxFault is the longest fault whose reason is read, in bytes.
const maxFault = 1 << 20

// FaultText is the code and the reason of the fault that a message is, or its code alone if the
// rest cannot be read; empty for other messages.
func FaultText(message []byte) string {
	if !soap.IsFault(message) {
		return ""
	}
	code := string(soap.FaultCodeIn(message))
	if e, err := soap.Parse(message, soap.Limits{MaxBytes: maxFault}); err == nil {
		if f, ok := e.Fault(); ok {
			return code + ": " + f.Reason
		}
	}
	return code
}
