package main

import (
	"cmp"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A right is the permission to run a command as Latchkey runs it.
type right struct {
	rule string   // of ACL SETUSER
	args []string // KEY and CHANNEL stand for a key and a channel of Latchkey
}

// The rights in store/REDIS.md. Without the rights of notifying, processes that wait for each other poll; all
// else works.
var (
	neededRights = rights("+ping PING", "+get GET KEY", "+getrange GETRANGE KEY 0 1",
		"+set SET KEY 1", "+del DEL KEY", "+pexpire PEXPIRE KEY 1", "+pttl PTTL KEY", "+rename RENAME KEY KEY", "+time TIME",
		"+eval EVAL 1 1 KEY", "+evalsha EVALSHA 1 1 KEY")
	userRights = rights("+zscore ZSCORE KEY 1", "+zadd ZADD KEY 1 1", "+zrem ZREM KEY 1", "+zcard ZCARD KEY",
		"+zrange ZRANGE KEY 0 1", "+zremrangebyscore ZREMRANGEBYSCORE KEY 0 1")
	// Without it, requests need more round trips.
	readRights = rights("+mget MGET KEY KEY")

	notifyRights = rights("+publish PUBLISH CHANNEL 1", "+subscribe SUBSCRIBE CHANNEL",
		"+pubsub|numsub PUBSUB NUMSUB CHANNEL")
	selectRights        = rights("+select SELECT 0") // for another database than 0
	clusterRights       = rights("+cluster|slots CLUSTER SLOTS", "+cluster|shards CLUSTER SHARDS", "+asking ASKING")
	clusterNotifyRights = rights("+spublish SPUBLISH CHANNEL 1", "+ssubscribe SSUBSCRIBE CHANNEL")
)

func rights(lines ...string) (all []right) {
	for _, line := range lines {
		words := strings.Fields(line)
		all = append(all, right{words[0], words[1:]})
	}
	return all
}

// rights checks that the user --acl-user has the rights that a program needs, and no more. Without that flag
// it checks the user that it logs in as. That may be an operator's, while the program has another user, so a
// missing right is only a note.
func (d *diagnosis) rights() {
	user, err := d.aclUser, error(nil)
	if user == "" {
		user, err = d.node.do(d.ctx, "ACL", "WHOAMI").ToString()
	}
	if err != nil {
		d.say(note, "acl", "rights are not checked: ACL WHOAMI is refused (%s)", err)
		return
	}
	needed, notify := d.needs()
	needed = d.known(user, needed, wrong, "requests fail")
	logins := d.known(user, userRights, wrong, "logins or logouts fail")
	reading := d.known(user, readRights, note, "requests need more round trips")
	notify = d.known(user, notify, note, "processes cannot notify each other, and poll instead")
	missing, err := d.missing(user, needed)
	if err != nil && d.aclUser != "" && strings.Contains(err.Error(), "User '"+user+"' not found") {
		d.say(wrong, "acl", "there is no user %s: a program cannot log in as this user: make it", user).do(d.leastUser(user))
		return
	}
	if err != nil {
		d.say(note, "acl", "rights of the user %s are not checked: ACL DRYRUN is refused (%s)", user, err)
		return
	}
	if len(missing) > 0 && d.aclUser == "" {
		d.say(note, "acl", "the user %s lacks rights that a program needs: "+
			"name the user of the program by --acl-user, to check that user", user)
		return
	}
	d.logins(user, logins, missing)
	if lacks, err := d.missing(user, reading); err == nil && len(lacks) > 0 && len(missing) == 0 {
		d.say(note, "acl", "the user %s may not read several keys at once: requests need more round trips", user).do(grant(user, lacks))
	}
	d.notifies(user, notify)
	d.account(user)
	if beyond, err := d.missing(user, rights("+flushall FLUSHALL")); err == nil && len(beyond) == 0 {
		d.say(note, "acl", "the user %s may do more than is needed, such as FLUSHALL: "+
			"give the program a user with the least rights, and check it with --acl-user latchkey", user).do(d.leastUser("latchkey"))
	}
}

// needs returns the rights that each program needs here, and those of notifying.
func (d *diagnosis) needs() (needed, notify []right) {
	switch {
	case d.inCluster():
		return slices.Concat(neededRights, clusterRights), clusterNotifyRights
	case d.job.redis.option.SelectDB != 0:
		return slices.Concat(neededRights, selectRights), notifyRights
	}
	return neededRights, notifyRights
}

// leastUser returns the command that makes a user with the rights of store/REDIS.md.
func (d *diagnosis) leastUser(user string) string {
	needed, notify := d.needs()
	rules := []string{"ACL SETUSER", user, "on", ">PASSWORD", "resetkeys", "~" + d.prefix + "*", "resetchannels", "&" + turn + "*", "-@all"}
	for _, r := range slices.Concat(needed, readRights, userRights, notify) {
		rules = append(rules, r.rule)
	}
	return strings.Join(rules, " ")
}

// account checks whether a program can log in as the user. The right to ask is rare, since the reply has the hashes
// of passwords.
func (d *diagnosis) account(user string) {
	if state, err := d.aclOf(user); err == nil && slices.Contains(state.flags, "off") {
		d.say(wrong, "acl", "the user %s is off: a program cannot log in as this user", user).do("ACL SETUSER " + user + " on")
	}
}

// An aclState is what ACL GETUSER says.
type aclState struct {
	flags    []string
	channels string
	simple   bool // there are no selectors, which could permit more
}

// aclOf asks only if that is permitted: a refusal would be a line of ACL LOG.
func (d *diagnosis) aclOf(user string) (s aclState, _ error) {
	self, err := d.node.do(d.ctx, "ACL", "WHOAMI").ToString()
	if err != nil {
		return s, err
	}
	if lacks, err := d.missing(self, rights("+acl|getuser ACL GETUSER default")); err != nil || len(lacks) > 0 {
		return s, errors.New("ACL GETUSER is not permitted")
	}
	reply, err := d.node.do(d.ctx, "ACL", "GETUSER", user).AsMap()
	if err != nil {
		return s, err
	}
	flags, channels, selectors := reply["flags"], reply["channels"], reply["selectors"]
	s.flags, _ = flags.AsStrSlice()
	s.channels, _ = channels.ToString()
	more, _ := selectors.ToArray()
	s.simple = len(more) == 0
	return s, nil
}

// lacksChannel reports whether the user surely lacks the channels. Redis checks a command before its channel, so a
// dry run of a command that is not permitted says nothing of the channel.
func (d *diagnosis) lacksChannel(user string) bool {
	s, err := d.aclOf(user)
	return err == nil && s.simple && !slices.ContainsFunc(strings.Fields(s.channels), func(pattern string) bool {
		found, _ := path.Match(strings.TrimPrefix(pattern, "&"), turn+"doctor")
		return found
	})
}

// logins says whether the user has the rights for sessions, and for logins. all are the rights for logins that the server
// knows, and missing are those for sessions that the user lacks. A user
// without any right for logins may be meant so. If only some of them are missing, that is a mistake.
func (d *diagnosis) logins(user string, all []right, missing []string) {
	ofLogins, err := d.missing(user, all)
	ofLogins = slices.DeleteFunc(ofLogins, func(rule string) bool { return slices.Contains(missing, rule) })
	some := err == nil && len(ofLogins) > 0
	switch {
	case len(missing) > 0:
		d.say(wrong, "acl", "the user %s lacks rights", user).do(grant(user, missing))
	case some:
		d.say(fine, "acl", "the user %s has the rights for sessions without logins", user)
	default:
		d.say(fine, "acl", "the user %s has the rights that are needed", user)
	}
	if !some {
		return
	}
	level := note
	if len(ofLogins) < len(all) && d.aclUser != "" {
		level = wrong
	}
	what := "so each Login fails"
	if len(ofLogins) < len(all) {
		what = "so logins or logouts fail"
	}
	d.say(level, "acl", "the user %s lacks rights for logins, %s", user, what).do(grant(user, ofLogins))
}

// notifies adds a note if the user lacks the rights of notifying.
func (d *diagnosis) notifies(user string, all []right) {
	missing, err := d.missing(user, all)
	if err != nil || len(missing) == 0 {
		return
	}
	if channel := "&" + turn + "*"; !slices.Contains(missing, channel) && d.lacksChannel(user) {
		missing = append(missing, channel)
	}
	d.say(note, "acl", "processes of the user %s cannot notify each other, and poll instead", user).do(grant(user, missing))
}

// grant returns the command that adds rights to a user.
func grant(user string, rules []string) string {
	return "ACL SETUSER " + user + " " + strings.Join(rules, " ")
}

var unknownCommand = regexp.MustCompile(`(?i)command '.*' not found`)

// known returns the rights for commands that the server knows, and reports the other commands. No right helps if
// rename-command has disabled a command, or if the server is not Redis.
func (d *diagnosis) known(user string, all []right, level, without string) (known []right) {
	var unknown []string
	for _, r := range all {
		if _, err := d.dryRun(user, r); err != nil && unknownCommand.MatchString(err.Error()) {
			unknown = append(unknown, strings.TrimPrefix(r.rule, "+"))
		} else {
			known = append(known, r)
		}
	}
	if len(unknown) > 0 {
		d.say(level, "commands", "the server does not know the command %s, so %s: remove its rename-command from redis.conf, and restart the server; "+
			"if there is none, use Redis 7.0 or later", strings.Join(unknown, ", "), without)
	}
	return known
}

// dryRun asks Redis whether the user may run a command, and returns its verdict.
func (d *diagnosis) dryRun(user string, r right) (verdict string, _ error) {
	words := []string{"ACL", "DRYRUN", user}
	for _, arg := range r.args {
		words = append(words, cmp.Or(map[string]string{"KEY": d.prefix + "{doctor}", "CHANNEL": turn + "doctor"}[arg], arg))
	}
	return d.node.do(d.ctx, words...).ToString()
}

var refusedKey = regexp.MustCompile(`(?i)the '?.*'? key`)

// missing returns the rules that ACL SETUSER must add for these rights.
func (d *diagnosis) missing(user string, all []right) (rules []string, _ error) {
	for _, r := range all {
		verdict, err := d.dryRun(user, r)
		rule := ""
		switch {
		case err != nil:
			return nil, err
		case verdict == "OK":
			continue
		case refusedKey.MatchString(verdict): // asked first, since the key has any prefix
			rule = "~" + d.prefix + "*"
		case strings.Contains(verdict, "channel"):
			rule = "&" + turn + "*"
		default:
			rule = r.rule
		}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}
