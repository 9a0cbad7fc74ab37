package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/experiment"
)

// saved is the file of --save. What it begins with is written with the first record, so that
// nothing is left of runs that measured nothing. Its zero value saves nothing.
type saved struct {
	file    *os.File
	here    *experiment.Environment
	begun   bool
	watcher *experiment.Watcher
}

// open opens the file, if one is named. The peer, if there is one, is asked what it runs on.
func (s *saved) open(ctx context.Context, name string, peer *url.URL, secure *tls.Config) (err error) {
	if name == "" {
		return nil
	}
	if s.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	s.here = environment()
	if peer != nil {
		const patience = 10 * time.Second
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		transport := &http.Transport{TLSClientConfig: secure.Clone()}
		defer transport.CloseIdleConnections()
		s.here.Peer = experiment.Ask(ctx, &http.Client{Transport: transport}, peer)
	}
	s.watcher = experiment.Watch()
	return nil
}

// environment is where this process measures.
func environment() *experiment.Environment {
	return &experiment.Environment{
		Version: experiment.Version, Started: time.Now(), Arguments: os.Args[1:], Machine: experiment.This(),
	}
}

// write appends a record, so that an interrupt loses none.
func (s *saved) write(m experiment.Measured) error {
	switch {
	case s.file == nil:
		return nil
	case !s.begun:
		if err := printing.JSON(s.file, experiment.Measured{Environment: s.here}); err != nil {
			return err
		}
		s.begun = true
	}
	return printing.JSON(s.file, m)
}

func (s *saved) close() (err error) {
	if s.file == nil {
		return nil
	}
	if noise := s.watcher.End(); s.begun {
		err = s.write(experiment.Measured{Noise: &noise})
	}
	return errors.Join(err, s.file.Close())
}
