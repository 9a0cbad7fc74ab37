package pcapng

import "github.com/gopacket/gopacket/pcapgo"

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
	if r.err != nil {
		return len(log), nil
	}
	if err := r.ng.WriteDecryptionSecretsBlock(pcapgo.DSB_SECRETS_TYPE_TLS, log); err != nil {
		r.fail(err)
		return len(log), nil
	}
	r.flush()
	return len(log), nil
}
