package main

import (
	"context"
	"fmt"
	"slices"
)

// transit is the size of learned shapes on the wire, over all messages of the corpus in one stream.
// A message counts if a shape was learned from it, or widened by it. Ratios are shape frames to the
// gzip size of that message. PlainMost is the largest ratio over all messages of the stream's bytes
// for one message (shape, data and sync frames) to the message under a small HTTP head. AloneMost
// and AlonePlainMost are the same if each message is the first of a stream of its own, so that its
// shape has no base.
type transit struct {
	Messages   int     `json:"messages"`
	Learned    int     `json:"learned_from"`
	ShapeTotal int64   `json:"shape_octets"`
	GzipTotal  int64   `json:"gzip_octets"`
	Total      float64 `json:"ratio_total"`
	Median     float64 `json:"ratio_median"`
	Most       float64 `json:"ratio_most"`
	PlainMost  float64 `json:"to_plain_most"`

	AloneMost      float64 `json:"alone_ratio_most"`
	AlonePlainMost float64 `json:"alone_to_plain_most"`
}

func measureShapes(ctx context.Context, in *inputs) (*transit, error) {
	messages, err := corpusMessages(in.corpus)
	if err != nil {
		return nil, err
	}
	took, err := sendAll(ctx, messages, "plain")
	if err != nil {
		return nil, err
	}
	t := &transit{Messages: len(messages)}
	var ratios []float64
	for _, s := range took {
		if s.Learned == 0 && s.Widened == 0 {
			continue
		}
		t.Learned++
		t.ShapeTotal, t.GzipTotal = t.ShapeTotal+s.Shape, t.GzipTotal+s.Gzip
		ratios = append(ratios, float64(s.Shape)/float64(s.Gzip))
	}
	if len(ratios) == 0 {
		return nil, fmt.Errorf("no shape learned from %d messages", len(messages))
	}
	t.Total, t.Median, t.Most = float64(t.ShapeTotal)/float64(t.GzipTotal), median(ratios), slices.Max(ratios)
	t.PlainMost = plainMost(messages, took)
	return t, t.measureAlone(ctx, messages)
}

// measureAlone sends each message over a stream of its own.
func (t *transit) measureAlone(ctx context.Context, messages [][]byte) error {
	for i := range messages {
		m := messages[i : i+1]
		took, err := sendAll(ctx, m, "plain")
		if err != nil {
			return fmt.Errorf("message %d alone: %w", i+1, err)
		}
		t.AloneMost = max(t.AloneMost, float64(took[0].Shape)/float64(took[0].Gzip))
		t.AlonePlainMost = max(t.AlonePlainMost, plainMost(m, took))
	}
	return nil
}

// plainMost is the largest ratio of the stream's bytes for one of the messages to that message
// under a small HTTP head.
func plainMost(messages [][]byte, took []sent) (most float64) {
	for i, m := range messages {
		most = max(most, float64(took[i].Frames+took[i].Shape)/float64(len(plainHead(len(m)))+len(m)))
	}
	return most
}

// plainHead is about the smallest HTTP head of a SOAP request of n bytes.
func plainHead(n int) string {
	return fmt.Sprintf("POST /s HTTP/1.1\r\nHost: example.org\r\nContent-Type: text/xml\r\nSOAPAction: \"\"\r\n"+
		"Content-Length: %d\r\n\r\n", n)
}

// median of a list that is not empty.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[n/2] + sorted[(n-1)/2]) / 2
}
