package proxy

import "sync"

// useCount counts the users of what a reload may retire: it is released when it is retired and
// nobody uses it any more.
type useCount struct {
	release func() // called once

	mu      sync.Mutex
	users   int
	retired bool
}

// enter adds a user; false: it is retired, and takes no more.
func (u *useCount) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.retired {
		u.users++
	}
	return !u.retired
}

// leave removes a user.
func (u *useCount) leave() {
	u.mu.Lock()
	u.users--
	over := u.retired && u.users == 0
	u.mu.Unlock()
	if over {
		u.release()
	}
}

// retire lets no more users in.
func (u *useCount) retire() {
	u.mu.Lock()
	over := !u.retired && u.users == 0
	u.retired = true
	u.mu.Unlock()
	if over {
		u.release()
	}
}
