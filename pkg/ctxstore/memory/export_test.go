package memory

// Held returns how many entries are in memory, with those that expired.
func (s *Store) Held() int {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	return len(s.storage.byURI)
}
