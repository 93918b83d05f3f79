package otellatchkey

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// exchangeTimes are the buckets that the convention advises, two below a millisecond, and one that ends soon after the
// default of store.Options.Timeout, which is 2 s: so a Redis that does not reply reads as 2.5 s at most.
var exchangeTimes = []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10}

// exchanges are the metrics of ExchangeEvents.
type exchanges struct {
	meter        *meter
	series       *table[exchangeKey, *buckets] // of the durations
	commits      *count
	requests     *count // whose holds the commits have ended
	moved, asked *count
}

// An exchangeKey is what the attributes of an exchange depend on. failure is the error.type if there is no reply.
type exchangeKey struct {
	script, command, node, database, status, failure string
	pipeline                                         bool
}

func newExchanges(m *meter) *exchanges {
	redirects := m.counter("latchkey.cluster.redirects", "{redirect}",
		"Times another node of the cluster had to be asked.")
	return &exchanges{
		meter: m,
		series: newExchangeTable(m.histogram("db.client.operation.duration", "s",
			"Duration of database client operations.", exchangeTimes...)),
		commits: m.counter("latchkey.commits", "{commit}", "Commits of requests that have held their session.").of(),
		requests: m.counter("latchkey.commit.requests", "{request}",
			"Requests whose holds these commits have ended: of several, if they have passed the session on.").of(),
		moved: redirects.of(howKey.String("moved")),
		asked: redirects.of(howKey.String("asked")),
	}
}

func newExchangeTable(durations histogram) *table[exchangeKey, *buckets] {
	scripts, commands, nodes, databases, statuses := words(32), keywords(32), texts(128), numbers(32), keywords(32)
	bound := func(k exchangeKey) exchangeKey {
		k.script, k.command = scripts.word(k.script), commands.word(k.command)
		k.node, k.database, k.status = nodes.word(k.node), databases.word(k.database), statuses.word(k.status)
		return k
	}
	series := func(k exchangeKey) *buckets { return durations.of(k.attributes()...) }
	full := func() *buckets { return durations.of(semconv.DBSystemNameRedis, overflow) }
	return newTable(bound, series, full)
}

// measure measures an exchange.
func (x *exchanges) measure(ctx context.Context, e *middleware.ExchangeEvent, sampled bool) {
	var room [3]measurement
	key := exchangeKeyOf(e)
	all := append(room[:0], measurement{x.series.of(&key, key.place()), e.Took.Seconds()})
	if endsHolds(e) {
		all = append(all, measurement{x.commits, 1}, measurement{x.requests, float64(e.Holds)})
	}
	x.meter.record(ctx, sampled, all...)
	if e.Moved|e.Asked != 0 {
		x.moved.Add(int64(e.Moved))
		x.asked.Add(int64(e.Asked))
	}
}

// endsHolds reports whether an exchange is a commit, and Redis has executed it. Otherwise it is tried again, or has failed.
func endsHolds(e *middleware.ExchangeEvent) bool {
	return e.Holds > 0 && e.Err == nil && e.Status == ""
}

func (k *exchangeKey) place() int {
	return 7*mixed(k.script) + mixed(k.node) + 5*len(k.command) + len(k.status)
}

func exchangeKeyOf(e *middleware.ExchangeEvent) exchangeKey {
	k := exchangeKey{e.Script, e.Command, e.Node, e.Database, e.Status, failure(e.Err), e.Commands > 1}
	if k.status == notLoaded {
		k.status = ""
	}
	return k
}

// notLoaded is the status if Redis does not know a script yet, as after a restart. Nothing has failed then: the text
// of the script is sent next. By the convention, only a failure has the status and the error.type. An error of Redis
// is a failure, unless it is handled, as this one is.
const notLoaded = "NOSCRIPT"

// operation is the db.operation.name. The commands of a batch differ: mostly a script follows others.
func (k exchangeKey) operation() string {
	if k.pipeline {
		return "PIPELINE"
	}
	return cmp.Or(k.command, other)
}

// attributes are those that the convention has for Redis, for metrics and spans. The text of the query is none of
// them, since keys and records are in it.
func (k exchangeKey) attributes() []attribute.KeyValue {
	attributes := append(make([]attribute.KeyValue, 0, 12),
		semconv.DBSystemNameRedis, semconv.DBOperationName(k.operation()))
	if k.script != "" {
		attributes = append(attributes, semconv.DBStoredProcedureName(k.script))
	}
	if k.database != "" {
		attributes = append(attributes, semconv.DBNamespace(k.database))
	}
	if k.node != "" {
		attributes = appendAddress(attributes, k.node)
	}
	if k.status != "" {
		attributes = append(attributes, semconv.DBResponseStatusCode(k.status))
	}
	return appendErrorType(attributes, k.errorType())
}

// errorType is by convention the same as the status, if there is one.
func (k exchangeKey) errorType() string { return cmp.Or(k.status, k.failure) }

// appendAddress appends server.address and, unless it is Redis's default, server.port. A Unix socket has no port.
func appendAddress(attributes []attribute.KeyValue, node string) []attribute.KeyValue {
	host, digits, err := net.SplitHostPort(node)
	port, notNumber := strconv.Atoi(digits)
	if err != nil || notNumber != nil {
		return append(attributes, semconv.ServerAddress(node))
	}
	attributes = append(attributes, semconv.ServerAddress(host))
	if port == 6379 {
		return attributes
	}
	return append(attributes, semconv.ServerPort(port))
}
