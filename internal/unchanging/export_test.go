package unchanging

// Settle waits until the entries that are being made are there.
func (r *Referrer) Settle() { r.wait.Wait() }
