package way

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/way/trace"
)

// A step is a line of a map: a function, or "the handler" of the application, and how far it is indented.
type step struct {
	indent         int
	function, file string
}

// A line of a map is a comment that is indented by a tab: a name, the file, and what it does. A line without a
// file goes on with what the one above it does.
var line = regexp.MustCompile(`^//\t( *)(?:(the handler)|(\S+) +(\S+\.go))\b`)

// readMap returns the maps in a file. The files that they name are beside it, or below Latchkey's root.
func readMap(root, file string) (steps []step, _ error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(string(text)) {
		found := line.FindStringSubmatch(l)
		if found == nil {
			continue
		}
		s := step{indent: len(found[1]), function: found[2] + found[3], file: found[4]}
		if s.file != "" && !strings.Contains(s.file, "/") {
			s.file = path.Join(path.Dir(file), s.file)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// follow returns why a trace does not go the way of a map, or nil. What other goroutines do meanwhile, such as
// timers, is not on the way: how much of it is in the trace depends on the machine's speed.
func follow(steps []step, calls []trace.Call) error {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c trace.Call) bool { return c.Aside })
	type at struct{ indent, call int }
	var within []at // the steps around the present one
	next := 0       // the first call that may be the next step
	for _, s := range steps {
		for len(within) > 0 && within[len(within)-1].indent >= s.indent {
			within = within[:len(within)-1]
		}
		end := len(calls)
		if len(within) > 0 {
			end = endOf(calls, within[len(within)-1].call)
		}
		i := next
		for i < end && (calls[i].Function != s.function || calls[i].File != s.file) {
			i++
		}
		if i == end {
			return fmt.Errorf("%s (%s) is not called there", s.function, s.file)
		}
		within, next = append(within, at{s.indent, i}), i+1
	}
	return nil
}

// endOf returns the index of the first call after call i that was not made in call i.
func endOf(calls []trace.Call, i int) int {
	for j := i + 1; j < len(calls); j++ {
		if calls[j].Depth <= calls[i].Depth {
			return j
		}
	}
	return len(calls)
}
