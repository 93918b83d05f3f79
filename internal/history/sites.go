package history

import (
	"slices"
	"sync"
)

// Sites are the processes that visitors send their requests to. The zero value has none.
type Sites struct {
	mu   sync.Mutex // guards urls
	urls []string
}

// Add makes visitors send requests to a process, http://host:port.
func (s *Sites) Add(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = append(s.urls, url)
}

// Remove stops sending requests to a process.
func (s *Sites) Remove(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = slices.DeleteFunc(s.urls, func(u string) bool { return u == url })
}

// Any returns one of the processes; random is in [0, 1).
func (s *Sites) Any(random float64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urls[int(random*float64(len(s.urls)))]
}
