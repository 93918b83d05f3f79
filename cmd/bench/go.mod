module github.com/a2139e8d/latchkey/cmd/bench

go 1.26.0

require (
	github.com/a2139e8d/latchkey v1.0.0-rc.1
	github.com/alexedwards/scs/goredisstore v0.0.0-20250212122300-421ef1d8611c
	github.com/alexedwards/scs/v2 v2.9.0
	github.com/boj/redistore v1.4.1
	github.com/bsm/redislock v0.9.4
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/gomodule/redigo v1.9.3
	github.com/gorilla/sessions v1.4.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
)

require (
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
)

require (
	github.com/a2139e8d/latchkey/middleware/otel v1.0.0-rc.1
	github.com/a2139e8d/latchkey/store/rueidisstore v1.0.0-rc.1
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/gorilla/securecookie v1.1.2 // indirect
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
