package memory

// Held returns how many entries are in memory, with those that expired.
func (s *Store) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}
