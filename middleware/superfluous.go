package middleware

import (
	"log/slog"
	"runtime"
	"strconv"
	"strings"
)

// reportSuperfluous logs, once in an answer, that WriteHeader was called when there was a status
// already. net/http reports that as well, but it does not see the call while the answer waits for
// its commit.
func (rw *response) reportSuperfluous(status int) {
	if rw.warned {
		return
	}
	rw.warned = true
	rw.request.log(slog.LevelWarn, "superfluous", "superfluous WriteHeader, which is ignored",
		slog.Int("status", rw.status), slog.Int("ignored", status), slog.String("caller", handlerCaller()))
}

// handlerCaller returns the function that has called us, perhaps by way of net/http, and its line.
func handlerCaller() string {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(4, pc)]) // above WriteHeader
	for {
		frame, more := frames.Next()
		if !more || !strings.HasPrefix(frame.Function, "net/http.") {
			return frame.Function + ":" + strconv.Itoa(frame.Line)
		}
	}
}
