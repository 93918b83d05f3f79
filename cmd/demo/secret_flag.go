package main

// A secretFlag is a flag whose value may hold a secret. An environment variable serves in its
// place; the flag wins, even if it is empty.
type secretFlag struct {
	name, variable string
	value          string
	given          bool
	from           string // "-key", say, or the variable
}

// Set implements flag.Value.
func (s *secretFlag) Set(value string) error {
	s.value, s.given = value, true
	return nil
}

// String is what package flag prints as the default.
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
