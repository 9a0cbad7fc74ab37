package sdnotify

// Listens reports whether there is a service manager.
func (n *Notifier) Listens() bool { return n.socket != "" }
