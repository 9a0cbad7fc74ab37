package pull

// Content reads the element that began last to its end, and is its text. An element in it is an
// error; comments and instructions count for nothing. It is not for parsers that are Whole.
func (p *Parser) Content() ([]byte, error) {
	step, err := p.Next()
	switch {
	case err != nil:
		return nil, err
	case step == EndTag:
		return nil, nil
	case step == StartTag:
		return nil, p.inText()
	}
	first := p.text
	if len(p.resolved) > 0 { // where it may be, which the next step overwrites
		p.buffer = append(p.buffer[:0], first...)
		first = p.buffer
	}
	if step, err = p.Next(); err == nil && step == EndTag {
		return first, nil
	}
	return p.pieces(first, step, err)
}

// pieces is Content of text that comes in several steps.
func (p *Parser) pieces(first []byte, step Found, err error) ([]byte, error) {
	for p.buffer = append(p.buffer[:0], first...); err == nil; step, err = p.Next() {
		switch step {
		case EndTag:
			return p.buffer, nil
		case StartTag:
			return nil, p.inText()
		case Chars:
			p.buffer = append(p.buffer, p.text...)
		}
	}
	return nil, err
}

func (p *Parser) inText() error {
	p.err = p.fail(p.at, "element %.40q where text is expected", p.local)
	return p.err
}

// Skip passes over the rest of the element that began last.
func (p *Parser) Skip() error {
	for until := len(p.open) - 1; len(p.open) > until; {
		if _, err := p.Next(); err != nil {
			return err
		}
	}
	return nil
}
