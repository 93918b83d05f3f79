package middleware_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The code in the pages is compiled: all of it stands in a program, in an Example or in another
// test, to the letter.
func TestReadmeCodeIsCompiled(t *testing.T) {
	t.Parallel()
	var compiled strings.Builder
	for _, text := range files(t, ".go") {
		compiled.WriteString(text)
	}
	all := compiled.String()
	found := 0
	for path, text := range files(t, ".md") {
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
			found++
			if !strings.Contains(all, block[1]) {
				t.Errorf("this stands in %s only:\n%s", path, block[1])
			}
		}
	}
	if found < 7 {
		t.Fatalf("found %d blocks of Go", found)
	}
}

// Every relative link in a page leads to a file, and its anchor to a heading of it, or to a place that has a name.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := files(t, ".md")
	if len(linksOf(pages["README.md"])) < 20 {
		t.Fatalf("README.md has these links only: %q", linksOf(pages["README.md"]))
	}
	for path := range pages {
		for _, broken := range brokenLinks(pages, path) {
			t.Errorf("%s links to %s, which is not there", path, broken)
		}
	}
}

// testNamed is how a page names a test of its own package, or of another.
var testNamed = regexp.MustCompile("`(?:[a-z]+\\.)?((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")

// The tests that a page names are there, in some package.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	tests := make(map[string]bool)
	for _, text := range files(t, "_test.go") {
		for _, name := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllStringSubmatch(text, -1) {
			tests[name[1]] = true
		}
	}
	named := 0
	for path, text := range files(t, ".md") {
		for _, name := range testNamed.FindAllStringSubmatch(text, -1) {
			named++
			if !tests[name[1]] {
				t.Errorf("%s names %s, which is not there", path, name[1])
			}
		}
	}
	if named < 50 {
		t.Errorf("the pages name %d tests", named)
	}
}

var (
	fenced      = regexp.MustCompile("(?ms)^```.*?^```")
	inCode      = regexp.MustCompile("`[^`\n]*`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	named       = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N}_-]`)
)

// linksOf returns what a page links to within the repository.
func linksOf(page string) (found []string) {
	page = inCode.ReplaceAllString(fenced.ReplaceAllString(page, ""), "``")
	for _, l := range link.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(l[1], "://") {
			found = append(found, l[1])
		}
	}
	return found
}

// brokenLinks returns those links of the page at path that lead nowhere. They are
// relative to the page's directory, and none may leave the repository.
func brokenLinks(pages map[string]string, path string) (broken []string) {
	for _, l := range linksOf(pages[path]) {
		target, anchor, _ := strings.Cut(l, "#")
		file := path
		if target != "" {
			file = filepath.Join(filepath.Dir(path), target)
		}
		_, err := os.Stat(filepath.Join("..", file))
		if err != nil || !filepath.IsLocal(file) || anchor != "" && !anchors(pages[file])[anchor] {
			broken = append(broken, l)
		}
	}
	return broken
}

// anchors returns what the headings of a page are called in links, by GitHub's rules: in
// lower case, without punctuation, with - for each space, and numbered if repeated. A place may
// also have a name of its own.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")
		name = punctuation.ReplaceAllString(name, "")
		unique := name
		for i := 1; found[unique]; i++ {
			unique = name + "-" + strconv.Itoa(i)
		}
		found[unique] = true
	}
	for _, a := range named.FindAllStringSubmatch(inCode.ReplaceAllString(page, ""), -1) {
		found[a[1]] = true
	}
	return found
}

// No two places of a page have the same name, and no name is that of a heading: a link would lead to the first.
func TestNamesOfPlacesAreUnique(t *testing.T) {
	t.Parallel()
	for path, page := range files(t, ".md") {
		found := anchors(named.ReplaceAllString(page, "")) // those of headings
		for _, a := range named.FindAllStringSubmatch(page, -1) {
			if found[a[1]] {
				t.Errorf("%s has two places called %s", path, a[1])
			}
			found[a[1]] = true
		}
	}
}

// files returns the text of all files of the repository, in any module, whose names end
// like that, by their paths.
func files(t *testing.T, end string) map[string]string {
	t.Helper()
	found := map[string]string{}
	all, err := texts()
	for path, text := range all {
		if strings.HasSuffix(path, end) {
			found[path] = text
		}
	}
	if err != nil || len(found) < 5 {
		t.Fatalf("found %q: %v", slices.Sorted(maps.Keys(found)), err)
	}
	return found
}

// texts are those of all pages and programs.
var texts = sync.OnceValues(func() (map[string]string, error) {
	found := map[string]string{}
	repository := os.DirFS("..")
	return found, fs.WalkDir(repository, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == ".git" || path == "bin") {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext == ".go" || ext == ".md" {
			text, err := fs.ReadFile(repository, path)
			found[path] = string(text)
			return err
		}
		return nil
	})
})

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
