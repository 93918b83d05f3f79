package otellatchkey

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// A convention is what OpenTelemetry says of an attribute.
type convention struct{ level, kind string }

// conventions reads testdata/convention.tsv.
func conventions(t *testing.T) map[string]map[string]convention {
	t.Helper()
	text, err := os.ReadFile("testdata/convention.tsv")
	if err != nil {
		t.Fatal(err)
	}
	if version := strings.TrimPrefix(semconv.SchemaURL, "https://opentelemetry.io/schemas/"); !strings.Contains(string(text), "tag v"+version+",") {
		t.Fatalf("the table is not of version %s, which package semconv has", version)
	}
	all := make(map[string]map[string]convention)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		if all[f[0]] == nil {
			all[f[0]] = make(map[string]convention)
		}
		all[f[0]][f[1]] = convention{f[2], f[3]}
	}
	return all
}

// manyEvents are events that bring out all attributes.
func manyEvents() []middleware.Event {
	began := time.Now()
	return append(usualEvents(),
		&middleware.ExchangeEvent{Command: "GET", Commands: 1, Node: "node-1:7000", Began: began},
		&middleware.ExchangeEvent{Script: "take", Command: "SET", Commands: 3, Node: "/run/redis.sock", Status: "OOM", Holds: 1, Moved: 1, Began: began},
		&middleware.ExchangeEvent{Command: "GET", Commands: 1, Err: context.DeadlineExceeded, Began: began},
		&middleware.ExchangeEvent{},
		&middleware.RequestEvent{Session: "id", Waited: time.Second, Holds: []middleware.Hold{{Behind: "label", BehindProcess: "host", Released: began}}, Err: errors.New("…"), Kind: "timeout"},
		&middleware.SessionEvent{What: "lost", How: "lease"}, &middleware.SessionEvent{What: "extended", Err: errors.New("…")})
}

// Names and attributes are those of the conventions. If there is no convention, the namespace is our own, and names
// follow the conventions' rules for names.
func TestConvention(t *testing.T) {
	t.Parallel()
	tables := conventions(t)
	o, reader := metered(Options{SessionID: true})
	ctx, ended := sampled(t)
	for _, e := range manyEvents() {
		o.Observe(ctx, e)
	}

	used := make(map[string]bool)
	check := func(where string, table map[string]convention, attributes []attribute.KeyValue) {
		for _, a := range attributes {
			c, ok := table[string(a.Key)]
			switch {
			case strings.HasPrefix(string(a.Key), "latchkey."):
				checkName(t, string(a.Key))
			case !ok:
				t.Errorf("%s has the attribute %s, which is not in the convention", where, a.Key)
			case c.kind != strings.ToLower(strings.TrimSuffix(a.Value.Type().String(), "64")):
				t.Errorf("%s: %s is of type %v, want %s", where, a.Key, a.Value.Type(), c.kind)
			}
			used[string(a.Key)] = true
		}
		for name, c := range table {
			if c.level == "Required" && !slices.ContainsFunc(attributes, func(a attribute.KeyValue) bool { return string(a.Key) == name }) {
				t.Errorf("%s has no %s", where, name)
			}
		}
	}
	for _, s := range all(t, reader) {
		table := tables["other"]
		if s.metric == "db.client.operation.duration" {
			table = tables["metric"]
		} else {
			checkName(t, s.metric)
		}
		check(s.String(), table, s.attributes.ToSlice())
	}
	for _, s := range ended() {
		table := tables["other"]
		if s.SpanKind() == trace.SpanKindClient {
			table = tables["span"]
		}
		check(s.Name(), table, s.Attributes())
	}
	for _, name := range []string{
		"db.response.status_code", "error.type", "server.address", "server.port", "db.operation.batch.size",
		"db.stored_procedure.name", "http.route", "session.id",
	} {
		if !used[name] {
			t.Errorf("nothing has %s", name)
		}
	}
	if used["db.query.text"] {
		t.Error("the text of a query has keys and records in it")
	}
}

// checkName checks what the conventions say of names: docs/general/naming.md.
func checkName(t *testing.T, name string) {
	t.Helper()
	if !strings.HasPrefix(name, "latchkey.") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_.") != "" ||
		strings.Contains(name, "..") || strings.Contains(name, "__") || strings.HasSuffix(name, "total") {
		t.Errorf("the name %s breaks the conventions' rules", name)
	}
}

// The convention's metric has the unit and the kind that the convention wants, and at least the buckets that it
// advises.
func TestConventionOfTheDuration(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, manyEvents()...)
	for _, m := range metrics(t, reader) {
		if m.Name != "db.client.operation.duration" {
			continue
		}
		data, ok := m.Data.(metricdata.Histogram[float64])
		if !ok || m.Unit != "s" || m.Description != "Duration of database client operations." {
			t.Fatalf("db.client.operation.duration is a %T in %q: %s", m.Data, m.Unit, m.Description)
		}
		for _, want := range []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10} {
			if !slices.Contains(data.DataPoints[0].Bounds, want) {
				t.Errorf("there is no bucket of %v s", want)
			}
		}
		return
	}
	t.Error("there is no db.client.operation.duration")
}

// Each metric has a unit and a description. A unit in braces is in the singular.
func TestUnits(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, manyEvents()...)
	all := metrics(t, reader)
	if len(all) < 16 {
		t.Fatalf("there are %d metrics", len(all))
	}
	for _, m := range all {
		inBraces := strings.HasPrefix(m.Unit, "{") && !strings.HasSuffix(m.Unit, "s}")
		if m.Unit != "s" && m.Unit != "By" && !inBraces || !strings.HasSuffix(m.Description, ".") {
			t.Errorf("%s is in %q: %q", m.Name, m.Unit, m.Description)
		}
	}
}
