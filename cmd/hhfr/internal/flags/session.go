package flags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// AllowCleartext has a command allow streams without encryption.
func AllowCleartext(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "allow-cleartext", false, "agree on streams without encryption for an https URL, too")
}

// AllowHost has a command take streams of other hosts.
func AllowHost(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "allow-host", nil,
		"a host, besides that of the service's URL, that the answer may name for the stream")
}

// ClientPerAddress has the near half of a pair take all connections from an address for one client.
func ClientPerAddress(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "client-per-address", false,
		"connections from one address are of one client, whatever they show, and go on with what its lanes remember: "+
			"for devices that open one for each call")
}

// Delivery has a command say what is guaranteed of messages.
func Delivery(f *pflag.FlagSet, assurance *string, ordered *bool) {
	f.StringVar(assurance, "assurance", wsrm.AtMostOnce.String(),
		"delivery guarantee of each message: "+strings.Join(Assurances(), ", "))
	f.BoolVar(ordered, "ordered", false,
		"messages are handled in the order in which they were sent, which plain SOAP alone cannot do")
}

// OneWay has a command expect no replies.
func OneWay(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "one-way", false, "send messages that expect no reply")
}

// SaveDir has a command write messages to files.
func SaveDir(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "save-dir", "", "write each message to a file there: 000001-request.xml, 000001-reply.xml, …")
}

// Lenient has a command that reads captures put up with what they lack.
func Lenient(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "lenient", false, "exit with 0 if something is missing")
}
