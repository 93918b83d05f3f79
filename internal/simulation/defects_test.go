package simulation

import "github.com/a2139e8d/latchkey/internal/overlay"

// A defect is a Latchkey that is broken on purpose, and where to look for that.
type defect struct {
	what    string
	profile string
	edits   []overlay.Edit
}

// edit makes a list of one.
func edit(file, old, new string) []overlay.Edit {
	return []overlay.Edit{{File: file, Old: old, New: new}}
}

// The parts of commit.lua's fence: the lock holds the token, and the record is the base.
var (
	anyToken = []overlay.Edit{
		{File: "store/commit.lua", Old: "if holder ~= ARGV[1] then", New: "if false then"},
	}
	anyBase = []overlay.Edit{
		{File: "store/commit.lua", Old: "and redis.pcall('GETRANGE', KEYS[1], '12', '27') == base then", New: "then"},
		{File: "store/commit.lua", Old: "if is(KEYS[1], base) then", New: "if true then"},
	}
	noLock = []overlay.Edit{
		{File: "store/take.lua", Old: "'NX', 'PX', ARGV[2]", New: "'PX', ARGV[2]"},
		{File: "store/take.go", Old: `token, "NX", "PX"`, New: `token, "PX"`},
	}
	noLease = []overlay.Edit{
		{File: "store/take.lua", Old: "'NX', 'PX', ARGV[2])", New: "'NX')"},
		{File: "store/take.go", Old: `"NX", "PX", span.Milliseconds())`, New: `"NX")`},
	}
	// readFirst makes a plain take believe the reply to SET, and read the record before that. (If it
	// only believed it, the fence would hide that here. Package model finds it.)
	readFirst = []overlay.Edit{
		{File: "store/take.go", Old: "append(k.read[:0], \"MGET\", lock, record),", New: "append(k.set[:0], \"SET\", lock, token, \"NX\", \"PX\", any(span.Milliseconds())),"},
		{File: "store/take.go", Old: "append(k.set[:0], \"SET\", lock, token, \"NX\", \"PX\", span.Milliseconds()),", New: "append(k.read[:0], \"MGET\", lock, record),"},
		{File: "store/take.go", Old: "left, _ := replies[1].(int64)", New: "replies[0], replies[2] = replies[2], replies[0]\n\tleft, _ := replies[1].(int64)"},
		{File: "store/take.go", Old: "holder, held := scripting.Text(values[0])", New: "ok, _ := replies[0].(string)\n\theld := ok == \"OK\""},
		{File: "store/take.go", Old: "if held && string(holder) != token {", New: "if holder, _ := scripting.Text(values[0]); !held && len(holder) > 0 {"},
	}
	renameAnyBase = []overlay.Edit{
		{File: "store/commit.lua", Old: "and redis.pcall('GETRANGE', KEYS[1], '12', '27') == base then", New: "and (staged or redis.pcall('GETRANGE', KEYS[1], '12', '27') == base) then"},
		{File: "store/commit.lua", Old: "  if is(KEYS[1], base) then", New: "  if staged or is(KEYS[1], base) then"},
	}
)

func all(lists ...[]overlay.Edit) (edits []overlay.Edit) {
	for _, list := range lists {
		edits = append(edits, list...)
	}
	return edits
}

var defects = []defect{
	// The fence.
	{"no fence", "late", all(anyToken, anyBase)},
	{"the fence is the token alone", "late", anyBase},
	{"another lock has no fence", "mixed", edit("store/replace.lua", "if is(KEYS[1], base) then", "if true then")},
	{"a repetition of what may have been done is refused for certain", "cut", edit("store/commit.lua", "tonumber(ARGV[#ARGV]) < 0 and 3 or 0", "0")},

	// Large records.
	{"a large record is stored over any other", "late", renameAnyBase},
	{"all large records of a session are staged at one key", "large", edit("store/staged.go", `".new." + name`, `".new." + name[:0]`)},
	{"what is staged is never over", "late", edit("store/staged.go", `record, "PX", stagedFor}`, `record}`)},

	// The plain take.
	{"a take reads the record before it has the lock", "crowd", readFirst},
	{"a take does not know a tombstone", "calm", edit("store/take.go", "parsed, err := parse(k.id, text, b)", "parsed, err := parse(k.id, text, b)\n\tif len(text) > 36 && string(text[28:36]) == `\",\"gone\"` {\n\t\tparsed.Data, parsed.Created, err = []byte(\"{}\"), time.Now(), nil\n\t}")},
	{"a take forgets that its SET may have been done", "lost replies", edit("store/take.go", "return lease.Attempt{}, !again, err", "_ = again\n\t\treturn lease.HeldBy(\"another\"), true, nil")},

	// The lock.
	{"no lock", "calm", noLock},
	{"a lock without a lease", "crashes", noLease},
	{"a release frees whoever has the lock", "crowd", edit("internal/lease/release.lua", "if holder == ARGV[1] then", "if holder then")},
	{"the lease is not renewed", "calm", edit("internal/lease/renew.go", "_ = l.extend(context.Background(), min(l.options.Lease, l.limit.Sub(now)))", "l.setTimer(l.end.Sub(now))")},
	{"an extension extends nothing", "calm", edit("store/extend.lua", "redis.call('PEXPIRE', KEYS[2], ARGV[2])", "")},
	{"no sweep after a lost reply", "lost replies", edit("internal/lease/sweep.go", "\tif first > 0 {", "\tif _ = run; true {\n\t\treturn\n\t} else if first > 0 {")},

	// The tenure.
	{"an answer before the commit is stored", "crashes", edit("store/tenure.go", "\t\tt.flush(ctx, version)\n", "\t\tgo func() { t.mu.Lock(); defer t.mu.Unlock(); t.flush(ctx, version) }()\n\t\treturn nil\n")},
	{"a version counts as stored that is not", "cut", edit("store/commit.go", "\t\tt.fail(err, to)\n\t\treturn\n", "\t\tt.fail(err, to)\n\t\tt.stored = version\n\t\treturn\n")},
	{"a commit forgets the last version of its group", "crowd", edit("store/commit.go", "t.stored, t.heard, t.asked = to, base, others, version, ", "t.stored, t.heard, t.asked = to, base, others, t.newest, ")},
	{"a group is written as its first version", "crowd", edit("store/tenure.go", "t.record, t.size, t.write, t.read, t.ended = w.record, int32(t.store.sizeOf(w.record)), w, nil, w.ended", "if t.record, t.size, t.read, t.ended = w.record, int32(t.store.sizeOf(w.record)), nil, w.ended; t.written <= t.stored {\n\t\t\tt.write = w\n\t\t}")},
	{"a hold joins what a commit has failed to store", "cut", all(
		edit("store/tenure.go", "case t.err != nil: // what it was", "case false: // what it was"),
		edit("store/commit.go", "\tt.err = err\n", "\tt.stored, t.written = t.newest, t.newest\n"))},
	{"a read that may be stale is no error", "cut", edit("store/hold.go", "if !h.joined && (", "if true || (")},
	{"a tenure goes on after a logout", "calm", edit("store/tenure.go", "if t.ended || t.read != nil", "if t.read != nil")},
	{"a hold goes on for longer than its MaxHold", "calm", edit("internal/lease/lease.go", "l.limit = now.Add(l.options.MaxHold)", "l.limit = now.Add(time.Hour)")},

	// The queue and the callers.
	{"a place is dropped behind the one that has its turn", "turns", edit("internal/lease/queue.lua", "keep(queue, rest)", "keep(queue, string.match(rest, '^%S+ (.*)$') or '')")},
	{"a commit does not ask for the queue", "crowd", edit("store/commit.lua", "local others = found[2]", "local others")},
	{"a place is left in the queue", "crowd", edit("internal/lease/queue.go", "if p.name != \"\" {\n\t\tl := p.lease", "if false {\n\t\tl := p.lease")},
	{"who gives up gives up the place of the process", "turns", edit("internal/lease/callers.go", "\tnext.place = l.place\n", "\tgo l.place.quit(DefaultTimeout)\n")},
	{"nobody is notified", "calm", edit("internal/lease/queue.go", "case p.notified <- struct{}{}:", "case (chan struct{})(nil) <- struct{}{}:")},
	{"any number may wait", "crowd", edit("internal/lease/callers.go", "case len(c.waiting) >= l.options.MaxWaiters && !l.again:", "case false:")},
	{"a wait lasts longer than LockWait", "calm", edit("internal/lease/options.go", "time.Until(l.began.Add(l.options.Wait))", "time.Until(l.began.Add(3*l.options.Wait))")},
	{"the last comes first", "crowd", edit("internal/lease/callers.go", "\tfirst := c.waiting[0]\n\tc.waiting = slices.Delete(c.waiting, 0, 1)", "\tn := len(c.waiting) - 1\n\tfirst := c.waiting[n]\n\tc.waiting = slices.Delete(c.waiting, n, n+1)")},

	// What is saved without the lock, and the second run.
	{"optimistic without the stamp", "calm", edit("store/optimistic.lua", "found == ARGV[1] and ", "")},
	{"optimistic that ignores a holder", "calm", edit("store/optimistic.lua", " and absent(KEYS[2])", "")},
	{"a second run builds on what the first one has read", "calm", all(
		edit("middleware/optimistic.go", "attempt: &attempt{again: true,", "attempt: &attempt{again: true, record: a.record,"),
		edit("middleware/fetch.go", "return rq.hold.Record, rq.attempt.err", "return rq.attempt.record, rq.attempt.err"))},
	{"a handler runs again for nothing", "calm", edit("middleware/optimistic.go", "case err == nil && record.Same(a.record):", "case false:")},
	{"a handler runs again after its Commit", "calm", edit("middleware/optimistic.go", "case by != handlerEnd, rq.savedInside():", "case rq.savedInside():")},

	// Reopen, Discard and Update.
	{"a Reopen goes on with what it had", "calm", edit("session/keep.go", "s.values = opened.values", "_ = opened")},
	{"Discard keeps what was done", "calm", edit("session/reopen.go", "\ts.reset()\n\tswitch snapshot", "\tif true {\n\t\treturn\n\t}\n\ts.reset()\n\tswitch snapshot")},
	{"Discard keeps a Renew or a Destroy", "calm", edit("session/reopen.go", "\ts.reset()\n\tswitch snapshot", "\ts.err = nil\n\tswitch snapshot")},
	{"an Update has no lock", "calm", edit("middleware/update.go", "\t\terr = f(u.session)\n", "\t\t_ = u.hold.Touch(ctx)\n\t\tif err = f(u.session); err == nil {\n\t\t\tu.hold, err = s.store.Take(ctx, id, terms)\n\t\t}\n")},
	{"an Update puts the idle time-out off", "calm", edit("middleware/update.go", "terms.Quiet, terms.Label = true, \"Update\"", "terms.Label = \"Update\"")},

	// The end of a session, and its time-outs.
	{"no tombstone", "calm", edit("store/hold.go", "const tombstoneTime = time.Minute", "const tombstoneTime = time.Millisecond")},
	{"a login leaves the old id alive", "calm", edit("store/hold.go", "err = h.end(ctx)", "err = h.Touch(ctx)")},
	{"a login in an ended session is refused", "calm", edit("middleware/decide.go", "case gone && c.Renewed, o == gonePage && c.Changed:", "case o == gonePage && c.Changed && !c.Renewed:")},
	{"a script in an ended session gets a cookie", "calm", edit("middleware/fetch.go", " && navigates(rq.base.Header) {", " {")},
	{"to read a session does not put its time-out off", "short", all(
		edit("store/load.lua", "redis.call('PEXPIRE', KEYS[1], idle, 'GT')", "redis.call('EXISTS', KEYS[1])"),
		edit("store/load.go", `key, ttl, "GT"`, `key, 1, "GT"`))},
	{"to read a session takes away what its holder gave it", "short", edit("store/load.go", `key, ttl, "GT"`, `key, ttl`)},
	{"a session runs out while it is held", "short", edit("store/take.lua", "math.max(ARGV[2] + 2000, idle)", "1")},
	{"a record that was saved never runs out", "short", edit("store/commit.lua", "redis.pcall('SET', KEYS[1], record, 'PX', ttl)", "redis.pcall('SET', KEYS[1], record)")},

	// The sessions of users.
	{"a take does not ask for the mark", "users", edit("store/take.go", "!alive(string(mark), k.keys, parsed.epoch)", "false")},
	{"a commit does not ask for the mark", "users", edit("store/commit.lua", "  -- of a user: and found[3] == ARGV[#ARGV - 1]\n", "")},
	{"a read does not ask for the mark", "users", edit("store/load.go", "ofUser && !alive(", "false && !alive(")},
	{"who comes after the end joins its holder", "users", edit("store/tenure.go", "return len(t.keys) < userKeys || !t.asked.Before(began)", "return true")},
	{"a login forgets the epoch", "users", edit("store/login.lua", "head .. epoch .. rest", "ARGV[2]")},
	{"a login begins with an epoch that was there before", "users", edit("store/user_record.go", "least+int64(scripting.Chance()*(8*least))", "least+int64(scripting.Chance()*2)")},
	{"an EndAll ends nobody", "users", edit("store/endall.lua", "  redis.call('DEL', list, marked)\n", "")},
	{"an EndAll but one spares all", "users", edit("store/endall.lua", "string.format('%d', string.sub(mark, 1, 15) + 1)", "string.sub(mark, 1, 15)")},
	{"an EndAll but one spares nobody", "users", edit("store/endall.lua", "mark = mark .. ' ' .. ARGV[i]", "mark = mark .. ' '")},

	// The answer.
	{"a panic saves", "calm", edit("middleware/middleware.go", "rq.abandon()", `_ = rq.commit("a panic")`)},
	{"the handler's answer, though the commit failed", "cut", edit("middleware/commit.go", "\trq.err = err\n\treturn err", "\treturn nil")},
	{"an empty session where Redis does not answer", "silent", edit("middleware/fetch.go", "case errors.Is(err, store.ErrNotFound):", "case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrUnavailable):")},

	// The transport, and the repetition above it.
	{"replies have no number", "doubled", []overlay.Edit{
		{File: "internal/scripting/sequence.go", Old: "if reply>>2 == call {", New: "if true {"},
		{File: "internal/scripting/sequence.go", Old: "n >= 0 && reply[n] == call", New: "n >= 0"},
		{File: "internal/scripting/plain.go", Old: "string(number) != strconv.FormatInt(call, 10) {", New: "string(number) == strconv.Itoa(-1) {"}}},
	{"a stray reply leaves the connection as it is", "doubled", edit("internal/scripting/scripting.go", "\t\tc.Reset()\n", "\t\t_ = c\n")},
	{"what was sent on a broken connection counts as refused", "lost replies", edit("locker/transport/link.go", "\"%w: the connection broke: %v\", ErrUnavailable", "\"%w: the connection broke: %v\", ErrRefused")},
	{"what was sent on a broken connection is sent again on the next", "cut", edit("locker/transport/link.go", "\t\t\tx.end(nil, fmt.Errorf(\"%w: the connection broke: %v\", ErrUnavailable, l.err))", "\t\t\tif x.taken = false; true {\n\t\t\t\tl.client.enqueue(x, now)\n\t\t\t}")},
	{"a repetition does not say that it is one", "cut", edit("internal/scripting/scripting.go", "\t\tcall = -call\n", "\t\tcall = +call\n")},
	{"a connection without replies is kept for too long", "silent", edit("locker/transport/redigo.go", "deadline := now.Add(c.timeout)", "deadline := now.Add(4 * c.timeout)")},
	{"an idle connection is kept", "calm", edit("locker/transport/redigo.go", "maxIdle  = time.Minute", "maxIdle  = time.Hour")},
	{"who leaves takes its reply away, too", "crowd", edit("locker/transport/link.go", "if !x.done && !x.taken {", "if !x.done {")},
}
