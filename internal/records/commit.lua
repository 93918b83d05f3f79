{{define "first" -}}
-- Ends the holds of one process so far: writes the record (or its tombstone), or only extends its
-- timeout, if the token has the lock and the record is the one on which the holds were built. Then it
-- passes the lock to the next holder.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- KEYS[4] mark, of a user's session, see user.go   KEYS[5] list, if the record is a tombstone
-- the last key: the staged record, if the record is staged; see staged.go
-- ARGV[1] number of the call, negative for a repetition   ARGV[2] token
-- ARGV[3] revision of the record that was read or written last
-- ARGV[4] time to live of the record in ms, '' to leave it as it is; with a next holder it is long enough
-- for all waiters
-- ARGV[5] record, or the beginning of a staged one; '' to leave it as it is
-- ARGV[6] to ARGV[10] may be '', and missing at the end:
-- ARGV[6] the mark as it was read, of a user's session, unless the record is a tombstone
-- ARGV[7] token of the next holder; without one the lock is freed   ARGV[8] its lease in ms
-- ARGV[9] unless '': quiet, the time to live is not extended; the ms that the record would have left if it had not been
-- extended to outlast the lock, or ARGV[4] if that is not known
-- ARGV[10] '1': the record is staged
-- Returns
-- 1: done
-- 2: done, and other processes wait, or have waited until the lock was freed
-- {0, why}: lost, and nothing was written
-- {3, why}: lost, but an earlier try of this call may have been executed, or may be executed later
-- why is {0, token}: another token has the lock; {-1}: the lock is free; or a result of changed.
--
-- The lock keeps others out. The revision protects a write from being lost: a take that comes late may
-- give a token the lock a second time. By then others may have written, and the record has another
-- revision. Since no revision comes back, each write is done once, on the record that its writer has
-- read, or never.
local lock, revision, ttl, record, to = KEYS[2], ARGV[3], ARGV[4], ARGV[5], ARGV[7] or ''
local quiet, staged = ARGV[9] or '', ARGV[10] == '1' and KEYS[#KEYS]
local user = #KEYS > (staged and 4 or 3)

-- The usual case: everything is as expected, and no process waits, or none waits for this lock to be
-- freed. This does what the code below would do then, but without creating its functions. A guest's
-- tombstone is written here, too. That of a user's session never is, since its ARGV[6] is no mark.
--
-- It asks whether others wait, although they could leave a mark in the lock when they join the queue: one
-- more key in MGET is 1.4 % of the cost of a request in Redis. Comparing the revision is 6 %, and nothing
-- can replace it.
local found = user and redis.pcall('MGET', lock, KEYS[3], KEYS[4]) or redis.pcall('MGET', lock, KEYS[3])
local others = found[2] -- rule: a commit knows whether others wait
if found[1] == ARGV[2] -- rule: the lock has the token of the commit
  and (not others or to ~= '' and ttl ~= '') and #revision == 16 and quiet == ''
  and (not user or found[3] == ARGV[6]) -- rule: the mark is the one that was read
  and redis.pcall('GETRANGE', KEYS[1], '12', '27') == revision then -- rule: the record is the one that the commit was built on
  -- If Redis refuses the write, for example because it is full, it is tried again below, for the error.
  local stored = true
  if staged then
    stored = redis.pcall('RENAME', staged, KEYS[1]).ok
    if stored then
      redis.call('PEXPIRE', KEYS[1], ttl)
    end
  elseif record ~= '' then
    stored = redis.pcall('SET', KEYS[1], record, 'PX', ttl).ok -- rule: a commit at once stores the record, with a timeout
  elseif ttl ~= '' then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  if stored then
    if to == '' then
      redis.call('DEL', lock)
      return 4 * ARGV[1] + 1
    elseif redis.pcall('SET', lock, to, 'PX', ARGV[8]).ok then
      return 4 * ARGV[1] + (others and 2 or 1)
    end
  end
end

{{end -}}
{{template "queue"}}
{{template "record"}}
{{template "user"}}
if quiet ~= '' and ttl ~= '' then
  local left = redis.call('PTTL', KEYS[1])
  -- A record that has longer than one that outlasts the lock was read meanwhile, by a visitor. A second more, since a
  -- busy Redis 7.0 may be interrupted between two commands of a script, and its clock then goes on.
  if left <= redis.call('PTTL', lock) + 3000 then -- rule: a job leaves the idle timeout as it was
    left = math.min(left, quiet)
  end
  ttl = left >= 0 and math.max(1, math.min(left, ttl)) or ttl
end
if ttl ~= '' and to ~= '' then
  ttl = math.max(ttl, ARGV[8] + 2000)
end
local own = string.sub(record, 13, 28) -- the revision of the record that is written
local ends = string.sub(record, 29, 37) == '","gone":' -- the record is a tombstone
local lost = tonumber(ARGV[1]) < 0 and 3 or 0 -- rule: a repeated commit does not say that nothing was stored

-- kept returns the result of a success. While others wait the record must not expire.
local function kept()
  if waiting(KEYS[3]) == '' then
    return 1
  end
  redis.call('PEXPIRE', KEYS[1], 2000, 'GT') -- rule: while others wait the record does not expire
  return 2
end

-- write returns Redis's reply to a record that is not a tombstone.
local function write()
  if not staged then
    return redis.pcall('SET', KEYS[1], record, 'PX', ttl) -- rule: a commit stores the record, with a timeout
  end
  local moved = redis.pcall('RENAME', staged, KEYS[1])
  if moved.ok then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  return moved
end

local function commit()
  local holder = redis.call('GET', lock)
  if holder ~= ARGV[2] then -- rule: a commit without the lock does not write
    -- A repetition finds the next holder's token or, unless another request has written since, its own
    -- revision. A holder that only read still succeeds if the record is unchanged.
    if to ~= '' and holder == to then -- rule: a repeated commit knows the next holder
      return kept()
    end
    if record ~= '' and is(KEYS[1], own) -- rule: a repeated commit knows its own record
      or record .. to == '' and is(KEYS[1], revision) then
      return 1
    end
    return {lost, holder and 0 or -1, holder} -- rule: a commit without the lock leaves the lock as it is
  end
  if is(KEYS[1], revision) then -- rule: the record is the one that the commit was built on
    if ends then
      -- A session can be ended even if Redis is full.
      set(KEYS[1], record, 'PX', ttl) -- rule: a logout leaves a tombstone
      if user then
        redis.call('ZREM', KEYS[5], string.sub(KEYS[1], -11))
      end
    elseif record ~= '' then
      local written = write()
      if written.err then -- for example, Redis is full: this process has no use for the lock then
        free(lock, KEYS[3])
        return written
      end
    elseif ttl ~= '' then
      redis.call('PEXPIRE', KEYS[1], ttl)
    end
  elseif record == '' or not is(KEYS[1], own) then
    -- Another request has written or removed the record, under another lock, or since the token first had
    -- the lock.
    free(lock, KEYS[3])
    return {lost, changed(KEYS[1])}
  end
  local done = kept()
  if to == '' then
    free(lock, KEYS[3])
    return done
  end
  set(lock, to, 'PX', ARGV[8])
  return done
end

local result = commit()
if staged then
  redis.pcall('DEL', staged) -- it was not needed
end
return result
