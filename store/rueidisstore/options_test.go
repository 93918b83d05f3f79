package rueidisstore

import (
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

// An option that cannot work, or would break a promise, is refused at once by an error that names it.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *rueidis.ClientOption){
		"InitAddress names no address": func(o *rueidis.ClientOption) { o.InitAddress = nil },
		"names no address":             func(o *rueidis.ClientOption) { o.InitAddress = []string{""} },
		"SelectDB is -1":               func(o *rueidis.ClientOption) { o.SelectDB = -1 },
		"SelectDB must be 0 with a cluster": func(o *rueidis.ClientOption) {
			o.SelectDB, o.InitAddress = 1, []string{"a:1", "b:2"}
		},
		"ForceSingleClient": func(o *rueidis.ClientOption) {
			o.ForceSingleClient, o.InitAddress = true, []string{"a:1", "b:2"}
		},
		"ReplicaOnly":    func(o *rueidis.ClientOption) { o.ReplicaOnly = true },
		"SendToReplicas": func(o *rueidis.ClientOption) { o.SendToReplicas = func(rueidis.Completed) bool { return true } },
		"ReplicaSelector": func(o *rueidis.ClientOption) {
			//lint:ignore SA1019 programs may still set it
			o.ReplicaSelector = func(uint16, []rueidis.NodeInfo) int { return 0 }
		},
		"ReadNodeSelector":                    func(o *rueidis.ClientOption) { o.ReadNodeSelector = func(uint16, []rueidis.NodeInfo) int { return 0 } },
		"Standalone.ReplicaAddress":           func(o *rueidis.ClientOption) { o.Standalone.ReplicaAddress = []string{"b:2"} },
		"Standalone.EnableRedirect":           func(o *rueidis.ClientOption) { o.Standalone.EnableRedirect = true },
		"ConnLifetime":                        func(o *rueidis.ClientOption) { o.ConnLifetime = time.Hour },
		"DisableAutoPipelining":               func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"Option.Dialer.KeepAlive":             func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = -1 },
		"Sentinel.Dialer.KeepAlive":           func(o *rueidis.ClientOption) { o.Sentinel.Dialer.KeepAlive = -1 },
		"ConnWriteTimeout":                    func(o *rueidis.ClientOption) { o.ConnWriteTimeout = -1 },
		"ClusterOption.MaxMovedRedirections":  func(o *rueidis.ClientOption) { o.ClusterOption.MaxMovedRedirections = -1 },
		"ClusterOption.ShardsRefreshInterval": func(o *rueidis.ClientOption) { o.ClusterOption.ShardsRefreshInterval = -1 },
		"Sentinel.TopologyRefreshInterval":    func(o *rueidis.ClientOption) { o.Sentinel.TopologyRefreshInterval = time.Minute },
		"RingScaleEachConn":                   func(o *rueidis.ClientOption) { o.RingScaleEachConn = -1 },
		"Option.RingScaleEachConn":            func(o *rueidis.ClientOption) { o.RingScaleEachConn = 62 },
		"Option.Dialer.Timeout":               func(o *rueidis.ClientOption) { o.Dialer.Timeout = -1 },
		"Sentinel.Dialer.Timeout":             func(o *rueidis.ClientOption) { o.Sentinel.Dialer.Timeout = -1 },
		"PipelineMultiplex":                   func(o *rueidis.ClientOption) { o.PipelineMultiplex = rueidis.MaxPipelineMultiplex + 1 },
	} {
		o := rueidis.ClientOption{InitAddress: []string{"a:1"}}
		change(&o)
		if st, err := Open(o, store.Options{}); err == nil || st != nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if _, err := Open(rueidis.ClientOption{InitAddress: []string{"a:1"}}, store.Options{Prefix: "{"}); err == nil {
		t.Error("bad options of the store are accepted")
	}
}

// The program's settings stay as they are.
func TestOwnOptionsStay(t *testing.T) {
	t.Parallel()
	set := rueidis.ClientOption{
		InitAddress:         []string{"a:1", "b:2"},
		Username:            "user",
		RingScaleEachConn:   8,
		ReadBufferEachConn:  100,
		WriteBufferEachConn: 100,
		PipelineMultiplex:   2,
		ConnWriteTimeout:    time.Second,
		MaxFlushDelay:       time.Microsecond,
		Dialer:              net.Dialer{Timeout: time.Second, KeepAlive: time.Second},
	}
	set.ClusterOption.MaxMovedRedirections = 1
	set.Sentinel.Dialer = set.Dialer
	got := adapted(set, time.Hour)
	got.DisableRetry, got.DisableCache, got.AlwaysPipelining, got.BlockingPipeline, got.BlockingPoolSize = false, false, false, 0, 0
	if !reflect.DeepEqual(got, set) {
		t.Errorf("changed to %+v", got)
	}
	if got.InitAddress[0] = "c:3"; set.InitAddress[0] != "a:1" {
		t.Error("the addresses are shared with the caller")
	}
}
