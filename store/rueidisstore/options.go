package rueidisstore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

var errClusterDB = errors.New("ClientOption.SelectDB must be 0 with a cluster, which has no other database")

// newClient returns a client that has not connected yet.
func newClient(o rueidis.ClientOption, timeout time.Duration) (*client, error) {
	if err := check(o); err != nil {
		return nil, err
	}
	o = adapted(o, timeout)
	c := &client{timeout: timeout, maker: maker{option: o}, health: health{calm: 4 * timeout, most: 1 << (o.RingScaleEachConn - 1)}}
	c.maker.option.DialCtxFn = c.links.dialing(o)
	return c, nil
}

// check refuses options that would break a promise, or have no effect.
func check(o rueidis.ClientOption) error {
	const masters = "sessions are read and written on masters only"
	const repeats = "Latchkey repeats commands itself, with a number that shows the repetition"
	switch {
	case len(o.InitAddress) == 0 || slices.Contains(o.InitAddress, ""):
		return errors.New("rueidisstore: ClientOption.InitAddress names no address: it must have the address of a server, or addresses of a cluster or of sentinels")
	case o.SelectDB < 0:
		return fmt.Errorf("rueidisstore: ClientOption.SelectDB is %d: it must not be negative", o.SelectDB)
	case o.SelectDB != 0 && len(o.InitAddress) > 1 && o.Sentinel.MasterSet == "":
		return fmt.Errorf("rueidisstore: %w", errClusterDB)
	case o.ForceSingleClient && len(o.InitAddress) > 1:
		return errors.New("rueidisstore: ClientOption.ForceSingleClient is set, but InitAddress has several addresses")
	}
	for _, refused := range []struct {
		set       bool
		name, why string
	}{
		{o.ReplicaOnly, "ReplicaOnly", masters},
		{o.SendToReplicas != nil, "SendToReplicas", masters},
		//lint:ignore SA1019 programs may still set it
		{o.ReplicaSelector != nil, "ReplicaSelector", masters},
		{o.ReadNodeSelector != nil, "ReadNodeSelector", masters},
		{len(o.Standalone.ReplicaAddress) > 0, "Standalone.ReplicaAddress", masters},
		{o.Standalone.EnableRedirect, "Standalone.EnableRedirect", "rueidis follows redirections of that kind without end"},
		{o.ConnLifetime != 0, "ConnLifetime", repeats},
		{o.DisableAutoPipelining, "DisableAutoPipelining", "all round trips share connections"},
		{o.Dialer.KeepAlive < 0, "Dialer.KeepAlive", "a negative value hides that a connection is dead"},
		{o.Sentinel.Dialer.KeepAlive < 0, "Sentinel.Dialer.KeepAlive", "a negative value hides that a connection is dead"},
		{o.ConnWriteTimeout < 0, "ConnWriteTimeout", "a negative value hides that a connection is dead"},
		{o.ClusterOption.MaxMovedRedirections < 0, "ClusterOption.MaxMovedRedirections", "redirections must be bounded"},
		{o.ClusterOption.ShardsRefreshInterval < 0, "ClusterOption.ShardsRefreshInterval", "it must not be negative"},
		{o.Sentinel.TopologyRefreshInterval != 0, "Sentinel.TopologyRefreshInterval", "while there is no master, it makes rueidis " +
			"start ever more goroutines; Latchkey asks the sentinels when a round trip has failed"},
		{o.RingScaleEachConn < 0 || o.RingScaleEachConn > maxRingScale, "RingScaleEachConn", fmt.Sprintf("it must be from 0, for the default, to %d", maxRingScale)},
		{o.Dialer.Timeout < 0, "Dialer.Timeout", "it must not be negative"},
		{o.Sentinel.Dialer.Timeout < 0, "Sentinel.Dialer.Timeout", "it must not be negative"},
		{o.PipelineMultiplex > rueidis.MaxPipelineMultiplex, "PipelineMultiplex", fmt.Sprintf("it must be at most %d", rueidis.MaxPipelineMultiplex)},
	} {
		if refused.set {
			return fmt.Errorf("rueidisstore: ClientOption.%s must not be set like this: %s", refused.name, refused.why)
		}
	}
	return nil
}

// adapted returns o with the settings that the store needs, and defaults that suit it.
func adapted(o rueidis.ClientOption, timeout time.Duration) rueidis.ClientOption {
	o.InitAddress = slices.Clone(o.InitAddress) // rueidis may shuffle it
	o.DisableRetry = true
	o.DisableCache = true
	o.AlwaysPipelining = true
	o.BlockingPipeline, o.BlockingPoolSize = -1, maxSubscriptions
	orElse(&o.PipelineMultiplex, -1)
	orElse(&o.RingScaleEachConn, rueidis.DefaultRingScale)
	orElse(&o.ReadBufferEachConn, bufferSize)
	orElse(&o.WriteBufferEachConn, bufferSize)
	orElse(&o.ClusterOption.MaxMovedRedirections, maxRedirections)
	// A PING of rueidis notices within 5/4 of the timeout that a connection is dead; contexts that end do
	// not. It must not do so before the timeout, since Redis may just be slow.
	orElse(&o.Dialer.KeepAlive, timeout/8)
	orElse(&o.ConnWriteTimeout, timeout)
	orElse(&o.Dialer.Timeout, timeout/4*3)               // so that its error is seen
	orElse(&o.Sentinel.Dialer.Timeout, o.Dialer.Timeout) // rueidis has no default for these two
	orElse(&o.Sentinel.Dialer.KeepAlive, o.Dialer.KeepAlive)
	if ask := o.AuthCredentialsFn; ask != nil {
		o.AuthCredentialsFn = func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return apart(func() (rueidis.AuthCredentials, error) { return ask(c) })
		}
	}
	return o
}

// apart calls a function of ClientOption in a new goroutine. A panic and a runtime.Goexit become errors:
// rueidis would wait for the outcome, or call the function in a goroutine where a panic would end the
// process.
func apart[T any](do func() (T, error)) (result T, err error) {
	err = errors.New("a function of ClientOption has called runtime.Goexit")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("a function of ClientOption has panicked: %v", v)
			}
		}()
		result, err = do()
	}()
	<-done
	return result, err
}

const (
	bufferSize       = 32 << 10
	maxRedirections  = 8
	maxSubscriptions = 1 << 16 // to a node, of which each has a connection
	maxRingScale     = 20      // a ring has 2 to the power of that places, of about 200 bytes each
)

// orElse gives an option its default.
func orElse[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}
