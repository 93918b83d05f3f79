package locker

// Text returns the script, for a [Client] that is not that of [NewClient].
func (s *Script) Text() string { return s.text }

// Hash returns the name by which EVALSHA calls that text once Redis knows it.
func (s *Script) Hash() string { return hash(s.text) }
