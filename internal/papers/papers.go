// Package papers has what the papers measured, to compare with. Each call makes a copy of it;
// none stays.
package papers

import (
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
)

//go:embed sessions.csv
var sessions string

//go:embed phones.csv
var phones string

// PaperSession is the time of one session on a Treo 600 at 14.4 kbit/s: tables 2 to 5 of "HHFR:
// optimizing messaging with a context store".
type PaperSession struct {
	Service string // concat: strings are concatenated; sum: floats are added
	HHFR    bool   // with HHFR; else with SOAP on a connection for each message
	Size    int    // items in a message
	N       int    // messages
	Millis  float64
}

// Sessions lists all of them, by table, size and number of messages.
func Sessions() (list []PaperSession) {
	for _, r := range rows(sessions) {
		list = append(list, PaperSession{
			Service: r[0], HHFR: r[1] == "hhfr", Size: int(number(r[2])), N: int(number(r[3])), Millis: number(r[4]),
		})
	}
	return list
}

// PhoneLoad is a row of tables 5.1 to 5.6 of "Performance of Web services on mobile phones": many
// clients for two minutes, the mean of three runs.
type PhoneLoad struct {
	Table, Platform string
	Clients         int
	Responses       int // successful or not
	Successful      int
	ErrorPercent    float64
	PerSecond       float64 // successful ones
	// from the last byte that was sent to the first one that came
	ExecMillis float64
	// from the first byte of the reply to its last
	ServerMillis float64
}

// PhoneLoads lists all of them, by table and clients.
func PhoneLoads() (list []PhoneLoad) {
	for _, r := range rows(phones) {
		list = append(list, PhoneLoad{
			Table: r[0], Platform: r[1], Clients: int(number(r[2])), Responses: int(number(r[3])),
			Successful: int(number(r[4])), ErrorPercent: number(r[5]), PerSecond: number(r[6]),
			ExecMillis: number(r[7]), ServerMillis: number(r[8]),
		})
	}
	return list
}

// What is embedded is well-formed: the test reads all of it.
func rows(text string) [][]string {
	list, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		panic(err)
	}
	return list[1:]
}

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return x
}
