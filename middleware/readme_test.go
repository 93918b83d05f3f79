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
	"testing"
)

// The code in the pages is compiled: all of it stands in a program, in an Example or in another
// test, to the letter.
func TestReadmeCodeIsCompiled(t *testing.T) {
	t.Parallel()
	compiled := ""
	for _, text := range files(t, ".go") {
		compiled += text
	}
	found := 0
	for path, text := range files(t, ".md") {
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
			found++
			if !strings.Contains(compiled, block[1]) {
				t.Errorf("this stands in %s only:\n%s", path, block[1])
			}
		}
	}
	if found < 7 {
		t.Fatalf("found %d blocks of Go", found)
	}
}

// Every relative link in a page leads to a file, and its anchor to a heading of it.
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

// And if one were broken, that would show.
func TestABrokenLinkIsNoticed(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"go.mod.md", "#nowhere", "store/REDIS.md#nowhere", "../go.mod", "go.mod#anchor", "store/"} {
		pages := files(t, ".md")
		pages["README.md"] += "\n[a page](" + link + ") and ![a picture](" + link + ")\n"
		want := 2
		if link == "store/" {
			want = 0 // it is there
		}
		if got := brokenLinks(pages, "README.md"); len(got) != want {
			t.Errorf("of the links to %s these are broken: %q", link, got)
		}
	}
	pages := map[string]string{"README.md": "# One\n\n## `Two`, and 3.5!\n## One\n```\n# four\n[x](y)\n```\n" +
		"[1](#one) [2](#two-and-35) [3](#one-1) [4](#four) `[5](#five)`\n"}
	if got := brokenLinks(pages, "README.md"); !slices.Equal(got, []string{"#four"}) {
		t.Errorf("these links are broken: %q, want #four alone", got)
	}
}

// Who looks for something sees where it is before the README goes into detail.
func TestEveryPageIsOnTheFirstScreen(t *testing.T) {
	t.Parallel()
	pages := files(t, ".md")
	first, _, ok := strings.Cut(pages["README.md"], "\n## Use it")
	if lines := strings.Count(first, "\n"); !ok || lines > 55 {
		t.Errorf("the first screen has %d lines", lines)
	}
	for path := range pages {
		switch filepath.Base(path) {
		case "results.md", "sleep.md": // measurements, which the page next to them explains
			continue
		}
		if path != "README.md" && !strings.Contains(first, "]("+path+")") {
			t.Errorf("%s is not linked before README.md says how to use it", path)
		}
	}
}

// The tests that a page names are there, in some package.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, text := range files(t, "_test.go") {
		all.WriteString(text)
	}
	named := 0
	for path, text := range files(t, ".md") {
		for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(text, -1) {
			named++
			if !strings.Contains(all.String(), "\nfunc "+name[1]+"(") {
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
// lower case, without punctuation, with - for each space, and numbered if repeated.
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
	return found
}

// files returns the text of all files of the repository, in any module, whose names end
// like that, by their paths.
func files(t *testing.T, end string) map[string]string {
	t.Helper()
	found := map[string]string{}
	repository := os.DirFS("..")
	err := fs.WalkDir(repository, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path == ".git" || path == "bin" {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, end):
			text, err := fs.ReadFile(repository, path)
			found[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(found) < 5 {
		t.Fatalf("found %q: %v", slices.Sorted(maps.Keys(found)), err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
