package demo

import (
	"errors"
	"io/fs"
	"strings"

	messages "github.com/hhfr/hhfr/testdata/soap"
)

// TourMessage is one that the tour sends.
type TourMessage struct {
	Name string
	Body []byte
}

// Builtin are the built-in messages, modeled on ONVIF, CWMP and EWS.
func Builtin() ([]TourMessage, error) {
	return Read(messages.Files, func(name string) bool {
		return strings.HasPrefix(name, "onvif-") || strings.HasPrefix(name, "cwmp-") || strings.HasPrefix(name, "ews-")
	})
}

// Read reads the files that keep takes, below the root of a file system, by name.
func Read(files fs.FS, keep func(path string) bool) (list []TourMessage, err error) {
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !keep(path) {
			return err
		}
		body, err := fs.ReadFile(files, path)
		list = append(list, TourMessage{Name: path, Body: body})
		return err
	})
	if err == nil && len(list) == 0 {
		err = errors.New("no messages to send")
	}
	return list, err
}

const (
	// linkMessages is the maximum number of messages that go over the link, and linkOctets their
	// maximum length: the link must take only a few seconds.
	linkMessages = 10
	linkOctets   = 8 << 10
)

// sample picks the messages for the link: all, or some spread evenly over those that are not too
// long.
func sample(list []TourMessage) (some []TourMessage) {
	for _, m := range list {
		if len(m.Body) > 0 && len(m.Body) <= linkOctets {
			some = append(some, m)
		}
	}
	if len(some) <= linkMessages {
		return some
	}
	for i := range linkMessages {
		some[i] = some[i*len(some)/linkMessages]
	}
	return some[:linkMessages]
}
