package main

import (
	"context"
	"fmt"
	"slices"
)

// octetsRow is one workload: bytes per message, means over all messages in order. Zero means not
// measured. HHFR includes framing and sync frames; HHFRShapes are the bytes of all shape frames of
// the stream, once. HHFRPlain is without stages, HHFRColumns with columns alone.
type octetsRow struct {
	Workload    string  `json:"workload"`
	Messages    int     `json:"messages"`
	Raw         float64 `json:"raw"`
	Ideal       float64 `json:"ideal"`
	Protobuf    float64 `json:"protobuf"`
	Gzip        float64 `json:"gzip_alone"`
	Deflate     float64 `json:"deflate_stream"`
	ZstdFastest float64 `json:"zstd_stream_go_fastest"`
	ZstdBest    float64 `json:"zstd_stream_go_best"`
	ZstdC3      float64 `json:"zstd_stream_c_3"`
	ZstdC19     float64 `json:"zstd_stream_c_19"`
	HHFRPlain   float64 `json:"hhfr_without_stages"`
	HHFRColumns float64 `json:"hhfr_columns"`
	HHFR        float64 `json:"hhfr"`
	HHFRShapes  int64   `json:"hhfr_shape_octets"`
	Ratio       float64 `json:"hhfr_to_best_zstd_stream,omitempty"`
	PlainMost   float64 `json:"hhfr_to_plain_most"` // as in transit
}

func measureBytes(ctx context.Context, in *inputs) (rows []octetsRow, err error) {
	for _, f := range folders {
		messages := in.workloads[f.name]
		row := octetsRow{Workload: f.name, Messages: len(messages), Ideal: f.ideal, Protobuf: f.protobuf,
			Raw: float64(total(messages)) / float64(len(messages))}
		for _, rival := range []struct {
			to  *float64
			run func([][]byte) (int, error)
		}{
			{&row.Gzip, gzipAlone},
			{&row.Deflate, deflateStream},
			{&row.ZstdFastest, zstdStream(zstdGoFastest)},
			{&row.ZstdBest, zstdStream(zstdGoBest)},
			{&row.ZstdC3, zstdStream(zstdC(3))},
			{&row.ZstdC19, zstdStream(zstdC(19))},
		} {
			n, err := rival.run(messages)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			*rival.to = float64(n) / float64(len(messages))
		}
		for _, way := range []struct {
			to      *float64
			without string
		}{{&row.HHFRPlain, "columns,memory,zstd"}, {&row.HHFRColumns, "memory,zstd"}, {&row.HHFR, ""}} {
			took, err := sendAll(ctx, messages, way.without)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			*way.to, row.HHFRShapes = mean(took)
			row.PlainMost = plainMost(messages, took)
		}
		if row.ZstdC19 > 0 { // without it, the best of the others is not the best
			row.Ratio = row.HHFR / row.bestZstd()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// bestZstd is the smallest of the zstd streams that were measured.
func (r *octetsRow) bestZstd() float64 {
	streams := slices.DeleteFunc([]float64{r.ZstdFastest, r.ZstdBest, r.ZstdC3, r.ZstdC19}, func(n float64) bool {
		return n == 0
	})
	return slices.Min(streams)
}

// mean is what the messages of a stream take without their shapes, each in the mean, and what all
// shapes take.
func mean(took []sent) (frames float64, shapes int64) {
	for _, s := range took {
		frames, shapes = frames+float64(s.Frames), shapes+s.Shape
	}
	return frames / float64(len(took)), shapes
}

func total(messages [][]byte) (n int) {
	for _, m := range messages {
		n += len(m)
	}
	return n
}
