package model_test

import (
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
)

// An edit breaks a script.
type edit struct{ file, old, new string }

// Each of the protocol's rules is broken here, and the exploration finds that.
var breaks = []struct {
	name     string
	edits    []edit
	switches model.Switches
	work     string
	want     string // what the violation says
}{
	{
		name: "the fence is the token alone",
		edits: []edit{
			{"store/commit.lua", "and redis.pcall('GETRANGE', KEYS[1], '12', '27') == base then", "then"},
			{"store/commit.lua", "if is(KEYS[1], base) then", "if true then"},
		},
		work: "wtw",
		want: "was built on",
	},
	{
		name: "who only reads is not fenced by the record",
		edits: []edit{
			{"store/commit.lua", "and redis.pcall('GETRANGE', KEYS[1], '12', '27') == base then", "and (record == '' or redis.pcall('GETRANGE', KEYS[1], '12', '27') == base) then"},
			{"store/commit.lua", "if is(KEYS[1], base) then", "if record == '' or is(KEYS[1], base) then"},
		},
		work: "ttw",
		want: "which was not stored while it was there",
	},
	{
		name: "the token is not compared",
		edits: []edit{
			{"store/commit.lua", "found[1] == ARGV[1] and", "true and"},
			{"store/commit.lua", "if holder ~= ARGV[1] then", "if false then"},
		},
		work: "wtw",
		want: "the lock",
	},
	{
		name: "the end of a session leaves no tombstone",
		edits: []edit{
			{"store/commit.lua", "stored = redis.pcall('SET', KEYS[1], record, 'PX', ttl).ok",
				"if string.find(record, '\"gone\":') then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], record, 'PX', ttl) end"},
			{"store/commit.lua", "set(KEYS[1], record, 'PX', ttl)", "redis.call('DEL', KEYS[1])"},
		},
		work: "dtw",
		want: "which has not timed out",
	},
	{
		name:  "a tombstone is taken for a record",
		edits: []edit{{"store/take.lua", "if what == 'gone' then", "if false then"}},
		work:  "dww",
		want:  "an ended id has come back",
	},
	{
		name:  "a place is taken from the queue and not given the lock",
		edits: []edit{{"internal/lease/queue.lua", "set(lock, place, 'PX', deaf and 250 or 1000)", "redis.call('DEL', lock)"}},
		work:  "wtw",
		want:  "is dropped",
	},
	{
		name:  "places behind the first are dropped",
		edits: []edit{{"internal/lease/queue.lua", "rest = behind", "rest = ''"}},
		work:  "wtw",
		want:  "is dropped",
	},
	{
		name:     "who leaves the line takes the place of its process along",
		switches: model.Switches{QuitAlways: true},
		work:     "wtw",
		want:     "is dropped",
	},
	{
		name:  "the second in the queue has the turn first",
		edits: []edit{{"internal/lease/queue.lua", "local rest = found", "local rest = string.gsub(found, '^(%S+) (%S+) ', '%2 %1 ')"}},
		work:  "wtw",
		want:  "stood before it",
	},
	{
		name:     "a place does not ask by itself",
		switches: model.Switches{OnlyWhenTold: true},
		work:     "wtw",
		want:     "is never answered",
	},
	{
		name:  "a process that listens is passed over",
		edits: []edit{{"internal/lease/queue.lua", "listening[2] ~= 0", "listening[2] == 0"}},
		work:  "wtw",
		want:  "is dropped",
	},
	{
		name:  "a place cannot take the lock that it was given",
		edits: []edit{{"store/take.lua", "holder == token or place ~= '' and holder == place", "holder == token"}},
		work:  "wtw",
		want:  "for ever",
	},
	{
		name:  "who gives up stays in the queue",
		edits: []edit{{"internal/lease/quit.lua", "quit(KEYS[2], ARGV[1])\nif", "if"}},
		work:  "wtw",
		want:  "left behind in the queue",
	},
	{
		name:  "a place joins at the front",
		edits: []edit{{"internal/lease/queue.lua", "found .. place .. ' '", "place .. ' ' .. found"}},
		work:  "wtw",
		want:  "changed its order",
	},
	{
		name:  "a place stays in the queue when its process has the lock",
		edits: []edit{{"store/take.lua", "if place ~= '' then -- also", "if false then -- also"}},
		work:  "wtw",
		want:  "still stands in the queue",
	},
	{
		name:  "a lock is released by a plain DEL",
		edits: []edit{{"internal/lease/release.lua", "if holder == ARGV[1] then", "if true then"}},
		work:  "wtw",
		want:  "taken away",
	},
	{
		name:  "a commit that was lost frees the lock",
		edits: []edit{{"store/commit.lua", "return 1\n    end\n    return {lost", "return 1\n    end\n    free(lock, KEYS[3])\n    return {lost"}},
		work:  "wtw",
		want:  "taken away",
	},
	{
		name:  "a repeated commit does not know the next token",
		edits: []edit{{"store/commit.lua", "if to ~= '' and holder == to then", "if false then"}},
		work:  "ttw",
		want:  "is refused when it is repeated",
	},
	{
		name:  "a repeated commit does not know its stamp",
		edits: []edit{{"store/commit.lua", "record ~= '' and is(KEYS[1], stamp) or", ""}},
		work:  "wtw",
		want:  "is refused when it is repeated",
	},
	{
		name:  "a repeated take does not know its token",
		edits: []edit{{"store/take.lua", "local ours = holder == token or", "local ours ="}},
		work:  "wtw",
		want:  "because it has it",
	},
	{
		name:  "a commit that may have been stored is called lost",
		edits: []edit{{"store/commit.lua", "tonumber(ARGV[#ARGV]) < 0 and 3 or 0", "0"}},
		work:  "wtw",
		want:  "is refused, and its version is stored",
	},
	{
		name:  "a lock that is taken over has no lease",
		edits: []edit{{"store/take.lua", "    set(KEYS[2], token, 'PX', ARGV[2])", "    set(KEYS[2], token)"}},
		work:  "wtw",
		want:  "has no timeout",
	},
	{
		name:  "a commit does not ask for the queue",
		edits: []edit{{"store/commit.lua", "local others = found[2]", "local others"}},
		work:  "wtw",
		want:  "stands in the queue",
	},
	{
		name:     "a take believes the reply to SET",
		switches: model.Switches{TrustSet: true},
		work:     "wtw",
		want:     "has not the lock",
	},
	{
		name:     "a take reads the record before it has the lock",
		switches: model.Switches{ReadFirst: true},
		work:     "wtw",
		want:     "and the record is",
	},
	{
		name:     "a take reads the record, and then looks at the lock",
		switches: model.Switches{ReadApart: true},
		work:     "wtw",
		want:     "and the record is",
	},
	{
		name:     "a plain take does not know a tombstone",
		switches: model.Switches{TakeTombstones: true},
		work:     "dww",
		want:     "an ended id has come back",
	},
	{
		name: "a large record is renamed without the token",
		edits: []edit{
			{"store/commit.lua", "if found[1] == ARGV[1] and", "if (staged or found[1] == ARGV[1]) and"},
			{"store/commit.lua", "if holder ~= ARGV[1] then", "if holder ~= ARGV[1] and not staged then"},
		},
		work: "ltl",
		want: "the lock",
	},
	{
		name: "a large record is renamed over any other",
		edits: []edit{
			{"store/commit.lua", "if is(KEYS[1], base) then", "if is(KEYS[1], base) or staged and not is(KEYS[1], stamp) then"},
		},
		work: "ltl",
		want: "was built on",
	},
	{
		name:     "all large records are staged at one key",
		switches: model.Switches{StageTogether: true},
		work:     "lll",
		want:     "is told done, and nothing is stored",
	},
	{
		name:  "what is written without the lock replaces any record",
		edits: []edit{{"store/optimistic.lua", "found == ARGV[1] and ", ""}},
		work:  "wto",
		want:  "was built on",
	},
	{
		name:  "it ignores who has the lock",
		edits: []edit{{"store/optimistic.lua", " and absent(KEYS[2])", ""}},
		work:  "wto",
		want:  "another has it",
	},
	{
		name:  "it ignores who stands in the queue",
		edits: []edit{{"store/optimistic.lua", " and absent(KEYS[3])", ""}},
		work:  "wto",
		want:  "ahead of those that stand in the queue",
	},
	{
		name:  "a repetition of it does not know its stamp",
		edits: []edit{{"store/optimistic.lua", "if found == string.sub(ARGV[2], 13, 28) then", "if false then"}},
		work:  "wto",
		want:  "is refused when it is repeated",
	},
	{
		name:  "a repetition of it that is refused says that nothing was done",
		edits: []edit{{"store/optimistic.lua", "tonumber(ARGV[4]) < 0 and 3 or 0", "0"}},
		work:  "wto",
		want:  "is refused, and its version is stored",
	},
	{
		name:     "a copy of it is not known under the lock",
		switches: model.Switches{ForgetOwn: true},
		work:     "wto",
		want:     "has written twice",
	},
	{
		name:     "who hands over is answered before the commit",
		switches: model.Switches{AnswerEarly: true},
		work:     "wtw",
		want:     "nothing is stored",
	},
	{
		name:     "a version that was never stored is shown",
		switches: model.Switches{JoinedReadsVoid: true},
		work:     "wtw",
		want:     "which was not stored while it was there",
	},
	{
		name:     "a tenure does not know what it has written",
		switches: model.Switches{KeepBase: true},
		work:     "wtw",
		want:     "nothing was wrong",
	},
}

func TestBreaks(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			s := scripts(t)
			for _, e := range b.edits {
				var err error
				if s, err = s.Replace(e.file, e.old, e.new); err != nil {
					t.Fatal(err)
				}
			}
			found := model.New(s, one, b.switches).Explore(b.work)
			if found.Violation == "" {
				found = model.New(s, two, b.switches).Explore(b.work)
			}
			if !strings.Contains(found.Violation, b.want) {
				t.Fatalf("in %d states this was found:\n%s", found.States, found.Violation)
			}
			t.Logf("after %d states: %s", found.States, found.Violation)
		})
	}
}
