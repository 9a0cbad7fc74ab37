// Package outgoing reads the messages that a command sends, from FILEs.
package outgoing

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/soap"
)

// FileMessages are the FILEs of a command line, and the flags of how they are sent.
type FileMessages struct {
	Names  []string // of the FILEs; - is stdin
	Action string
	OneWay bool // no replies are expected

	wrap   string
	repeat int
	path   string
	fields []string
}

// Flags declares them.
func (m *FileMessages) Flags(f *pflag.FlagSet) {
	f.IntVar(&m.repeat, "repeat", 1, "how many times to send all the FILEs")
	f.StringVar(&m.Action, "action", "", "SOAPAction, or action parameter in SOAP 1.2")
	f.StringVar(&m.wrap, "wrap", "", "put each FILE, which is a body, into an envelope of SOAP 1.1 or 1.2")
	flags.OneWay(f, &m.OneWay)
}

// Check checks the flags and FILEs of messages to a URL, with these HTTP fields.
func (m *FileMessages) Check(u *url.URL, fields []string) error {
	m.path, m.fields = "/", fields
	if u.RequestURI() != "" {
		m.path = u.RequestURI()
	}
	switch {
	case m.repeat < 1:
		return exit.Usagef("", "--repeat is at least 1")
	case m.wrap != "" && m.wrap != "1.1" && m.wrap != "1.2":
		return exit.Usagef("", "--wrap is 1.1 or 1.2, not %s", m.wrap)
	}
	if _, err := sender.RequestHead("/", nil, m.Action, nil); err != nil {
		return exit.Usagef("", "--action: %w", err)
	}
	if slices.Contains(m.Names, "-") && m.repeat > 1 {
		return exit.Usagef("leave --repeat out, or name files", "- can be read once only")
	}
	return input.Sendable(m.Names)
}

// longFile is the length from which on a FILE is read as it is sent, in bytes.
const longFile = 1 << 20

// All reads what is to be sent. asSent: long files need not be read before they are.
func (m *FileMessages) All(ctx context.Context, g *command.Global, asSent bool) iter.Seq2[sender.MessageToSend, error] {
	return func(yield func(sender.MessageToSend, error) bool) {
		give := func(name string, body []byte) bool {
			one, err := m.of(name, body)
			return yield(one, err) && err == nil
		}
		for range m.repeat {
			for _, name := range m.Names {
				if info, err := os.Stat(name); asSent && m.wrap == "" && name != "-" && err == nil &&
					info.Mode().IsRegular() && info.Size() > longFile {
					one, err := m.keptInFile(name, info.Size())
					if !yield(one, err) || err != nil {
						return
					}
					continue
				}
				if name != "-" {
					body, err := input.ReadMessage(ctx, name)
					if err != nil {
						yield(sender.MessageToSend{Name: name}, err)
						return
					}
					if !give(name, body) {
						return
					}
					continue
				}
				for doc, err := range input.Documents(ctx, g) {
					if err != nil {
						yield(sender.MessageToSend{Name: name}, err)
						return
					}
					if !give(name, doc) {
						return
					}
				}
			}
		}
	}
}

// keptInFile is a message that stays in its file.
func (m *FileMessages) keptInFile(name string, size int64) (one sender.MessageToSend, err error) {
	if size > input.MaxMessage {
		return sender.MessageToSend{Name: name}, input.TooLong(name, input.MaxMessage)
	}
	begin, err := input.ReadBeginning(name, soap.MaxRecognize)
	if err != nil {
		return sender.MessageToSend{Name: name}, err
	}
	one, err = m.of(name, begin)
	one.File, one.Size = name, size
	return one, err
}

func (m *FileMessages) of(name string, body []byte) (one sender.MessageToSend, err error) {
	one = sender.MessageToSend{Name: name, Body: body, OneWay: m.OneWay}
	if m.wrap != "" {
		version, err := soap.ParseVersion(m.wrap)
		if err != nil {
			return one, err
		}
		if one.Body, err = soap.Wrap(version, body); err != nil {
			return one, fmt.Errorf("%s: %w", name, err)
		}
	}
	one.Head, err = sender.RequestHead(m.path, one.Body, m.Action, m.fields)
	return one, err
}
