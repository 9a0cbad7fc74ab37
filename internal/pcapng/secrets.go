package pcapng

import "github.com/hhfr/hhfr/internal/pcap"

// Secrets returns what takes the keys of connections in TLS, as [crypto/tls.Config.KeyLogWriter]
// has them, into the recording: for captures that others make of the same connections. A recording
// in several files has them in the file that is written at the time.
func (r *Recorder) Secrets() SecretsWriter { return SecretsWriter{r} }

// SecretsWriter writes keys into a recording. It is safe for concurrent use, and never fails: see
// [Recorder.Err].
type SecretsWriter struct{ rec *Recorder }

// Write takes whole lines of a key log.
func (w SecretsWriter) Write(log []byte) (int, error) {
	r := w.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush(pcap.AppendSecrets(r.buf[:0], log))
	return len(log), nil
}
