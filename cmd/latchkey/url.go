package main

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// parseURL reads the URL of a Redis, which came from a flag or a variable. Its errors do not repeat the URL,
// which may hold a password.
func parseURL(from, raw string) (rueidis.ClientOption, error) {
	wrong := func(why string) (rueidis.ClientOption, error) {
		return rueidis.ClientOption{}, usage("%s %s", from, why)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil && !strings.Contains(raw, "://"):
		return wrong(schemes)
	case err != nil:
		return wrong("cannot be parsed; special characters in the password must be percent-encoded")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong("has parameters that cannot be parsed")
	}
	hosts := append([]string{u.Host}, query["addr"]...)
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
	case "unix":
		if u.Path == "" || u.Host != "" || query.Has("addr") {
			return wrong("names no socket: write unix:///path/to/socket")
		}
		hosts = nil
	default:
		return wrong(schemes)
	}
	for i, host := range hosts {
		if u := (&url.URL{Host: host}); i > 0 && u.Hostname() != "" && u.Port() == "" {
			return wrong("has an addr without a port: write host:port")
		}
		if strings.Contains(host, "@") { // of an addr: it has no user or password of its own
			return wrong("has an addr with @: write host:port")
		}
		if why := wrongHost(host); why != "" {
			return wrong(why)
		}
	}
	for name, values := range query {
		known := slices.Contains(parameters, name) && (name != "db" || isNumber(values[0]))
		if !known || values[0] == "" {
			return wrong("has an unknown parameter: known are " + strings.Join(parameters, ", "))
		}
	}
	if path := strings.Trim(u.Path, "/"); u.Scheme != "unix" && path != "" && !isNumber(path) || u.Fragment != "" {
		return wrong("names a database that is not a number")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	o, err := rueidis.ParseURL(u.String())
	if err != nil {
		return wrong("cannot be parsed")
	}
	if o.TLSConfig != nil && (query.Has("addr") || query.Has("master_set")) {
		o.TLSConfig.ServerName = "" // it is the URL's first host, but other hosts are dialled, too: each has its own name
	}
	o.Sentinel.Username, o.Sentinel.Password = query.Get("sentinel_user"), query.Get("sentinel_password")
	return o, nil
}

// parameters are those of a URL. The sentinels may need another password than the servers.
var parameters = []string{"addr", "master_set", "sentinel_user", "sentinel_password", "db"}

const schemes = "must begin with redis://, rediss://, valkey://, valkeys:// or unix://"

// wrongHost returns what is wrong with a host:port, whose port may be missing.
func wrongHost(host string) string {
	u := url.URL{Host: host}
	if u.Hostname() == "" {
		return "has no host"
	}
	if _, port, err := net.SplitHostPort(host); err == nil || u.Port() != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "names a port that does not exist"
		}
	}
	return ""
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0
}
