package main

import "fmt"

// colours of the levels of doctor: red, yellow, green.
var colours = map[string]string{wrong: "1;31", note: "33", fine: "32"}

// painted returns the name of a level, as wide as the longest, in its colour if stdout is a terminal that has colours.
func (s streams) painted(level string) string {
	text := fmt.Sprintf("%-6s", level)
	if !s.colour {
		return text
	}
	return "\x1b[" + colours[level] + "m" + text + "\x1b[0m"
}

// hasColours reports whether stdout is a terminal that has colours, and the user wants them: see no-color.org.
func hasColours(stdout any, getenv func(string) string) bool {
	return isTerminal(stdout) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
