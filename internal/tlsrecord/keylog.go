// Package tlsrecord decrypts captured TLS connections, versions 1.2 and 1.3, by the secrets that
// one of their ends has logged: [KeyLog] has the secrets, [Follower] follows one connection. It
// takes no part in a connection, and proves nothing about who was on it.
package tlsrecord

import (
	"bytes"
	"encoding/hex"
	"io"
)

// maxSecrets bounds the secrets of a [KeyLog]: those of 100,000 connections in TLS 1.3.
const maxSecrets = 1 << 19

// KeyLog has the secrets of connections, from key logs of the NSS format (RFC 9850), which is also
// that of the secrets in pcapng files. The zero value is empty. It is not safe for concurrent use.
type KeyLog struct {
	// Dropped counts secrets that were forgotten since more came than are stored.
	Dropped int

	secrets map[secretName][]byte
	order   []secretName // the earliest first, from next on
	next    int
	resumed map[string][]byte // master secrets of TLS 1.2, by what resumes their sessions

	more io.Reader // nil: there is no more
	rest []byte    // of more: a line that is not whole
	err  error
}

type secretName struct {
	label  label
	random [32]byte
}

// label is what a secret is for.
type label uint8

const (
	masterSecret label = iota + 1
	clientHandshake
	serverHandshake
	clientTraffic
	serverTraffic
)

var labels = map[string]label{
	"CLIENT_RANDOM":                   masterSecret,
	"CLIENT_HANDSHAKE_TRAFFIC_SECRET": clientHandshake,
	"SERVER_HANDSHAKE_TRAFFIC_SECRET": serverHandshake,
	"CLIENT_TRAFFIC_SECRET_0":         clientTraffic,
	"SERVER_TRAFFIC_SECRET_0":         serverTraffic,
}

// Add takes the secrets of a log, and returns how many there were. Lines that are none of their
// format are passed over, as are those for purposes that do not matter here.
func (k *KeyLog) Add(log []byte) (secrets int) {
	for line := range bytes.Lines(log) {
		if k.line(line) {
			secrets++
		}
	}
	return secrets
}

// Follow has secrets that are missing searched for in r, which may grow: it is read up to its end
// whenever one is missing.
func (k *KeyLog) Follow(r io.Reader) { k.more = r }

// Len returns the number of secrets.
func (k *KeyLog) Len() int { return len(k.secrets) }

// Err returns why the reader that is followed could not be read; nil: it could.
func (k *KeyLog) Err() error { return k.err }

// Read reads what there is more of the reader that is followed.
func (k *KeyLog) Read() {
	if k.more == nil || k.err != nil {
		return
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := k.more.Read(buf)
		k.rest = append(k.rest, buf[:n]...)
		end := bytes.LastIndexByte(k.rest, '\n') + 1
		k.Add(k.rest[:end])
		if k.rest = append(k.rest[:0], k.rest[end:]...); len(k.rest) > len(buf) {
			k.rest = k.rest[:0] // no secret is that long
		}
		switch {
		case err == io.EOF, err == nil && n == 0:
			k.line(k.rest) // which may be the last one
			return
		case err != nil:
			k.err = err
			return
		}
	}
}

// line takes one secret, and reports whether it is one.
func (k *KeyLog) line(line []byte) bool {
	parts := bytes.Fields(line)
	if len(parts) != 3 || len(parts[1]) != 64 || len(parts[2]) > 256 {
		return false
	}
	name := secretName{label: labels[string(parts[0])]}
	secret := make([]byte, hex.DecodedLen(len(parts[2])))
	if _, err := hex.Decode(name.random[:], parts[1]); err != nil {
		return false
	}
	if _, err := hex.Decode(secret, parts[2]); err != nil || len(secret) < 32 {
		return false
	}
	if name.label != 0 {
		k.put(name, secret)
	}
	return true
}

func (k *KeyLog) put(name secretName, secret []byte) {
	if k.secrets == nil {
		k.secrets = map[secretName][]byte{}
	}
	if _, known := k.secrets[name]; !known {
		if len(k.order) < maxSecrets {
			k.order = append(k.order, name)
		} else {
			delete(k.secrets, k.order[k.next])
			k.order[k.next], k.next = name, (k.next+1)%maxSecrets
			k.Dropped++
		}
	}
	k.secrets[name] = secret
}

// get returns a secret; nil: it is not known, so far.
func (k *KeyLog) get(of label, random [32]byte) []byte {
	name := secretName{of, random}
	if k.secrets[name] == nil {
		k.Read()
	}
	return k.secrets[name]
}

// maxResumed bounds the sessions of TLS 1.2 that later connections may resume.
const maxResumed = 1 << 14

// remember notes the master secret of a session, which a later connection may resume by its id or
// by what the server sent for that: not all logs have the secret once more.
func (k *KeyLog) remember(session, master []byte) {
	if len(session) == 0 {
		return
	}
	if len(k.resumed) >= maxResumed {
		clear(k.resumed)
	}
	if k.resumed == nil {
		k.resumed = map[string][]byte{}
	}
	k.resumed[string(session)] = master
}
