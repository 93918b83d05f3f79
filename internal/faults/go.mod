// A module of its own, so that what the fault suite needs stays out of Latchkey's.
module github.com/a2139e8d/latchkey/internal/faults

go 1.26.0

replace (
	github.com/a2139e8d/latchkey => ../..
	github.com/a2139e8d/latchkey/store/goredisstore => ../../store/goredisstore
	github.com/a2139e8d/latchkey/store/rueidisstore => ../../store/rueidisstore
)

require (
	github.com/Shopify/toxiproxy/v2 v2.5.0
	github.com/a2139e8d/latchkey v0.0.0
	github.com/a2139e8d/latchkey/store/goredisstore v0.0.0-00010101000000-000000000000
	github.com/a2139e8d/latchkey/store/rueidisstore v0.0.0-00010101000000-000000000000
	github.com/gomodule/redigo v1.9.3
	github.com/prometheus/client_golang v1.13.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/rs/zerolog v1.28.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang/protobuf v1.5.2 // indirect
	github.com/gorilla/mux v1.8.0 // indirect
	github.com/gorilla/securecookie v1.1.2 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.16 // indirect
	github.com/matttproud/golang_protobuf_extensions v1.0.1 // indirect
	github.com/prometheus/client_model v0.2.0 // indirect
	github.com/prometheus/common v0.37.0 // indirect
	github.com/prometheus/procfs v0.8.0 // indirect
	github.com/rs/xid v1.4.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.36.10 // indirect
	gopkg.in/tomb.v1 v1.0.0-20141024135613-dd632973f1e7 // indirect
)
