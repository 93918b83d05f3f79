package main

import (
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	redigo "github.com/gomodule/redigo/redis"
)

// sentinelMistakes are mistakes that Sentinels report.
var sentinelMistakes = []mistake{
	{"the master cannot be reached", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		url := sentinelsURL(redistest.Sentinel(t, s, 1))
		s.Stop(t)
		return url, nil, func(finding) []string { s.Restart(t); return nil }
	}},
	{"the master does not let this program in", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		url := sentinelsURL(redistest.Sentinel(t, s, 1))
		s.Do(t, "CONFIG", "SET", "requirepass", "hunter2")
		password := file(t, "hunter2")
		return url, nil, func(finding) []string { return []string{"--password-file", password} }
	}},
	{"it does not reach the master", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		sentinel := redistest.Sentinel(t, s, 1)
		order(t, sentinel, "SENTINEL", "SET", redistest.MasterName, "down-after-milliseconds", 500)
		s.Stop(t)
		return sentinelsURL(sentinel), nil, func(finding) []string { s.Restart(t); return nil }
	}},
	{"or take it out of the URL", func(t *testing.T) (string, []string, func(finding) []string) {
		sentinel := redistest.Sentinel(t, redistest.Real(t), 1)
		return sentinelsURL(sentinel, "127.0.0.1:1"), nil, func(finding) []string { return []string{"--redis", sentinelsURL(sentinel)} }
	}},
	{"it does not let this program in: NOAUTH", func(t *testing.T) (string, []string, func(finding) []string) {
		url := sentinelsURL(sentinelWithPassword(t))
		return url, nil, func(finding) []string { return []string{redisVariable + "=" + url + "&sentinel_password=hunter2"} }
	}},
	{"it does not let this program in: WRONGPASS", func(t *testing.T) (string, []string, func(finding) []string) {
		url := sentinelsURL(sentinelWithPassword(t)) + "&sentinel_password="
		return url + "other", nil, func(finding) []string { return []string{redisVariable + "=" + url + "hunter2"} }
	}},
	{"correct master_set in the URL", func(t *testing.T) (string, []string, func(finding) []string) {
		url := sentinelsURL(redistest.Sentinel(t, redistest.Real(t), 1))
		return url + "s", nil, func(finding) []string { return []string{redisVariable + "=" + url} }
	}},
	{"it does not say what it knows of", sentinelUserWithout("sentinel|master")},
	{"the master, or a Sentinel, does not let this program in", sentinelUserWithout("sentinel|get-master-addr-by-name")},
	{"the master, or a Sentinel, does not let this program in", sentinelUserWithout("sentinel|sentinels")},
	{"let it watch that one", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		one, other := redistest.Sentinel(t, s, 1), redistest.Sentinel(t, s, 1)
		order(t, other, "SENTINEL", "REMOVE", redistest.MasterName)
		return sentinelsURL(one, other), nil, func(f finding) []string { watchBy(t, f.Node, s); return nil }
	}},
	{"all must watch the same master", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		one, other := redistest.Sentinel(t, s, 1), redistest.Sentinel(t, redistest.Real(t), 1)
		return sentinelsURL(one, other), nil, func(f finding) []string { watchBy(t, other, s); return nil }
	}},
	{"it names another master", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		one, other := redistest.Sentinel(t, s, 1), redistest.Sentinel(t, redistest.Real(t), 1)
		return sentinelsURL(one, other), nil, func(f finding) []string { watchBy(t, f.Node, s); return nil } // it stays, so the Sentinel is wrong
	}},
	{"fewer than three Sentinels", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		return sentinelsURL(redistest.Sentinel(t, s, 1)), nil, func(finding) []string {
			redistest.Sentinel(t, s, 1)
			redistest.Sentinel(t, s, 1)
			return nil
		}
	}},
	{"until a failover starts", func(t *testing.T) (string, []string, func(finding) []string) {
		return sentinelsURL(redistest.Sentinel(t, redistest.Real(t), 1)), nil, nil
	}},
	{"start the Sentinels that are away", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		var three []string
		for range 3 {
			three = append(three, redistest.Sentinel(t, s, 2))
		}
		await(t, "they know each other", func() bool {
			reply, err := redigo.String(redistest.AskSentinel(three[0], "SENTINEL", "CKQUORUM", redistest.MasterName))
			return err == nil && strings.HasPrefix(reply, "OK 3")
		})
		order(t, three[0], "SENTINEL", "SET", redistest.MasterName, "down-after-milliseconds", 500)
		for _, gone := range three[1:] {
			_, _ = redistest.AskSentinel(gone, "SHUTDOWN") // it closes the connection
		}
		return sentinelsURL(three...), nil, func(finding) []string {
			redistest.Sentinel(t, s, 2)
			redistest.Sentinel(t, s, 2)
			return nil
		}
	}},
	{"no replica can take over", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t, "--repl-diskless-sync-delay", "0")
		return sentinelsURL(redistest.Sentinel(t, s, 1)), nil, func(f finding) []string {
			_, advice, _ := strings.Cut(f.Text, "add one (")
			advice, _, _ = strings.Cut(advice, ")")
			obey(t, redistest.Real(t).Addr, advice)
			return nil
		}
	}},
	{"the master has no replica: bring", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		sentinel := redistest.Sentinel(t, s, 1)
		s.Stop(t)
		return sentinelsURL(sentinel), nil, func(finding) []string { s.Restart(t); return nil }
	}},
	{"is down: start it", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 1, 1)
		replicas[0].Stop(t)
		return sentinelsURL(sentinel), nil, func(finding) []string { replicas[0].Restart(t); return nil }
	}},
	{"gone for good, run SENTINEL RESET", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 2, 1)
		replicas[0].Stop(t)
		return sentinelsURL(sentinel), nil, func(f finding) []string {
			_, advice, _ := strings.Cut(f.Text, "gone for good, run ")
			advice, _, _ = strings.Cut(advice, " on one")
			obey(t, f.Node, advice)
			return nil
		}
	}},
	{"does not reply: see whether it is stopped", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 1, 1)
		order(t, sentinel, "SENTINEL", "SET", redistest.MasterName, "down-after-milliseconds", 2000)
		replicas[0].Pause(t)
		return sentinelsURL(sentinel), nil, func(finding) []string { replicas[0].Resume(t); return nil }
	}},
	{"replies, but not as this Sentinel needs it", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 1, 1)
		replicas[0].Do(t, "CONFIG", "SET", "requirepass", "new")
		replicas[0].Do(t, "CLIENT", "KILL", "TYPE", "normal")
		return sentinelsURL(sentinel), nil, func(finding) []string {
			order(t, sentinel, "SENTINEL", "SET", redistest.MasterName, "auth-pass", "new")
			return nil
		}
	}},
	{"this Sentinel lacks a connection to the replica", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 1, 1)
		replicas[0].Do(t, "ACL", "SETUSER", "default", "-subscribe")
		replicas[0].Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
		return sentinelsURL(sentinel), nil, func(finding) []string {
			replicas[0].Do(t, "ACL", "SETUSER", "default", "+subscribe")
			return nil
		}
	}},
	{"never takes over, since its replica-priority is 0", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 1, 1)
		replicas[0].Do(t, "CONFIG", "SET", "replica-priority", "0")
		return sentinelsURL(sentinel), nil, func(finding) []string {
			replicas[0].Do(t, "CONFIG", "SET", "replica-priority", "100")
			return nil
		}
	}},
	{"for too long to take over", withoutMasterauth(200)},
	{"as this Sentinel saw it up to 10 s ago: wait", withoutMasterauth(60000)},
	{"a failover of the master", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replicas, sentinel := watched(t, 1, 1)
		order(t, sentinel, "SENTINEL", "SET", redistest.MasterName, "failover-timeout", 300000)
		replicas[0].Pause(t) // so the failover lasts
		order(t, sentinel, "SENTINEL", "FAILOVER", redistest.MasterName)
		return sentinelsURL(sentinel), nil, func(finding) []string { replicas[0].Resume(t); return nil }
	}},
	{"bring back one that is missing, and then", func(t *testing.T) (string, []string, func(finding) []string) {
		master, replicas, sentinel := watched(t, 2, 1)
		replicas[0].Stop(t)
		return sentinelsURL(sentinel), nil, func(finding) []string {
			replicas[0].Restart(t)
			master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
			return nil
		}
	}},
	{"are refused (NOREPLICAS): bring back one", func(t *testing.T) (string, []string, func(finding) []string) {
		master, replicas, sentinel := watched(t, 2, 1)
		master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
		replicas[0].Stop(t)
		return sentinelsURL(sentinel), nil, func(finding) []string { replicas[0].Restart(t); return nil }
	}},
	{"it is in TILT", func(t *testing.T) (string, []string, func(finding) []string) {
		sentinel := redistest.Sentinel(t, redistest.Real(t), 1)
		order(t, sentinel, wordsOf("SENTINEL DEBUG tilt-trigger 1")...) // each pause is one
		return sentinelsURL(sentinel), nil, func(finding) []string {
			order(t, sentinel, wordsOf("SENTINEL DEBUG tilt-trigger 2000 tilt-period 100")...)
			return nil
		}
	}},
	{"not checked whether it is in TILT", sentinelUserWithout("info")},
	{"its quorum is not checked", sentinelUserWithout("sentinel|ckquorum")},
	{"the replicas are not checked", sentinelUserWithout("sentinel|replicas")},
}

// sentinelWithPassword returns the address of a Sentinel that lets nobody in without a password, which is hunter2.
func sentinelWithPassword(t *testing.T) string {
	t.Helper()
	sentinel := redistest.Sentinel(t, redistest.Real(t), 1)
	order(t, sentinel, wordsOf("ACL SETUSER default resetpass >hunter2")...)
	return sentinel
}
