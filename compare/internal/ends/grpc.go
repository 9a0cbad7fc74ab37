package ends

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A gRPC service whose messages are one field of bytes, as a SOAP envelope would be in it. It is
// described by hand, so that no generated code is needed.
const (
	service    = "hhfr.Echo"
	unaryName  = "Unary"
	bidiName   = "Bidi"
	clientName = "Client"
)

type bytesValue = wrapperspb.BytesValue

var (
	bidiStream   = grpc.StreamDesc{StreamName: bidiName, Handler: echoStream, ServerStreams: true, ClientStreams: true}
	clientStream = grpc.StreamDesc{StreamName: clientName, Handler: countStream, ClientStreams: true}
)

// grpcServer is what the methods of the service get.
type grpcServer struct{ arrivals }

var description = grpc.ServiceDesc{
	ServiceName: service, HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: unaryName, Handler: func(
		_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
	) (any, error) {
		m := new(bytesValue)
		return m, decode(m)
	}}},
	Streams: []grpc.StreamDesc{bidiStream, clientStream},
}

func echoStream(_ any, s grpc.ServerStream) error {
	for {
		m := new(bytesValue)
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(m); err != nil {
			return err
		}
	}
}

func countStream(srv any, s grpc.ServerStream) error {
	for {
		if err := s.RecvMsg(new(bytesValue)); errors.Is(err, io.EOF) {
			return s.SendMsg(new(bytesValue))
		} else if err != nil {
			return err
		}
		srv.(*grpcServer).arrived()
	}
}

// openGRPC starts a server, and a client of it.
func openGRPC(ctx context.Context) (*grpcServer, *grpc.ClientConn, func() error, error) {
	l, err := loopback(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	s := grpc.NewServer()
	counting := &grpcServer{}
	s.RegisterService(&description, counting)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.Stop()
		return nil, nil, nil, errors.Join(err, <-done)
	}
	return counting, c, func() error {
		err := c.Close()
		s.Stop()
		return errors.Join(err, <-done)
	}, nil
}

func openUnary(ctx context.Context, messages [][]byte) (*contestant, error) {
	_, c, end, err := openGRPC(ctx)
	if err != nil {
		return nil, err
	}
	return each(messages, func(m []byte) error {
		var back bytesValue
		return c.Invoke(ctx, "/"+service+"/"+unaryName, &bytesValue{Value: m}, &back)
	}, end), nil
}

func openBidi(ctx context.Context, messages [][]byte) (*contestant, error) {
	_, c, end, err := openGRPC(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.NewStream(ctx, &bidiStream, "/"+service+"/"+bidiName)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return each(messages, func(m []byte) error {
		if err := s.SendMsg(&bytesValue{Value: m}); err != nil {
			return err
		}
		return s.RecvMsg(new(bytesValue))
	}, end), nil
}

// openWindow has so many messages in flight on one stream.
func openWindow(ctx context.Context, messages [][]byte) (*contestant, error) {
	_, c, end, err := openGRPC(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.NewStream(ctx, &bidiStream, "/"+service+"/"+bidiName)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	at := 0
	return &contestant{close: end, carry: func(n int) error {
		window := make(chan struct{}, inFlight)
		received := make(chan error, 1)
		go func() {
			for range n {
				if err := s.RecvMsg(new(bytesValue)); err != nil {
					received <- err
					return
				}
				<-window
			}
			received <- nil
		}()
		for range n {
			select {
			case window <- struct{}{}:
			case err := <-received:
				return err
			}
			if err := s.SendMsg(&bytesValue{Value: messages[at%len(messages)]}); err != nil {
				return errors.Join(err, <-received)
			}
			at++
		}
		return <-received
	}}, nil
}

func openGRPCSend(ctx context.Context, messages [][]byte) (*contestant, error) {
	counting, c, end, err := openGRPC(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.NewStream(ctx, &clientStream, "/"+service+"/"+clientName)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return counting.oneWay(messages, func(m []byte) error { return s.SendMsg(&bytesValue{Value: m}) },
		func() error { return nil }, end), nil
}
