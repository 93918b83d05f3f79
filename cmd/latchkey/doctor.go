package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

const doctorAbout = `Compares Redis with the settings that Latchkey needs: version, policy and use of
memory, persistence, replicas, rights, round trip, clock; each node of a
cluster, each Sentinel. A line with "wrong" says what to set, and makes the exit
status 1. A line with "note" depends on your needs. A command below a line is
for that node, or for a shell if it begins with redis-cli. Nothing is changed.
What mistakes look like in a program's log:
` + pages + `store/SYMPTOMS.md
`

// The levels of a finding.
const (
	fine  = "ok"
	note  = "note"
	wrong = "wrong"
)

// A finding is what is known of one server by one check.
type finding struct {
	Node  string   `json:"node"`
	Level string   `json:"level"`
	Check string   `json:"check"`
	Text  string   `json:"text"`
	Do    []string `json:"do,omitempty"` // commands for that node, or for a shell if they begin with redis-cli

	kind string // of the server: node or Sentinel
}

// The kinds of servers.
const (
	aNode     = "node"
	aSentinel = "Sentinel"
)

// A diagnosis examines one server.
type diagnosis struct {
	*job
	node          *node
	kind          string
	info          map[string]string // of INFO; empty if INFO is refused
	away          []string          // the masters of the cluster that cannot be asked
	hope          string            // whether replicas can take over from those
	entry         string            // a node that can be asked, the same for all nodes
	copying       map[copyOf]bool   // the replicas of the masters before it that have no copy yet
	knownReplicas int64             // by the Sentinels
	measured      <-chan measurement
	findings      []finding
}

// say adds a finding. The commands that mend it may be added to the result.
func (d *diagnosis) say(level, check, format string, args ...any) *finding {
	d.findings = append(d.findings, finding{d.node.address, level, check, fmt.Sprintf(format, args...), nil, cmp.Or(d.kind, aNode)})
	return &d.findings[len(d.findings)-1]
}

// do says which commands mend what was found.
func (f *finding) do(commands ...string) { f.Do = append(f.Do, commands...) }

// set is do for a setting.
func (f *finding) set(name, value string) { f.do("CONFIG SET " + name + " " + value) }

// checks are the checks of a node whose INFO is known.
var checks = []func(*diagnosis){
	(*diagnosis).role, // of a replica it is the cause of all else
	(*diagnosis).version,
	(*diagnosis).policy, (*diagnosis).memory, (*diagnosis).evictions, (*diagnosis).connections,
	(*diagnosis).persistence, (*diagnosis).disk,
	(*diagnosis).replicas,
	(*diagnosis).rights,
	(*diagnosis).distance, (*diagnosis).clock,
	(*diagnosis).cluster,
}

func doctor(j *job) error {
	ofSentinels, sentinels, replicas, err := j.diagnoseSentinels()
	if err != nil {
		return err
	}
	all, nodes := []finding{}, servers{}
	if sentinels.all == 0 || sentinels.replied > 0 { // otherwise nobody says where the master is
		if all, nodes, err = j.diagnoseNodes(replicas); err != nil {
			return err
		}
	}
	if err := j.ctx.Err(); err != nil { // what was found since then is not true
		return err
	}
	all = append(all, ofSentinels...)
	if j.json {
		err = j.printJSON(all)
	} else {
		j.printFindings(all, map[string]servers{aNode: nodes, aSentinel: sentinels})
	}
	bad := slices.ContainsFunc(all, func(f finding) bool { return f.Level == wrong })
	if err == nil && bad {
		err = errFound
	}
	return err
}

// diagnoseNodes examines all servers, and returns how many there are. The Sentinels, if any, know some replicas.
func (j *job) diagnoseNodes(replicas int64) (all []finding, nodes servers, _ error) {
	if j.unconnected != nil { // so there is a Sentinel, which may know more
		f, _ := errors.AsType[failure](j.unconnected)
		d := &diagnosis{job: j, node: &node{redis: j.redis, address: cmp.Or(f.master, j.redis.option.Sentinel.MasterSet)}}
		switch why := reason(j.unconnected); {
		case isRefused(j.unconnected) && f.master == "": // Redis's words name the command, such as sentinel|sentinels
			d.say(wrong, "node", "the master, or a Sentinel, does not let this program in: %s", why)
		case isRefused(j.unconnected):
			d.say(wrong, "node", "the master does not let this program in: %s", why)
		default:
			d.say(wrong, "node", "the master cannot be reached: %s: %s, unless a replica takes over by itself in some seconds", why, revival(why))
		}
		return d.findings, servers{1, 0}, nil
	}
	found, err := j.redis.nodes(j.ctx)
	if err != nil {
		return nil, nodes, err
	}
	var away []string
	entry := ""
	for _, n := range found {
		switch {
		case n.err == nil:
			entry = cmp.Or(entry, n.address)
		case !n.replica && !isRefused(n.err) && !isCrowded(reason(n.explained(n.err))) && !errors.Is(n.err, errDemoted):
			away = append(away, n.address)
		}
	}
	hope := hopeFor(away, found)
	measured := make(map[*node]<-chan measurement) // all at once, since that takes half a second
	for _, n := range found {
		if n.client != nil {
			measured[n] = n.measured(j.ctx)
		}
	}
	copying := make(map[copyOf]bool) // masters come first
	for _, n := range found {
		d := &diagnosis{job: j, node: n, measured: measured[n], away: away, hope: hope, entry: entry, copying: copying, knownReplicas: replicas}
		findings, err := j.diagnose(d)
		if err != nil {
			return nil, nodes, err
		}
		if nodes.all++; findings[0].Check == "node" { // which comes first: it explains others
			all = append(findings, all...)
			continue
		}
		nodes.replied++
		all = append(all, findings...)
	}
	return all, nodes, nil
}

// diagnose returns an error if the server cannot be reached. On a cluster that is a finding instead.
func (j *job) diagnose(d *diagnosis) ([]finding, error) {
	n := d.node
	text, err := "", n.err
	if replied := err == nil || isRefused(err) || errors.Is(err, errDemoted); replied && n.client != nil {
		text, err = n.do(j.ctx, "INFO").ToString()
	}
	switch {
	case isLockedOut(err) && d.inCluster():
		d.unreachable(n.explained(err))
		return d.findings, nil
	case isRefused(err) && n.client != nil:
		// wrong, since a script would otherwise believe that all was checked
		d.say(wrong, "info", "INFO is refused, so most settings are not checked: use a Redis user that may run it (%s)", err)
	case err != nil && d.inCluster():
		d.unreachable(n.explained(err))
		return d.findings, nil
	case err != nil:
		return nil, n.explained(err)
	}
	d.info = parseInfo(text)
	for _, check := range checks {
		check(d)
		if err := j.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return d.findings, nil
}

// parseInfo reads lines of name:value.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // RESP3 may prefix the text
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// number returns a number of INFO, or -1 if it is missing.
func (d *diagnosis) number(name string) int64 {
	n, err := strconv.ParseInt(d.info[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// config returns a setting. If CONFIG GET is refused, it adds a note and returns false.
func (d *diagnosis) config(name string) (string, bool) {
	found, err := d.node.do(d.ctx, "CONFIG", "GET", name).AsStrMap()
	if err == nil && found[name] != "" {
		return found[name], true
	}
	why := "the server does not know it"
	if err != nil {
		why = err.Error()
	}
	d.say(note, name, "%s is not known: CONFIG GET %[1]s is refused (%s)", name, why)
	return "", false
}

func (d *diagnosis) inCluster() bool {
	return d.node.redis.client.Mode() == rueidis.ClientModeCluster
}
