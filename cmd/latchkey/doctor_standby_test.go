package main

import (
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	redigo "github.com/gomodule/redigo/redis"
)

// watched starts a master with replicas, and a Sentinel that has seen all of them follow.
func watched(t *testing.T, replicas, quorum int) (master *redistest.Server, followers []*redistest.Server, sentinel string) {
	t.Helper()
	master = redistest.Real(t, "--repl-diskless-sync-delay", "0")
	for range replicas {
		followers = append(followers, replicaOf(t, master))
	}
	redistest.Eventually(t, "all follow", func() bool { return strings.Count(info(t, master), "state=online") == replicas })
	sentinel = redistest.Sentinel(t, master, quorum)
	order(t, sentinel, "SENTINEL", "DEBUG", "INFO-PERIOD", 1000) // instead of 10 s
	await(t, "the Sentinel has seen them", func() bool {
		seen := 0
		for _, s := range standbysOf(t, sentinel) {
			if s["master-link-status"] == "ok" {
				seen++
			}
		}
		return seen == replicas
	})
	return master, followers, sentinel
}

func standbysOf(t *testing.T, sentinel string) (all []standby) {
	t.Helper()
	replies, err := redigo.Values(redistest.AskSentinel(sentinel, "SENTINEL", "REPLICAS", redistest.MasterName))
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range replies {
		fields, err := redigo.StringMap(reply, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fields)
	}
	return all
}

// While a failover goes on, doctor never says that none is possible. From then on the old master is a replica that is
// missing.
func TestDoctorInASentinelFailover(t *testing.T) {
	t.Parallel()
	master, _, sentinel := watched(t, 2, 1)
	order(t, sentinel, "SENTINEL", "SET", redistest.MasterName, "down-after-milliseconds", 2000) // a busy machine is no failure
	master.Stop(t)
	await(t, "the failover has happened", func() bool {
		r := call(t, sentinelsURL(sentinel), "doctor")
		if strings.Contains(r.stdout, "so no failover is possible") || r.code != exitError {
			t.Errorf("%+v", r)
		}
		return strings.Contains(r.stdout, "the replica "+master.Addr+" is down: start it; or")
	})
}

// A Sentinel lets a replica take over if that has followed the master until shortly before the master died.
func TestStandby(t *testing.T) {
	t.Parallel()
	replica := func(more ...string) standby {
		s := standby{"ip": "a", "port": "1", "runid": "x", "flags": "slave", "master-link-status": "ok", "master-link-down-time": "0", "slave-priority": "100"}
		for i := 0; i < len(more); i += 2 {
			s[more[i]] = more[i+1]
		}
		return s
	}
	for name, c := range map[string]struct {
		flags, downFor string // of the master
		standby
		unable, level, says string
	}{
		"it follows":                   {"master", "", replica(), "", "", ""},
		"no link":                      {"master", "", replica("master-link-status", "err", "master-link-down-time", "9000"), "", wrong, "up to 10 s ago"},
		"not asked yet":                {"master", "", replica("master-link-status", "err", "runid", ""), "", "", ""},
		"no link for too long":         {"master", "", replica("master-link-status", "err", "master-link-down-time", "51000"), "too long", wrong, "too long"},
		"the master has just died":     {"master,disconnected", "", replica("master-link-status", "err", "master-link-down-time", "3000"), "", "", ""},
		"the master is down":           {"s_down,master,disconnected", "60000", replica("master-link-status", "err", "master-link-down-time", "65000"), "", "", ""},
		"it had lost the master":       {"s_down,o_down,master", "5000", replica("master-link-status", "err", "master-link-down-time", "56000"), "too long", wrong, "bring the master back"},
		"it is promoted":               {"master,failover_in_progress", "", replica("flags", "slave,promoted", "master-link-status", "err"), "", "", ""},
		"it is down":                   {"master", "", replica("flags", "s_down,slave,disconnected", "last-ok-ping-reply", "9000", "last-ping-reply", "9000"), "is down", wrong, "start it; or, if it is gone for good, run SENTINEL RESET m on one"},
		"it has just died":             {"master", "", replica("flags", "slave,disconnected", "last-ok-ping-reply", "3000", "last-ping-reply", "3000"), "is down", wrong, "is down"},
		"not connected yet":            {"master", "", replica("flags", "slave,disconnected", "last-ok-ping-reply", "50", "runid", "", "master-link-status", "err"), "", "", ""},
		"it is frozen":                 {"master", "", replica("flags", "s_down,slave"), "does not reply", wrong, "see whether it is stopped"},
		"both are down":                {"s_down,master", "100", replica("flags", "s_down,slave,disconnected", "last-ok-ping-reply", "9000", "last-ping-reply", "9000"), "is down", wrong, "is down: start it"},
		"it has just frozen":           {"master", "", replica("last-ok-ping-reply", "6000", "last-ping-reply", "6000"), "does not reply", wrong, "see whether it is stopped"},
		"it refuses the Sentinel":      {"master", "", replica("flags", "s_down,slave,disconnected", "last-ok-ping-reply", "6000", "last-ping-reply", "800"), "refuses", wrong, "auth-pass"},
		"it refuses SUBSCRIBE":         {"master", "", replica("flags", "slave,disconnected", "last-ok-ping-reply", "800", "last-ping-reply", "800"), "no connection", wrong, "subscribe"},
		"it has just been promoted":    {"s_down,o_down,master", "100", replica("flags", "slave,disconnected", "last-ok-ping-reply", "800", "last-ping-reply", "800"), "", "", ""},
		"it refuses INFO":              {"master", "", replica("last-ok-ping-reply", "800", "last-ping-reply", "800", "info-refresh", "31000"), "INFO", wrong, "may run INFO"},
		"it has always refused INFO":   {"master", "", replica("runid", "", "master-link-status", "err", "last-ok-ping-reply", "800", "last-ping-reply", "800", "info-refresh", "0", "role-reported-time", "36000"), "INFO", wrong, "never replied to INFO"},
		"it is not meant to take over": {"master", "", replica("slave-priority", "0"), "replica-priority 0", note, "set it to 100"},
	} {
		d := &diagnosis{job: &job{}, node: &node{}, info: map[string]string{"flags": c.flags, "s-down-time": c.downFor, "down-after-milliseconds": "5000"}}
		unable := d.standby("m", c.standby)
		if !strings.Contains(unable, c.unable) || (unable == "") != (c.unable == "") {
			t.Errorf("%s: unable: %q", name, unable)
		}
		switch {
		case c.level == "" && len(d.findings) == 0:
		case len(d.findings) != 1 || d.findings[0].Level != c.level || !strings.Contains(d.findings[0].Text, c.says):
			t.Errorf("%s: %+v", name, d.findings)
		case d.masterAway() && strings.Contains(d.findings[0].Text, "RESET"):
			t.Errorf("%s: it would forget all replicas: %+v", name, d.findings)
		}
	}
}
