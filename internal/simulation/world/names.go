package world

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// These replacements make commands readable.
var tokens = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\{([\w-]{5})[\w-]{11}(?:[\w-]{6})?\}`), "{$1…}"},
	// This is a token, and its owner. All tokens of one key begin in the same way.
	{regexp.MustCompile(`\b[A-Za-z0-9]{4}([A-Za-z0-9]{5})[A-Za-z0-9]{7} \d+ \S+/\d+`), "$1…"},
	{regexp.MustCompile(`\b[A-Za-z0-9]{4}([A-Za-z0-9]{5})[A-Za-z0-9]{7}\b`), "$1…"},
}

// scriptNames has a name for each script by its SHA-1.
var scriptNames sync.Map

// learn notes a script that was sent as text.
func learn(text string) {
	sum := sha1.Sum([]byte(text))
	scriptNames.LoadOrStore(hex.EncodeToString(sum[:]), nameOf(text))
}

// comment finds the first line of a script, which says what it does.
var comment = regexp.MustCompile(`(?m)^-- (.*)\n(?:-- .*\n)*-- KEYS`)

func nameOf(text string) string {
	if found := comment.FindStringSubmatch(text); found != nil {
		return "«" + strings.TrimSuffix(strings.FieldsFunc(found[1], func(r rune) bool { return strings.ContainsRune(",:.(", r) })[0], " ") + "»"
	}
	return "«a script»"
}

func scriptName(args []string) string {
	if len(args) > 1 && len(args[1]) == 40 {
		if name, ok := scriptNames.Load(strings.ToLower(args[1])); ok {
			return name.(string)
		}
		return args[1][:5]
	}
	if len(args) > 1 {
		return nameOf(args[1])
	}
	return ""
}
