package locker

// Text returns what Redis runs.
func (s *Script) Text() string { return s.text }

// Hash returns the name by which EVALSHA calls the script once Redis knows it.
func (s *Script) Hash() string { return s.sha }
