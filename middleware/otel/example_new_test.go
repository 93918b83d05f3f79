package otellatchkey_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	otellatchkey "github.com/a2139e8d/latchkey/middleware/otel"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func ExampleNew() {
	reader := metric.NewManualReader() // in a program: an exporter
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))

	st, err := embedded.Open(store.Options{}) // in production: store.Open
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	sessions, err := middleware.New(st, middleware.Options{
		Keys:      [][]byte{[]byte(rand.Text() + rand.Text())},
		Observers: []middleware.Observer{otellatchkey.New(otellatchkey.Options{})},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("name", "Ada")
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "https://example.com/", nil))

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "latchkey.session.began" {
			for _, began := range sum.DataPoints {
				if began.Value > 0 {
					fmt.Println(m.Name, began.Value)
				}
			}
		}
	}
	// Output: latchkey.session.began 1
}
