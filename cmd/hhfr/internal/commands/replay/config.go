package replay

import (
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/soap"
)

// config is how requests are sent again, and the HTTP fields that they get.
func (o *replayOptions) config() (cfg replay.RunConfig, fields []soap.Field, err error) {
	cfg = replay.RunConfig{InFlight: o.Concurrency, Pace: o.pace}
	if cfg.Compare, err = replay.NewComparison(o.compare, o.ignore); err != nil {
		return cfg, nil, exit.Usage(err, "")
	}
	if fields, err = sender.ParseFields(o.Fields); err != nil {
		return cfg, nil, err
	}
	password, err := o.Password()
	if err != nil {
		return cfg, nil, err
	}
	authorization, err := o.Authorization(password)
	if err != nil {
		return cfg, nil, err
	}
	if authorization != "" {
		fields = append(fields, soap.Field{Name: "Authorization", Value: authorization})
	}
	if o.WSS != "" {
		cfg.Stamp = func(body []byte) []byte { return o.Stamp(body, password, time.Now()) }
	}
	return cfg, fields, nil
}
