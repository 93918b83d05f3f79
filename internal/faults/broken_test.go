package faults

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/overlay"
)

// A defect is a change that breaks a promise, and the test that finds it: one of this
// suite, or of a package, where one process shows it better.
type defect struct {
	promise string
	what    string
	edits   []rig.Edit
	test    string
	in      string // the package of the test, from Latchkey's root; "": this one
}

// edit makes a list of one.
func edit(file, old, new string) []rig.Edit { return []rig.Edit{{File: file, Old: old, New: new}} }

// tokenAlone makes a commit write over whatever the record has become.
var tokenAlone = []rig.Edit{
	{File: "store/commit.lua", Old: "and redis.pcall('GETRANGE', KEYS[1], '12', '27') == base then", New: "then"},
	{File: "store/commit.lua", Old: "if is(KEYS[1], base) then", New: "if true then"},
}

// noFence makes it write no matter who has the lock, too.
var noFence = append(edit("store/commit.lua", "if holder ~= ARGV[1] then", "if false then"), tokenAlone...)

// noNumbers takes any reply for the reply to the next command.
var noNumbers = []rig.Edit{
	{File: "internal/scripting/sequence.go", Old: "if reply>>2 == call {", New: "if true {"},
	{File: "internal/scripting/sequence.go", Old: "n >= 0 && reply[n] == call", New: "n >= 0"},
	{File: "internal/scripting/plain.go", Old: "string(number) != strconv.FormatInt(call, 10) {", New: "string(number) == strconv.Itoa(-1) {"},
}

// entryLater makes a login put the session on the list of its user in an exchange of its own.
func entryLater(then string) []rig.Edit {
	return []rig.Edit{
		{File: "store/login.lua", Old: "redis.call('ZADD', list, ARGV[4], member)", New: ""},
		{File: "store/login.lua", Old: "last[2] - ARGV[5]", New: "ARGV[4] - ARGV[5]"},
		{File: "store/user_sessions.go", Old: "\tfor i := 1; ", New: "\tadd := func() ([]any, error) {\n\t\trecord, list := x.Keys.At(0), x.Keys.At(1)\n" +
			"\t\tctx, end := context.WithoutCancel(ctx), time.Now().Add(24*time.Hour).UnixMilli()\n" +
			"\t\treturn s.runner.Plain(ctx, record, transport.Command{\"ZADD\", list, end, record[len(record)-11:]})\n\t}\n" + then + "\tfor i := 1; "},
	}
}

var defects = []defect{
	{promise: "P1 no lost update", what: "no lock", test: "TestScriptFlush",
		edits: append(append(edit("store/take.lua", "token, 'NX', 'PX'", "token, 'PX'"), edit("store/take.go", `token, "NX", "PX"`, `token, "PX"`)...), noFence...)},
	{promise: "P1 no lost update", what: "a take believes the reply to SET", test: "TestOnlyTheReaderOfTheRecordKnowsWhoHasTheLock", in: "store",
		edits: []rig.Edit{
			{File: "store/take.go", Old: "holder, held := scripting.Text(values[0])", New: "ok, _ := replies[0].(string)\n\theld := ok == \"OK\""},
			{File: "store/take.go", Old: "if held && string(holder) != token {", New: "if holder, _ := scripting.Text(values[0]); !held && len(holder) > 0 {"},
		}},
	{promise: "P1 no lost update", what: "a lock alone: the release deletes whatever is there", test: "TestSpinSparesOthers", in: "internal/lease",
		edits: edit("internal/lease/release.lua", "if holder == ARGV[1] then", "if holder then")},
	{promise: "P1 no lost update", what: "an optimistic request replaces any record", test: "TestSaveLoadedIsRefused", in: "store",
		edits: edit("store/optimistic.lua", "found == ARGV[1] and ", "")},
	{promise: "P1 no lost update", what: "an optimistic request ignores who holds the session", test: "TestSaveLoadedIsRefused", in: "store",
		edits: edit("store/optimistic.lua", " and absent(KEYS[2])", "")},
	{promise: "P1 no lost update", what: "a Reopen goes on with what it had", test: "TestReopenGoesOnWithWhatIsStoredByThen", in: "middleware",
		edits: edit("session/keep.go", "s.values = opened.values", "_ = opened")},
	{promise: "P2 saved before answered", what: "the answer does not wait for the exchange", test: "TestAppKilledWithCommitAnswered",
		edits: edit("store/tenure.go", "\t\tt.flush(ctx, version)\n", "\t\tgo func() { t.mu.Lock(); defer t.mu.Unlock(); t.flush(ctx, version) }()\n\t\treturn nil\n")},
	{promise: "P2 saved before answered", what: "the handler's answer, though the commit failed", test: "TestAFailedCommitReplacesTheAnswer", in: "middleware",
		edits: edit("middleware/commit.go", "\trq.err = err\n\treturn err", "\treturn nil")},
	{promise: "P3 a stale holder cannot write", what: "no fence", test: "TestAppStoppedWithLateCommit",
		edits: noFence},
	{promise: "P3 a stale holder cannot write", what: "the token alone is the fence", test: "TestLateTakeAndCommitChangeNothing", in: "store",
		edits: tokenAlone},
	{promise: "P3 a stale holder cannot write", what: "a large record is stored without the token", test: "TestLateCommitsChangeNothing", in: "store",
		edits: []rig.Edit{
			{File: "store/commit.lua", Old: "if found[1] == ARGV[1] and", New: "if (staged or found[1] == ARGV[1]) and"},
			{File: "store/commit.lua", Old: "if holder ~= ARGV[1] then", New: "if not staged and holder ~= ARGV[1] then"},
		}},
	{promise: "P3 a stale holder cannot write", what: "a large record is stored over any other", test: "TestStagedRecordIsGone", in: "store",
		edits: []rig.Edit{
			{File: "store/commit.lua", Old: "and redis.pcall('GETRANGE', KEYS[1], '12', '27') == base then", New: "and (staged or redis.pcall('GETRANGE', KEYS[1], '12', '27') == base) then"},
			{File: "store/commit.lua", Old: "  if is(KEYS[1], base) then", New: "  if staged or is(KEYS[1], base) then"},
			{File: "store/replace.lua", Old: "if is(KEYS[1], base) then", New: "if KEYS[2] or is(KEYS[1], base) then"},
		}},
	{promise: "P3 a stale holder cannot write", what: "all large records of a session are staged in one place", test: "TestLateRecordIsNotMistakenForTheNext", in: "store",
		edits: edit("store/staged.go", `".new." + name`, `".new" + name[:0]`)},
	{promise: "P13 bounded size", what: "what is staged is never over", test: "TestStagedButNotCommitted", in: "store",
		edits: edit("store/staged.go", `record, "PX", stagedFor}`, `record}`)},
	{promise: "P4 out means out", what: "a take does not know a tombstone", test: "TestATakeOfWhatIsNotAsUsual", in: "store",
		edits: edit("store/take.go", "parsed, err := parse(k.id, text, b)", "parsed, err := parse(k.id, text, b)\n\tif len(text) > 36 && string(text[28:36]) == `\",\"gone\"` {\n\t\tparsed.Data, parsed.Created, err = []byte(\"{}\"), time.Now(), nil\n\t}")},
	{promise: "P4 out means out", what: "no tombstone: an ended session can be written to", test: "TestRedisPausedShortly",
		edits: edit("store/take.lua", "what == 'gone'", "what == 'never'")},
	{promise: "P4 out means out", what: "a login leaves the old id alive", test: "TestRedisPausedShortly",
		edits: edit("store/hold.go", "\t} else {\n\t\terr = h.end(ctx)\n\t}", "\t} else {\n\t\terr = h.Touch(ctx)\n\t}")},
	{promise: "P4 out means out", what: "a second click on Log in is refused", test: "TestADoubleClickOnLogin", in: "middleware",
		edits: edit("middleware/decide.go", "case gone && c.Renewed, o == gonePage && c.Changed:", "case o == gonePage && c.Changed && !c.Renewed:")},
	{promise: "P4 out means out", what: "a script gets a cookie over the new one", test: "TestABackgroundAnswerDoesNotUndoALogin", in: "middleware",
		edits: edit("middleware/fetch.go", " && navigates(rq.base.Header) {", " {")},
	{promise: "P5 bounded waiting", what: "any number may wait", test: "TestCallersAreFull", in: "internal/lease",
		edits: edit("internal/lease/callers.go", "case len(c.waiting) >= l.options.MaxWaiters && !l.again:", "case false:")},
	{promise: "P5 bounded waiting", what: "a wait lasts longer than LockWait", test: "TestClockJumpsBackwards",
		edits: edit("internal/lease/options.go", "remains() <= 0", "remains() <= -3*time.Second")},
	{promise: "P5 bounded waiting", what: "the session is locked before the body has come", test: "TestClientsDripBodies",
		edits: edit("middleware/readahead.go", "if r.Body == nil ||", "if true || r.Body == nil ||")},
	{promise: "P6 first come, first served", what: "the last comes first", test: "TestCallersAreServedInOrder", in: "internal/lease",
		edits: edit("internal/lease/callers.go", "\tfirst := c.waiting[0]\n\tc.waiting = slices.Delete(c.waiting, 0, 1)", "\tn := len(c.waiting) - 1\n\tfirst := c.waiting[n]\n\tc.waiting = slices.Delete(c.waiting, n, n+1)")},
	{promise: "P6 first come, first served", what: "who gives up gives up the place of its process", test: "TestABusyProcessGetsItsTurns", in: "store",
		edits: edit("internal/lease/acquire.go", "\tcase !a.won:\n", "\tcase !a.won:\n\t\tp.quit(a.options.Timeout)\n\t\tp = nil\n")},
	{promise: "P6 first come, first served", what: "a commit does not ask for the queue", test: "TestABusyProcessGetsItsTurns", in: "store",
		edits: edit("store/commit.lua", "local others = found[2]", "local others")},
	{promise: "P7 crash recovery", what: "a lock without a lease", test: "TestAppKilledAtLoad",
		edits: append(edit("store/take.lua", "'NX', 'PX', ARGV[2])", "'NX')"), edit("store/take.go", `"NX", "PX", span.Milliseconds())`, `"NX")`)...)},
	{promise: "P7 crash recovery", what: "a take forgets that its SET may have been done", test: "TestWireCommandLost",
		edits: edit("store/take.go", "return lease.Attempt{}, !again, err", "_ = again\n\t\treturn lease.HeldBy(\"another\"), true, nil")},
	{promise: "P7 crash recovery", what: "a take forgets that its SET may be done yet", test: "TestLateSetOfATakeThatGaveUpLeavesNoLock", in: "store",
		edits: edit("store/take.go", "found.Ambiguous = found.Ambiguous || broken ||", "found.Ambiguous = found.Ambiguous || broken && false ||")},
	{promise: "P7 crash recovery", what: "a take leaves the lock of an ended session shut", test: "TestATakeOfWhatIsNotAsUsual", in: "store",
		edits: edit("store/take.lua", "if redis.pcall('GET', KEYS[2]) == token then", "if false then")},
	{promise: "P7 crash recovery", what: "a panic saves", test: "TestAppPanics",
		edits: edit("middleware/middleware.go", "rq.abandon()", `_ = rq.commit("a panic")`)},
	{promise: "P8 Redis away", what: "an empty session where Redis does not answer", test: "TestRedisPaused",
		edits: edit("middleware/fetch.go", "case errors.Is(err, store.ErrNotFound):", "case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrUnavailable):")},
	{promise: "P8 Redis away", what: "each that waits finds out anew that Redis is silent", test: "TestRedisFallsSilentAndAllAreAnsweredInTime", in: "middleware",
		edits: edit("store/commit.go", "\t\tt.lease.Dismiss(err) //", "\t\t//")},
	{promise: "P9 free when unused", what: "signatures are not checked", test: "TestForgedCookies",
		edits: edit("middleware/check.go", "hmac.Equal(mac.Sum(k.sum[:0]), signature)", "len(signature) > 0 && !hmac.Equal(nil, signature)")},
	{promise: "P9 free when unused", what: "an unknown id is adopted", test: "TestAnUnknownIDIsNotAdopted", in: "middleware",
		edits: append(edit("middleware/fetch.go", "rq.origin = unknownID\n", "rq.origin = unknownID\n\t\trq.identify(id)\n"),
			edit("middleware/commit.go", "id := key.id()\n", "id := key.id()\n\tif do == create {\n\t\tid = rq.SessionID()\n\t}\n")...)},
	{promise: "P10 two round trips", what: "one more before each commit", test: "TestRequests", in: "store",
		edits: edit("store/commit.go", "\tbegun := time.Now()\n", "\t_ = t.store.Ping(ctx)\n\tbegun := time.Now()\n")},
	{promise: "P11 ids are secrets", what: "the secret is the key in Redis", test: "TestTheTokenIsInSetCookieOnly", in: "middleware",
		edits: edit("internal/secret/secret.go", "\tsum := sha256.Sum256(b)\n\tvar text [22]byte\n\tbase64.RawURLEncoding.Encode(text[:], sum[:16])\n\treturn string(text[:])", "\treturn base64.RawURLEncoding.EncodeToString(b)")},
	{promise: "P12 two time-outs", what: "the absolute one is not kept", test: "TestClockPastLifetime",
		edits: edit("store/terms.go", "return now.Add(-t.Lifetime).UnixMilli()", "return 0")},
	{promise: "P12 two time-outs", what: "a session runs out while it is held", test: "TestAHeldSessionDoesNotRunOut", in: "store",
		edits: append(edit("store/take.lua", "math.max(ARGV[2] + 2000, idle)", "1"),
			edit("store/extend.lua", "redis.call('PEXPIRE', KEYS[1], ARGV[2] + 2000, 'GT')", "")...)},
	{promise: "P13 bounded size", what: "any size is stored", test: "TestARecordThatCannotBeUsed", in: "middleware",
		edits: edit("store/take.lua", "if #record > tonumber(ARGV[3]) then", "if false then")},
	{promise: "P11 two users never see each other's data", what: "replies have no number", test: "TestWireRepeatsOnOneConnection",
		edits: noNumbers},
	{promise: "P11 two users never see each other's data", what: "the number of a read comes ahead of its last reply", test: "TestWireRepeatsOnOneConnection",
		edits: append(edit("internal/scripting/plain.go", "append(commands, transport.Command{\"PING\", call})", "append(append(commands[:last:last], transport.Command{\"PING\", call}), commands[last])"),
			edit("internal/scripting/plain.go", "	for i, reply := range replies {", "	replies[last], replies[last+1] = replies[last+1], replies[last]\n	for i, reply := range replies {")...)},
	{promise: "P11 two users never see each other's data", what: "a reply that nobody waits for any more goes to the next call", test: "TestDeadlineOfTheFirst", in: "locker/transport",
		edits: edit("locker/transport/link.go", "if !x.done && !x.taken {", "if !x.done {")},
	{promise: "P14 a user's sessions", what: "a take does not ask for the mark", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/take.go", "if t.mark = string(mark); !alive(string(mark), k.keys, parsed.epoch) {", "if t.mark = string(mark); false {")},
	{promise: "P14 a user's sessions", what: "a take by the script does not ask for the mark", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/take.go", "\task(&x, k.keys)\n", "")},
	{promise: "P14 a user's sessions", what: "a read does not ask for the mark", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/load.go", "ofUser && !alive(mark, keys, record.epoch) || ", "mark == `\"` || ")},
	{promise: "P14 a user's sessions", what: "a read by the script does not ask for the mark", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/load.go", "\task(&x, keys)\n", "")},
	{promise: "P14 a user's sessions", what: "a commit does not ask for the mark", test: "TestEndedSessionsAreOverAtOnce", in: "store",
		edits: edit("store/commit.go", "\tt.ask(&x, base)\n", "")},
	{promise: "P14 a user's sessions", what: "a lease is renewed without asking for the mark", test: "TestALeaseOfAnEndedSession", in: "store",
		edits: edit("store/commit.go", "\task(&x, t.keys)\n\terr :=", "\terr :=")},
	{promise: "P14 a user's sessions", what: "what is saved without a lock does not ask for the mark", test: "TestSaveLoadedAfterTheEnd", in: "store",
		edits: edit("store/optimistic.go", "\task(&x, keys)\n", "")},
	{promise: "P14 a user's sessions", what: "who comes after the end joins the holder", test: "TestWhoComesAfterTheEndDoesNotJoinTheHolder", in: "store",
		edits: edit("store/tenure.go", "return len(t.keys) < userKeys || !t.asked.Before(began)", "return true")},
	{promise: "P14 a user's sessions", what: "no mark is every mark", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/user.lua", "if epoch and string.sub", "if epoch and mark ~= '' and string.sub")},
	{promise: "P14 a user's sessions", what: "an epoch comes back", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/user_record.go", "least+int64(scripting.Chance()*(8*least))", "least+int64(scripting.Chance())")},
	{promise: "P14 a user's sessions", what: "a session is put on the list after the answer", test: "TestHistoriesOfUsers", in: "middleware",
		edits: entryLater("\t\tgo func() { time.Sleep(time.Millisecond); _, _ = add() }()\n")},
	{promise: "P14 a user's sessions", what: "a session is put on the list by another exchange", test: "TestRequestsOfUsers", in: "store",
		edits: entryLater("\t\tif _, err := add(); err != nil {\n\t\t\treturn nil, err\n\t\t}\n")},
	{promise: "P14 a user's sessions", what: "a Renew does not ask for the session before", test: "TestARenewOfAnEndedSessionBeginsNone", in: "store",
		edits: edit("store/login.lua", "elseif not again and old ~= '' and (alive", "elseif false and (alive")},
	{promise: "P14 a user's sessions", what: "End leaves the session on the list", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/end.lua", "-- of a user: redis.call('ZREM', KEYS[2], member)", "")},
	{promise: "P14 a user's sessions", what: "EndAll ends one after another", test: "TestHistoriesOfUsers", in: "middleware",
		edits: edit("store/user_sessions.go", "\treply, err := s.runner.Run(ctx, endAllScript,", "\tlisted, _ := s.runner.Plain(ctx, s.listKey(tag), transport.Command{\"ZRANGE\", s.listKey(tag), 0, -1})\n"+
			"\tmembers, _ := listed[0].([]any)\n\tfor _, m := range members {\n\t\ttext, _ := scripting.Text(m)\n"+
			"\t\tif id := tag + \".\" + string(text); !slices.Contains(except, id) {\n\t\t\t_ = s.end(ctx, id)\n\t\t}\n\t}\n"+
			"\treply, err := s.runner.Run(ctx, endAllScript,")},
	{promise: "P14 a user's sessions", what: "EndAll ends one after another, and dies on the way", test: "TestAppKilledInEndAll",
		edits: edit("store/user_sessions.go", "\treply, err := s.runner.Run(ctx, endAllScript,", "\tlisted, _ := s.runner.Plain(ctx, s.listKey(tag), transport.Command{\"ZRANGE\", s.listKey(tag), 0, -1})\n"+
			"\tmembers, _ := listed[0].([]any)\n\tfor _, m := range members {\n\t\ttext, _ := scripting.Text(m)\n"+
			"\t\tif id := tag + \".\" + string(text); !slices.Contains(except, id) {\n\t\t\t_ = s.end(ctx, id)\n\t\t}\n\t}\n"+
			"\treply, err := s.runner.Run(ctx, endAllScript,")},
	{promise: "P14 a user's sessions", what: "a list forgets a session that gets a new id", test: "TestListUserWhileSessionsChange", in: "store",
		edits: edit("store/user_list.go", "round == listRounds", "round == 1")},
	{promise: "P14 a user's sessions", what: "a list that seems lost ends a login", test: "TestListUserEndsNoLogin", in: "store",
		edits: edit("store/lost.lua", "  return 0\n", "")},
	{promise: "P14 a user's sessions", what: "an EndAll takes an epoch of before", test: "TestALateEndUser", in: "store",
		edits: edit("store/endall.lua", "string.sub(mark, 1, 15) + 1)", "string.sub(mark, 1, 14) .. '0')")},
	{promise: "P15 any Redis", what: "a slot that moves is refused", test: "TestClusterGrowsAndShrinks",
		edits: edit("internal/scripting/put_off.go", `"TRYAGAIN ", `, "")},
	{promise: "P15 any Redis", what: "go-redis is not made to look for a new master", test: "TestClusterMasterKilled",
		edits: edit("store/goredisstore/cluster.go", "c.redis.ReloadState(ctx)", "_ = ctx")},
	{promise: "P15 any Redis", what: "an empty session where a part of the cluster does not answer", test: "TestClusterThirdDown",
		edits: edit("middleware/fetch.go", "case errors.Is(err, store.ErrNotFound):", "case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrUnavailable):")},
}

// Each defect is found. It is built into a Latchkey of its own, from changed files, and the
// tests that find it are ordinary ones.
func TestBroken(t *testing.T) {
	if os.Getenv(overlay.Env) != "" {
		t.Fatal("this Latchkey is broken already")
	}
	for i, d := range defects {
		if testing.Short() && i%4 > 0 {
			continue // the table says so
		}
		t.Run(d.promise+": "+d.what, func(t *testing.T) {
			begun := time.Now()
			out, err := d.run(t)
			found := err != nil && failed(d.test).MatchString(out)
			caught(d, time.Since(begun), found)
			if !found {
				t.Errorf("%s did not find it: %v\n%s", d.test, err, out)
			}
		})
	}
}

// Each defect is one of today's Latchkey, and so is what another version has changed: the texts
// that are replaced are there. make check asks this first, since whole runs take long to say so.
func TestDefectsApply(t *testing.T) {
	apply := func(what string, edits []rig.Edit) {
		if _, err := overlay.Write(t.TempDir(), edits); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, d := range defects {
		apply(d.what, d.edits)
	}
	for what, v := range map[string]*demotest.Variant{
		"a later version": &laterVersion, "other queues": &otherQueues, "foreign records": &foreignVersion,
		"panics": &panicking, "another clock": &clockwork,
	} {
		apply(what, v.Edits)
	}
}

// run runs the test on the broken Latchkey.
func (d defect) run(t *testing.T) (out string, err error) {
	changed, err := overlay.Write(t.TempDir(), d.edits)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := []string{"test", "-count=1", "-short", "-timeout", "1m", "-overlay", changed, "-run", "^" + d.test + "$"}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.WaitDelay = 5 * time.Second // for the processes that it has started
	if d.in != "" {
		cmd.Dir = filepath.Join("..", "..", d.in)
	}
	cmd.Env = append(os.Environ(), overlay.Env+"="+changed)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// failed matches what go test prints of a test that fails. A package that does not build
// has no such test.
func failed(test string) *regexp.Regexp { return regexp.MustCompile(`(?m)^--- FAIL: ` + test + ` `) }
