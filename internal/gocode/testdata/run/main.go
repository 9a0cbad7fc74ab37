// Command run calls a service of generated code by a generated client, over a stream and in plain
// SOAP.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/soap"

	"example.com/trips/stock"
)

// shop serves the operations.
type shop struct{ notes chan string }

func (shop) GetPrice(_ context.Context, req *stock.GetPrice) (*stock.GetPriceResponse, error) {
	switch req.Symbol {
	case "ACME":
		price := "12.50"
		picture := []byte{1, 2, 3}
		return &stock.GetPriceResponse{Price: &price, Lot: []stock.Lot{
			{Id: 7, Made: "2026-11-27T12:00:00+01:00", Size: 10, Picture: &picture, Type: "large red"},
			{Id: -7, Made: "2026-11-27T24:00:00", Type: "small"},
		}}, nil
	case "none":
		return &stock.GetPriceResponse{}, nil
	}
	return nil, stock.Fault("no such article", &stock.UnknownArticle{Symbol: req.Symbol})
}

func (shop) Search(_ context.Context, req *stock.Search) (*stock.SearchResponse, error) {
	switch {
	case req.All != nil:
		limit := req.All.Condition[0].All.Condition[0].Limit
		return &stock.SearchResponse{Symbol: []string{fmt.Sprint(*limit), "deep"}}, nil
	case req.Pattern != nil:
		return &stock.SearchResponse{Symbol: []string{req.Pattern.Value, fmt.Sprint(req.Pattern.IgnoreCase)}}, nil
	}
	return nil, &soap.Fault{Code: soap.Client, Reason: "a pattern is wanted"}
}

func (s shop) Note(_ context.Context, req *stock.Note) error {
	s.notes <- req.Value
	return nil
}

func (shop) Move(_ context.Context, req *stock.Move) (*stock.MoveResponse, error) {
	moved := req.From != nil && *req.From == 1 && req.Range == nil && req.What.Id == 5
	return &stock.MoveResponse{Moved: &moved}, nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	service := shop{make(chan string, 1)}
	handler, err := stock.NewHandler(service)
	if err != nil {
		return err
	}
	plain := httptest.NewServer(handler)
	defer plain.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &hhfr.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	for _, url := range []string{plain.URL, "http://" + l.Addr().String() + "/stock"} {
		if err := calls(ctx, url, service); err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
	}
	return errors.Join(server.Close(), <-served)
}

func calls(ctx context.Context, url string, service shop) error {
	c, err := hhfr.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	client := stock.NewClient(c)
	usd, below, limit := stock.CurrencyUSD, 1.5, uint16(3)
	var fault *soap.Fault
	for range 3 {
		price, err := client.GetPrice(ctx, &stock.GetPrice{Symbol: "ACME", Currency: &usd})
		if err != nil {
			return err
		}
		lots := price.Lot
		fmt.Println("GetPrice:", *price.Price, len(lots), lots[0].Made, *lots[0].Picture, lots[1].Picture, lots[1].Id)
		if price, err = client.GetPrice(ctx, &stock.GetPrice{Symbol: "none"}); err != nil {
			return err
		}
		fmt.Println("GetPrice:", price.Price)
		_, err = client.GetPrice(ctx, &stock.GetPrice{Symbol: "<&>"})
		unknown, ok := stock.Detail[stock.UnknownArticle](err)
		_, other := stock.Detail[stock.Note](err)
		fmt.Println("GetPrice:", ok, other, unknown.Symbol)
		found, err := client.Search(ctx, &stock.Search{Pattern: &stock.Pattern{IgnoreCase: true, Value: " a  b "}})
		if err != nil {
			return err
		}
		fmt.Printf("Search: %q\n", found.Symbol)
		found, err = client.Search(ctx, &stock.Search{All: &stock.Conditions{Condition: []stock.SearchType{
			{All: &stock.Conditions{Condition: []stock.SearchType{{Limit: &limit, Below: &below}}}},
		}}})
		if err != nil {
			return err
		}
		fmt.Printf("Search: %q\n", found.Symbol)
		_, err = client.Search(ctx, &stock.Search{Below: &below})
		fmt.Println("Search:", errors.As(err, &fault), fault.Reason)
		if err := client.Note(ctx, &stock.Note{Value: "a < b"}); err != nil {
			return err
		}
		fmt.Println("Note:", <-service.notes)
		one := int32(1)
		moved, err := client.Move(ctx, &stock.Move{From: &one, What: &stock.Thing{Id: 5, Made: "2026-11-27T12:00:00Z"}})
		if err != nil {
			return err
		}
		fmt.Println("Move:", *moved.Moved)
	}
	other := `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>` +
		`<Other xmlns="urn:example:stock"/></e:Body></e:Envelope>`
	reply, err := c.Call(ctx, &hhfr.Request{Body: hhfr.Body(other)})
	if err != nil {
		return err
	}
	fmt.Println("Other:", reply.Status == http.StatusInternalServerError, reply.Fault() != nil)
	n := c.Counters()
	fmt.Println("over a stream:", n.Sent.Messages > 20)
	return reply.Body.Close()
}
