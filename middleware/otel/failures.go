package otellatchkey

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/a2139e8d/latchkey/locker/transport"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

func appendErrorType(attributes []attribute.KeyValue, errorType string) []attribute.KeyValue {
	if errorType == "" {
		return attributes
	}
	return append(attributes, semconv.ErrorTypeKey.String(errorType))
}

// failure is the error.type of an exchange with Redis that has brought no reply. If the connection broke, failure
// says why: "timeout" if Redis had not replied to another exchange.
func failure(err error) string {
	if err == nil {
		return ""
	}
	if broken, ok := errors.AsType[*transport.BrokenError](err); ok {
		err = broken.Cause
	}
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_closed"
	}
	return other
}
