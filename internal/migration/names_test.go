package migration

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/alexedwards/scs/v2"
	"github.com/gorilla/sessions"
)

// The page says of every name of the old libraries what it is called now, or that it is not there.
func TestThePageHasAllNames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../middleware/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## Names: scs\n")
	known := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(page, -1) {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(code, -1) {
			known[word] = true
		}
	}
	for _, of := range []any{&scs.SessionManager{}, &scs.SessionCookie{}, &sessions.Session{}, &sessions.Options{}, &sessions.CookieStore{}} {
		for _, name := range namesOf(reflect.TypeOf(of)) {
			if !known[name] {
				t.Errorf("nothing is said of %s of %T", name, of)
			}
		}
	}
}

// namesOf returns the exported methods and fields of a pointer to a struct.
func namesOf(t reflect.Type) (names []string) {
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	for f := range t.Elem().Fields() {
		if f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}
