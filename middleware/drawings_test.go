package middleware_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A reader who cannot see a drawing learns what it shows from its title, its description and the page. In dark mode
// the drawing is dark. Its text can be read at the width of a page.
func TestDrawingsCanBeRead(t *testing.T) {
	t.Parallel()
	drawings, _ := filepath.Glob("*.svg")
	if len(drawings) < 2 {
		t.Fatalf("found %q", drawings)
	}
	for _, name := range drawings {
		drawing := read(t, name)
		for _, part := range []string{"<title", "<desc", "@media (prefers-color-scheme:dark)", `viewBox="0 0 800 `} {
			if !strings.Contains(drawing, part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
		for _, size := range regexp.MustCompile(`(\d+)px`).FindAllStringSubmatch(drawing, -1) {
			if px, _ := strconv.Atoi(size[1]); px < 12 {
				t.Errorf("%s has text of %d pixels", name, px)
			}
		}
		if info, err := os.Stat(name); err != nil || info.Size() > 12<<10 {
			t.Errorf("%s has %d bytes, more than 12 KB", name, len(drawing))
		}
		if !regexp.MustCompile(`!\[[^\]]{80,}\]\(` + name + `\)`).MatchString(read(t, "README.md")) {
			t.Errorf("the guide does not show %s with a text in its place", name)
		}
	}
}
