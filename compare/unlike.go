package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// unlike is one order of the XML messages of the corpus, hardly two of a kind, once each on one
// lane: bytes a message, over hhfr with all frames, and in one zstd stream of level 19.
type unlike struct {
	Order   string  `json:"order"`
	HHFR    float64 `json:"hhfr"`
	ZstdC19 float64 `json:"zstd_stream_c_19"`
	Ratio   float64 `json:"hhfr_to_zstd,omitempty"`
}

func measureUnlike(ctx context.Context, in *inputs) (rows []unlike, err error) {
	messages, err := corpusMessages(in.corpus, ".xml")
	if err != nil {
		return nil, err
	}
	for order := range uint64(4) {
		row := unlike{Order: "by path"}
		if order > 0 {
			row.Order = fmt.Sprintf("shuffled, seed %d", order)
			rand.New(rand.NewPCG(order, seed)).Shuffle(len(messages), func(i, k int) {
				messages[i], messages[k] = messages[k], messages[i]
			})
		}
		took, err := sendAll(ctx, messages, "")
		if err != nil {
			return nil, err
		}
		var octets int64
		for _, s := range took {
			octets += s.Frames + s.Shape
		}
		stream, err := zstdStream(zstdC(19))(messages)
		if err != nil {
			return nil, err
		}
		row.HHFR = float64(octets) / float64(len(messages))
		if row.ZstdC19 = float64(stream) / float64(len(messages)); stream > 0 {
			row.Ratio = row.HHFR / row.ZstdC19
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// worstUnlike is the largest ratio of all orders.
func worstUnlike(r *results) (most float64, measured bool) {
	for _, row := range r.Unlike {
		most = max(most, row.Ratio)
	}
	return most, most > 0
}

func (r *results) writeUnlike(p *tablePrinter) {
	if len(r.Unlike) == 0 {
		return
	}
	p.printf("\nXML messages of the corpus, once each on one lane: bytes a message, all frames.\n\n")
	t := cells{{"order", "hhfr", "zstd stream, level 19", "ratio"}}
	for _, row := range r.Unlike {
		t = append(t, []string{row.Order, number(row.HHFR), number(row.ZstdC19), fmt.Sprintf("%.3f", row.Ratio)})
	}
	p.table(t)
}
