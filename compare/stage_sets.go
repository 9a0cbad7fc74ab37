package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// stageSets are the sets of stages that are compared.
var stageSets = []struct {
	name    string
	without string
}{
	{"none", "columns,memory,zstd"},
	{"columns", "memory,zstd"},
	{"columns, memory", "zstd"},
	{"zstd", "columns,memory,plain"},
	{"columns, zstd", "memory,plain"},
	{"columns, memory, zstd", "plain"},
	{"all", ""},
}

// stageSetsRow is the size of messages with each of the stage sets: mean bytes per message,
// including framing and sync frames, without shapes.
type stageSetsRow struct {
	Messages string    `json:"messages"`
	Count    int       `json:"count"`
	Raw      float64   `json:"raw"`
	Octets   []float64 `json:"octets"` // in the order of stage_sets
}

// records are documents of the corpus that are long arrays, each in a stream of its own.
var records = []string{"publish100.xml", "publish911.xml"}

// corpusName is the name of the row of the whole corpus.
const corpusName = "corpus"

func measureStageSets(ctx context.Context, in *inputs) (rows []stageSetsRow, err error) {
	add := func(name string, messages [][]byte) error {
		row := stageSetsRow{Messages: name, Count: len(messages),
			Raw: float64(total(messages)) / float64(len(messages))}
		for _, set := range stageSets {
			took, err := sendAll(ctx, messages, set.without)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, set.name, err)
			}
			octets, _ := mean(took)
			row.Octets = append(row.Octets, octets)
		}
		rows = append(rows, row)
		return nil
	}
	for _, f := range folders {
		if err := add(f.name, in.workloads[f.name]); err != nil {
			return nil, err
		}
	}
	if in.corpus == "" {
		return rows, nil
	}
	messages, err := corpusMessages(in.corpus)
	if err != nil {
		return nil, err
	}
	if err := add(corpusName, messages); err != nil {
		return nil, err
	}
	for _, name := range records {
		m, err := os.ReadFile(filepath.Join(in.corpus, "soap11", "jtlm", name))
		if err != nil {
			return nil, err
		}
		if err := add(name, [][]byte{m}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// octetsBy is the size of messages with a stage set.
func octetsBy(messages, set string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		for _, row := range r.Stages {
			for i := range row.Octets {
				if row.Messages == messages && stageSets[i].name == set {
					return row.Octets[i], true
				}
			}
		}
		return 0, false
	}
}

func (r *results) writeStageSets(p *tablePrinter) {
	if len(r.Stages) == 0 {
		return
	}
	p.printf("\nBytes per message, mean, by the stages of the stream: framing and sync in it, shapes apart.\n\n")
	head := []string{"messages", "count", "raw"}
	for _, set := range stageSets {
		head = append(head, set.name)
	}
	t := cells{head}
	for _, row := range r.Stages {
		line := []string{row.Messages, fmt.Sprint(row.Count), number(row.Raw)}
		for _, octets := range row.Octets {
			line = append(line, number(octets))
		}
		t = append(t, line)
	}
	p.table(t)
}
