package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// eachAlone is the order of messages of which each has a stream of its own, without hello, as far
// as they are shorter than leastLong.
const (
	eachAlone = "each alone, below 32 KiB"
	leastLong = 32 << 10
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
		if err := row.add(ctx, messages); err != nil {
			return nil, err
		}
		rows = append(rows, row.mean(len(messages)))
	}
	alone, short := unlike{Order: eachAlone}, 0
	for _, m := range messages {
		if len(m) >= leastLong {
			continue
		}
		short++
		if err := alone.add(ctx, [][]byte{m}); err != nil {
			return nil, err
		}
	}
	return append(rows, alone.mean(short)), nil
}

// add sends messages on one stream, and counts their bytes.
func (u *unlike) add(ctx context.Context, messages [][]byte) error {
	took, err := sendAll(ctx, messages, "")
	if err != nil {
		return err
	}
	for _, s := range took {
		u.HHFR += float64(s.Frames + s.Shape)
	}
	stream, err := zstdStream(zstdC(19))(messages)
	u.ZstdC19 += float64(stream)
	return err
}

// mean is what was counted, for each of n messages.
func (u unlike) mean(n int) unlike {
	if u.ZstdC19 > 0 {
		u.Ratio = u.HHFR / u.ZstdC19
	}
	u.HHFR, u.ZstdC19 = u.HHFR/float64(max(n, 1)), u.ZstdC19/float64(max(n, 1))
	return u
}

// worstUnlike is the largest ratio of all orders on one lane.
func worstUnlike(r *results) (most float64, measured bool) {
	for _, row := range r.Unlike {
		if row.Order != eachAlone {
			most = max(most, row.Ratio)
		}
	}
	return most, most > 0
}

// alone is the ratio of messages that have a stream each.
func alone(r *results) (ratio float64, measured bool) {
	for _, row := range r.Unlike {
		if row.Order == eachAlone {
			ratio = row.Ratio
		}
	}
	return ratio, ratio > 0
}

func (r *results) writeUnlike(p *tablePrinter) {
	if len(r.Unlike) == 0 {
		return
	}
	p.printf("\nXML messages of the corpus, once each on one lane: bytes a message, all frames; and each on\n" +
		"a stream of its own, but for hello.\n\n")
	t := cells{{"order", "hhfr", "zstd stream, level 19", "ratio"}}
	for _, row := range r.Unlike {
		t = append(t, []string{row.Order, number(row.HHFR), number(row.ZstdC19), fmt.Sprintf("%.3f", row.Ratio)})
	}
	p.table(t)
}
