// Package rig has the real parts of the fault suite: wires and addresses that can be made
// to fail, replicas, sentinels, disks and clocks. The servers come from package redistest,
// the demos from package demotest.
package rig

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// A Wire is a TCP proxy in front of a server. What goes through it can be delayed, cut off
// and repeated. It knows nothing about the protocol: to hit a certain command, use
// redistest.Proxy.
type Wire struct {
	Addr string // host:port
	URL  string // redis://host:port

	proxy *toxiproxy.Proxy
}

// wires numbers them, since toxiproxy wants names.
var wires atomic.Int64

// NewWire starts a wire to target, a host:port. It ends with the test.
func NewWire(tb testing.TB, target string) *Wire {
	tb.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, fmt.Sprintf("wire%d", wires.Add(1)), "127.0.0.1:0", target)
	if err := proxy.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(proxy.Stop)
	return &Wire{Addr: proxy.Listen, URL: "redis://" + proxy.Listen, proxy: proxy}
}

// A Toxic describes what happens to the bytes on a wire, in toxiproxy's terms.
type Toxic struct {
	Type       string         `json:"type"`             // latency, timeout, reset_peer, limit_data, slicer, bandwidth, or one of toxics.go
	Stream     string         `json:"stream,omitempty"` // upstream, or downstream: to the client, the default
	Attributes map[string]any `json:"attributes"`
}

// Add adds a toxic to all connections, including those that are open.
func (w *Wire) Add(tb testing.TB, toxic Toxic) {
	tb.Helper()
	text, err := json.Marshal(toxic)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}

// Heal removes all toxics.
func (w *Wire) Heal(tb testing.TB) {
	tb.Helper()
	w.proxy.Toxics.ResetToxics(tb.Context())
}

// Cut breaks all connections and refuses new ones, until Join.
func (w *Wire) Cut() { w.proxy.Stop() }

// Join ends a Cut.
func (w *Wire) Join(tb testing.TB) {
	tb.Helper()
	if err := w.proxy.Start(); err != nil {
		tb.Fatal(err)
	}
}
