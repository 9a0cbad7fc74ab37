package service

import "log/slog"

// otherDescriptors are file descriptors that a server has beside those of connections: listeners,
// store, recording, resolver.
const otherDescriptors = 32

// CheckDescriptors warns if a server may have more connections than the system lets it have file
// descriptors. The soft limit is the hard one by then: Go raises it when a process starts.
func CheckDescriptors(logger *slog.Logger, conns int) {
	if limit, limited := descriptorLimit(); limited && uint64(conns+otherDescriptors) > limit {
		logger.Warn("file descriptors may run out; clients that come then wait", "limit", limit,
			"connections", conns, "raise", "LimitNOFILE= of the unit, or ulimit -Hn")
	}
}
