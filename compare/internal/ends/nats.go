package ends

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const subject = "echo"

// openNATS starts a NATS server, and two clients of it.
func openNATS(ctx context.Context) (from, to *nats.Conn, end func() error, err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, nil, nil, err
	}
	go s.Start()
	stop := func() { s.Shutdown(); s.WaitForShutdown() }
	if !s.ReadyForConnections(10 * time.Second) {
		stop()
		return nil, nil, nil, errors.New("the NATS server does not start")
	}
	if from, err = nats.Connect(s.ClientURL()); err == nil {
		to, err = nats.Connect(s.ClientURL())
	}
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return from, to, func() error { from.Close(); to.Close(); stop(); return nil }, context.Cause(ctx)
}

func openNATSRequest(ctx context.Context, messages [][]byte) (*contestant, error) {
	from, to, end, err := openNATS(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = to.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(m.Data) }); err == nil {
		err = to.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return each(messages, func(m []byte) error {
		_, err := from.Request(subject, m, time.Minute)
		return err
	}, end), nil
}

func openNATSPublish(ctx context.Context, messages [][]byte) (*contestant, error) {
	from, to, end, err := openNATS(ctx)
	if err != nil {
		return nil, err
	}
	var c arrivals
	sub, err := to.Subscribe(subject, func(*nats.Msg) { c.arrived() })
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err == nil {
		err = to.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return c.oneWay(messages, func(m []byte) error { return from.Publish(subject, m) }, from.Flush, end), nil
}
