package main

// A secretFlag is a flag whose value may hold a secret. An environment variable can replace it; the flag
// wins, even if it is empty.
type secretFlag struct {
	name, variable string
	value          string
	given          bool
	from           string // the flag, such as "-key", or the variable
}

// Set implements flag.Value.
func (s *secretFlag) Set(value string) error {
	s.value, s.given = value, true
	return nil
}

// String returns the default that package flag prints.
func (s *secretFlag) String() string { return "" }

// orFrom takes the value from the environment if the flag was not given.
func (s *secretFlag) orFrom(getenv func(string) string) {
	s.from = "-" + s.name
	if !s.given {
		if s.value = getenv(s.variable); s.value != "" {
			s.from = s.variable
		}
	}
}
