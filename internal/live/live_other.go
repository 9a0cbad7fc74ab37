//go:build !linux

package live

func open(string) (packetSource, uint32, error) { return nil, 0, ErrSystem }
