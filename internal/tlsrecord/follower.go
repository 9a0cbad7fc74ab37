package tlsrecord

// Follower follows one connection in TLS, and passes on what its ends wrote. M is what a caller
// notes of the packets that bring bytes. It is not safe for concurrent use.
type Follower[M any] struct {
	keys *KeyLog
	out  func(dir int, gap int64, b []byte, m M) error
	dirs [2]recordReader

	client    int // the direction of the client
	hello     clientHello
	server    serverHello
	greeted   bool // the client's hello was seen
	answered  bool // the server's hello was seen
	suite     suite
	master    []byte // of TLS 1.2; nil: not known so far
	ticket    []byte // in TLS 1.2: by which the session may be resumed
	ready     bool   // the keys are there
	decrypted bool   // something was decrypted

	held   []heldRecord[M] // that wait for their keys
	holds  int             // their length in bytes
	why    Obstacle        // why nothing more is read
	effort int             // bytes that may be decrypted in vain
}

type heldRecord[M any] struct {
	dir    int
	record []byte
	mark   M
}

const (
	// maxHeld bounds what waits for keys, in bytes of one connection: keys are logged about when
	// they are used.
	maxHeld = 256 << 10
	// searchEffort bounds what is decrypted in vain to find out which records are missing, in bytes
	// of one connection, for each byte of it, and for its beginning.
	searchEffort, searchStart = 32, 4 << 20
)

// Obstacle is why a connection, or the rest of it, is not decrypted.
type Obstacle uint8

const (
	// NoKeys: its secrets are not known.
	NoKeys Obstacle = iota + 1
	// Joined: it began before the capture, or its hellos are not in that.
	Joined
	// Unsupported: its version or its cipher suite is not one of those that are decrypted.
	Unsupported
	// Damaged: it is not TLS from somewhere on, or its secrets do not fit.
	Damaged
)

// NewFollower returns a follower of a connection, of which nothing is known. out is called with
// what was written, in the order in which it came: dir is the direction of the bytes, gap how many
// bytes are missing before them, -1 if that number is not known; m is that of the packet which made
// them whole. An error of out ends the reading.
func NewFollower[M any](keys *KeyLog, out func(dir int, gap int64, b []byte, m M) error) *Follower[M] {
	return &Follower[M]{keys: keys, out: out, effort: searchStart}
}

// Begins reports whether the first bytes of a direction are those of a TLS connection.
func Begins(b []byte) bool {
	switch {
	case len(b) < 2 || b[0] != typeHandshake || b[1] != 3:
		return false
	case len(b) > 5:
		return b[2] <= 4 && (b[5] == msgClientHello || b[5] == msgServerHello)
	}
	return true
}

// Continues reports whether bytes are those of a TLS connection that was there before.
func Continues(b []byte) bool {
	return len(b) > headerLen && plausible(b) && b[0] != typeHandshake
}

// Why returns why the connection is not decrypted, or not to its end; 0: it is.
func (c *Follower[M]) Why() Obstacle {
	switch {
	case c.why != 0:
		return c.why
	case len(c.held) > 0:
		return NoKeys
	case !c.decrypted && c.dirs[0].failed+c.dirs[1].failed > 0:
		return Damaged
	}
	return 0
}

// Decrypted reports whether something of it was decrypted.
func (c *Follower[M]) Decrypted() bool { return c.decrypted }

// Offered are the protocols that the client offers by ALPN, Protocol is the one that was chosen, as
// far as they are known.
func (c *Follower[M]) Offered() []string { return c.hello.protocols }

// Protocol returns the protocol that the ends agreed on by ALPN; empty: none, or it is not known.
func (c *Follower[M]) Protocol() string {
	if len(c.server.protocols) > 0 {
		return c.server.protocols[0]
	}
	return ""
}

// Write takes the next bytes of a direction, which nobody writes to afterwards. gap is how many are
// missing before them; -1: they are the first, and the beginning is missing.
func (c *Follower[M]) Write(dir int, gap int64, b []byte, m M) error {
	if c.why != 0 {
		return nil
	}
	d := &c.dirs[dir]
	if gap < 0 && Begins(b) {
		gap = 0
	}
	if gap != 0 && !c.ready {
		// Only keys tell records from anything else.
		c.stop(Joined)
		return nil
	}
	if gap != 0 {
		d.miss(gap)
	}
	c.effort = min(c.effort+searchEffort*len(b), searchEffort*searchStart)
	d.add(b)
	return c.split(dir, m)
}

// stop ends the reading.
func (c *Follower[M]) stop(why Obstacle) {
	c.why, c.held, c.holds = why, nil, 0
	for i := range c.dirs {
		c.dirs[i].buf = nil
	}
}

// split reads the records that are whole.
func (c *Follower[M]) split(dir int, m M) (err error) {
	d := &c.dirs[dir]
	for err == nil && c.why == 0 {
		if d.searching {
			var found bool
			if found, err = c.search(dir, m); !found {
				return err
			}
			continue
		}
		record, ok := d.next()
		switch {
		case !ok:
			c.stop(Damaged)
		case record == nil:
			return nil
		default:
			err = c.record(dir, record, m)
		}
	}
	return err
}

// search looks for the next record after missing bytes; false: more has to come.
func (c *Follower[M]) search(dir int, m M) (found bool, err error) {
	d := &c.dirs[dir]
	for at := 0; at+headerLen <= len(d.buf); at++ {
		if b := d.buf[at:]; b[0] != typeData || !plausible(b) {
			continue
		}
		n := headerLen + lengthOf(d.buf[at:])
		if at+n > len(d.buf) {
			d.pass(at)
			return false, nil
		}
		record := d.buf[at : at+n]
		content, kind, ok := d.open(record, int64(at), &c.effort)
		if c.effort < 0 {
			c.stop(Damaged)
			return false, nil
		}
		if ok {
			d.pass(at)
			d.found(n)
			return true, c.content(dir, content, kind, m)
		}
	}
	d.pass(max(0, len(d.buf)-headerLen+1))
	return false, nil
}

// record reads one record, after those that wait.
func (c *Follower[M]) record(dir int, record []byte, m M) error {
	if len(c.held) == 0 {
		if read, err := c.read(dir, record, m); read || err != nil || c.why != 0 {
			return err
		}
	}
	if record[0] != typeData && !c.dirs[dir].encrypted {
		// what is in the clear needs no keys, and those that wait may wait for it
		_, err := c.read(dir, record, m)
		return err
	}
	if c.holds += len(record); c.holds > maxHeld {
		c.stop(NoKeys)
		return nil
	}
	c.held = append(c.held, heldRecord[M]{dir, record, m})
	if !c.unlock() {
		return nil
	}
	held := c.held
	c.held, c.holds = nil, 0
	for _, h := range held {
		if c.why != 0 {
			break
		}
		if _, err := c.read(h.dir, h.record, h.mark); err != nil {
			return err
		}
	}
	return nil
}

// read reads one record; false: its keys are not known so far.
func (c *Follower[M]) read(dir int, record []byte, m M) (read bool, err error) {
	d := &c.dirs[dir]
	if !d.encrypted {
		switch record[0] {
		case typeHandshake:
			d.messages.write(record[headerLen:], func(kind byte, body []byte) { c.message(dir, kind, body) })
			return true, nil
		case typeChange:
			// in TLS 1.3 it means nothing
			d.encrypted = c.answered && c.server.version == version12
			return true, nil
		case typeAlert:
			return true, nil
		case typeData:
			if !c.answered { // sent before the server's hello, under keys that are not read
				d.lose(0)
				return true, nil
			}
		}
	}
	if !c.unlock() {
		return c.why != 0, nil
	}
	content, kind, ok := d.open(record, 0, &c.effort)
	if c.effort < 0 {
		c.stop(Damaged)
		return true, nil
	}
	if !ok {
		d.failed++
		d.lose(len(record) - headerLen)
		return true, nil
	}
	return true, c.content(dir, content, kind, m)
}

// content takes what a record contains.
func (c *Follower[M]) content(dir int, content []byte, kind byte, m M) error {
	d := &c.dirs[dir]
	c.decrypted = true
	switch kind {
	case typeHandshake:
		d.messages.write(content, func(kind byte, body []byte) { c.message(dir, kind, body) })
	case typeData:
		if len(content) == 0 {
			return nil
		}
		gap := d.gap
		d.gap = 0
		return c.out(dir, gap, content, m)
	default:
	}
	return nil
}

// message reads a handshake message.
func (c *Follower[M]) message(dir int, kind byte, body []byte) {
	d := &c.dirs[dir]
	switch kind {
	case msgClientHello:
		if c.ready { // under other keys from there on, of which the log says nothing
			c.stop(Unsupported)
			return
		}
		c.client, c.hello, c.greeted = dir, parseClientHello(body), true
	case msgServerHello:
		if c.answered {
			return
		}
		h := parseServerHello(body)
		if h.random == retryRandom {
			return
		}
		c.server, c.answered = h, true
		c.chosen()
	case msgEncryptedExtensions:
		f := helloFields(body)
		f.extensions(func(kind int, ext helloFields) {
			if kind == extALPN {
				c.server.protocols = protocols(ext)
			}
		})
	case msgNewSessionTicket:
		if c.server.version == version12 {
			f := helloFields(body)
			f.take(4) // lifetime
			c.ticket = append([]byte(nil), f.long()...)
			c.remember()
		}
	case msgKeyUpdate:
		d.update()
	}
}

// chosen notes what the server has chosen.
func (c *Follower[M]) chosen() {
	ok := false
	switch c.server.version {
	case version13:
		c.suite, ok = suites13[c.server.suite]
	case version12:
		c.suite, ok = suites12[c.server.suite]
	}
	switch {
	case !ok:
		c.stop(Unsupported)
	case !c.greeted:
		c.stop(Joined)
	}
}

// unlock reports whether the keys are known, and looks for them if they are not.
func (c *Follower[M]) unlock() bool {
	if c.ready || !c.answered {
		return c.ready
	}
	client, server := &c.dirs[c.client], &c.dirs[1-c.client]
	if c.server.version == version13 {
		random := c.hello.random
		out, back := c.keys.get(clientTraffic, random), c.keys.get(serverTraffic, random)
		if out == nil || back == nil {
			return false
		}
		client.keyed(&c.suite, c.keys.get(clientHandshake, random), out)
		server.keyed(&c.suite, c.keys.get(serverHandshake, random), back)
		c.ready = true
		return true
	}
	if c.master = c.masterSecret(); c.master == nil {
		return false
	}
	c.remember()
	both := c.suite.protect12(c.master, c.hello.random, c.server.random, c.server.encryptThenMAC)
	client.now, server.now = both[0], both[1]
	c.ready = true
	return true
}

// masterSecret is that of the connection, or of the session which it resumes.
func (c *Follower[M]) masterSecret() []byte {
	if master := c.keys.get(masterSecret, c.hello.random); master != nil {
		return master
	}
	if master := c.keys.resumed[string(c.hello.ticket)]; master != nil {
		return master
	}
	if len(c.server.session) > 0 && string(c.server.session) == string(c.hello.session) {
		return c.keys.resumed[string(c.server.session)]
	}
	return nil
}

// remember notes by what a later connection may resume the session.
func (c *Follower[M]) remember() {
	if c.master == nil {
		return
	}
	c.keys.remember(c.ticket, c.master)
	if len(c.hello.ticket) == 0 {
		c.keys.remember(c.server.session, c.master)
	}
}
