package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// theID is the session that the tests are about. Each test has a Redis of its own.
const theID = "6f1c2a9be4d07358"

// patient are options for tests that are not about time: nothing expires on a busy machine.
var patient = Options{Lease: time.Minute, Timeout: 20 * time.Second}

// create stores the session's first record.
func create(t *testing.T, st *Store, data string) {
	t.Helper()
	must(t, st.engine.Create(t.Context(), theID, []byte(data), records.Terms{}))
}

// save acquires the session, and saves data.
func save(t *testing.T, st *Store, data string) {
	t.Helper()
	h, _, err := st.engine.Take(t.Context(), theID, records.Terms{})
	must(t, err)
	must(t, h.Save(t.Context(), []byte(data)))
}

// wantData checks the stored data.
func wantData(t *testing.T, st *Store, want string) {
	t.Helper()
	r, err := st.engine.Load(t.Context(), theID, records.Terms{})
	if string(r.Data) != want || err != nil {
		t.Errorf("the record has %q, %v; want %q", r.Data, err, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// wantMessage checks that err has all parts in its text, or is nil if there are none.
func wantMessage(t *testing.T, err error, parts []string) {
	t.Helper()
	if err == nil != (parts == nil) {
		t.Errorf("error %v, want one with %q", err, parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
