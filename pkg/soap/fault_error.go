package soap

// Error implements error.
func (f *Fault) Error() string { return "fault: " + f.Reason }
