// Command example is the program of middleware/otel/README.md: sessions whose metrics Prometheus scrapes.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
	otellatchkey "github.com/a2139e8d/latchkey/middleware/otel"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

func main() {
	exporter, err := prometheus.New(prometheus.WithoutScopeInfo())
	if err != nil {
		log.Fatal(err)
	}
	st, err := embedded.Open(store.Options{}) // in production: store.Open
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{[]byte(os.Getenv("SESSION_KEY"))}, // at least 32 random bytes
		Cookie: http.Cookie{Name: "session"},               // for plain HTTP; drop this line behind HTTPS
		Mode:   middleware.ByMethod,
		Observers: []middleware.Observer{otellatchkey.New(otellatchkey.Options{
			MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter)),
		})},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/visit", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		fmt.Fprintln(w, "visit", visits+1)
	})
	metrics := promhttp.HandlerFor(client.DefaultGatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:9464", metrics)) }() // not open to visitors
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", sessions.Handler(http.DefaultServeMux)))
}
