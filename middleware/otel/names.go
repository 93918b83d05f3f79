package otellatchkey

import "go.opentelemetry.io/otel/attribute"

// The attributes for which OpenTelemetry has no convention. All others are those of package semconv.
const (
	modeKey    = attribute.Key("latchkey.mode")
	outcomeKey = attribute.Key("latchkey.outcome")
	howKey     = attribute.Key("latchkey.how")
	passedKey  = attribute.Key("latchkey.passed")
	stateKey   = attribute.Key("latchkey.state")

	// Of spans only.
	waitKey           = attribute.Key("latchkey.wait.duration") // seconds
	holdKey           = attribute.Key("latchkey.hold.duration") // seconds
	failureKey        = attribute.Key("latchkey.error.type")    // error.type is the response's
	queueKey          = attribute.Key("latchkey.queue.length")
	behindKey         = attribute.Key("latchkey.behind.label")
	behindProcessKey  = attribute.Key("latchkey.behind.process")
	runsKey           = attribute.Key("latchkey.runs")
	roundTripsKey     = attribute.Key("latchkey.round_trips")
	recordSizeKey     = attribute.Key("latchkey.record.size")
	commitRequestsKey = attribute.Key("latchkey.commit.requests")
	sentKey           = attribute.Key("latchkey.redis.sent") // bytes
	receivedKey       = attribute.Key("latchkey.redis.received")
)
