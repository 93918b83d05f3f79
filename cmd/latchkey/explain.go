package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/store"
)

// A failure is what is wrong with one server, or with several.
type failure struct {
	at, why string
	err     error
	master  string // its address, if it is behind Sentinels and known
	also    string // what is wrong besides
}

func (f failure) Error() string { return fmt.Sprintf("redis at %s: %s%s", f.at, f.why, f.also) }
func (f failure) Unwrap() error { return f.err }

// reason returns what explained says, without the address.
func reason(err error) string {
	if f, ok := errors.AsType[failure](err); ok {
		return f.why
	}
	return err.Error()
}

// together makes one line of the errors of several nodes. Nodes with the same reason share it.
func together(all []error) error {
	var reasons []string
	at := make(map[string][]string)
	for _, err := range all {
		why := reason(err)
		if at[why] == nil {
			reasons = append(reasons, why)
		}
		if f, ok := errors.AsType[failure](err); ok {
			at[why] = append(at[why], f.at)
		}
	}
	var lines []string
	for _, why := range reasons {
		lines = append(lines, failure{at: strings.Join(at[why], ", "), why: why}.Error())
	}
	return errors.New(strings.Join(lines, "; "))
}

// explained adds Redis's address to an error, and says what to do. Behind Sentinels it may not be known whether the master
// has failed, or one of them: see explainedBehind.
func (r *redis) explained(err error) error {
	at := strings.Join(r.option.InitAddress, ", ")
	if master := r.option.Sentinel.MasterSet; master != "" {
		at = master + ", or one of its Sentinels " + at
	}
	return r.explainedAt(err, at)
}

// explainedOfEach is explained if there is no connection. The client's error is about one address of the URL: the others
// may have other reasons.
func (r *redis) explainedOfEach(ctx context.Context, err error) error {
	if len(r.option.InitAddress) == 1 {
		return r.explained(err)
	}
	wait := r.o.Timeout
	if isTimeout(err) { // the command has waited long enough: servers that reply do so soon
		wait /= 4
	}
	dialling, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	all := make([]error, len(r.option.InitAddress))
	var asked sync.WaitGroup
	for i, address := range r.option.InitAddress {
		asked.Go(func() {
			client, failed := r.toServer(dialling, address)
			if failed == nil {
				client.Close()
			}
			all[i] = r.explainedAt(failed, address)
		})
	}
	asked.Wait()
	if slices.Contains(all, nil) { // it is of another kind
		return r.explained(err)
	}
	return together(all)
}

// explainedAt is explained for one server.
func (r *redis) explainedAt(err error, at string) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f
	}
	err = scripting.WithoutArguments(err) // such as the password
	text := r.ofConnection(err)
	if text == "" {
		text = err.Error()
		if _, why, found := strings.Cut(text, store.ErrUnavailable.Error()+": "); found {
			text = why
		}
		text = r.ofReply(text)
	}
	text = strings.TrimPrefix(text, "dial tcp "+at+": ")
	return failure{at: at, why: strings.TrimPrefix(text, "connect: "), err: err}
}

// ofConnection explains why there is no connection, or no reply. Else it returns "". A reset's own text names the
// port of this program, which differs at each try: watch would take each text for a new reason.
func (r *redis) ofConnection(err error) string {
	const nameTheCert = "name it by --cert and --key"
	const writeTLS = "write rediss or valkeys as the URL's scheme"
	withTLS := r.option.TLSConfig != nil
	_, tlsError := errors.AsType[tls.RecordHeaderError](err)
	_, unknownAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	refused, isRefusal := errors.AsType[refusal](err)
	switch {
	case isTimeout(err):
		text := fmt.Sprintf("no reply within %v", r.o.Timeout)
		if withTLS {
			text += "; if it does not speak TLS, write redis or valkey as the URL's scheme"
		}
		return text
	case tlsError:
		return "the server does not speak TLS: write redis or valkey as the URL's scheme"
	case isRefusal:
		return r.ofReply(refused.line)
	case withTLS && (errors.Is(err, errTLSAlert) || errors.Is(err, errAtOnce)): // by a Sentinel: others are asked by TLS
		return "the Sentinel has closed the connection at once: perhaps it needs TLS, and Sentinels are asked without"
	case errors.Is(err, errTLSAlert):
		return "the server needs TLS: " + writeTLS
	case errors.Is(err, errAtOnce) && !r.hasReplied.Load():
		return "the server has closed the connection at once: perhaps it needs TLS: then " + writeTLS
	case isClosed(err) && withTLS && !r.hasReplied.Load():
		if len(r.option.TLSConfig.Certificates) > 0 {
			return "the server has closed the connection: perhaps Redis is at maxclients, or it refuses the certificate of --cert"
		}
		return "the server has closed the connection: perhaps Redis is at maxclients, or it wants a client's certificate: " + nameTheCert
	case unknownAuthority:
		return err.Error() + ": name its authority by --cacert"
	case withTLS && strings.HasSuffix(err.Error(), "tls: certificate required"):
		return "remote error: tls: certificate required: " + nameTheCert
	case isClosed(err):
		return "the server has closed the connection"
	}
	return ""
}

// isTimeout reports whether a reply, or a connection, did not come in time.
func isTimeout(err error) bool {
	netError, isNet := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || isNet && netError.Timeout()
}

// ofReply returns Redis's error in its own words, and adds what to do.
func (r *redis) ofReply(text string) string {
	hint := ""
	switch {
	case strings.Contains(text, "cluster support disabled"):
		return "this is no cluster: name one address"
	case strings.Contains(text, "unknown message type") || strings.Contains(text, "unexpected simple string"):
		return "the server there is not Redis"
	case strings.HasPrefix(text, "NOAUTH"): // the reply to HELLO is about HELLO
		return "NOAUTH Authentication required: put the password into " + redisVariable + " or a file for --password-file"
	case strings.Contains(text, "No such master"):
		return fmt.Sprintf("the sentinels know no master %q: correct master_set in the URL", r.option.Sentinel.MasterSet)
	case text == "the redis role is not master": // in rueidis's words
		return "the sentinels name a server that is no master: a failover is under way"
	case strings.HasPrefix(text, "WRONGPASS"):
		hint = ": check the user and the password, in --redis, " + redisVariable + " or --password-file"
	case strings.Contains(text, "NOPERM") && strings.Contains(text, "key"): // a store's advice may come first
		hint = ": the user needs ~" + r.o.Prefix + "*; " + rightsPage + " has all rights that this program needs"
	case strings.Contains(text, "NOPERM"):
		hint = ": " + rightsPage + " has the rights that this program needs"
	case isCrowded(text):
		hint = ": stop a program that you can spare, then CLIENT LIST shows who uses them (" + pages + "store/SYMPTOMS.md#maxclients)"
	case strings.HasPrefix(text, "WRONGTYPE"):
		hint = ": another program has written one of Latchkey's keys, such as the list of a user's sessions"
	case strings.HasPrefix(text, "LOADING"):
		hint = ": wait until it has loaded its data"
	}
	if hint != "" {
		text = strings.TrimSuffix(text, ".")
	}
	return text + hint
}
