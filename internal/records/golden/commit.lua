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

local function script()
-- The part of the scripts of a lock with a queue; see queue.go in package lease.
--
-- The queue is a string: the places of the waiting processes, first come first, with a space after each.
-- A place is <channel>/<number>. A place that begins with - cannot be notified, and asks by itself. If
-- these keys or commands are not permitted, there is no queue, and the first place that tries gets the
-- lock.
-- The part of scripts that write small values that do not stay: a lock, a queue, a tombstone.

-- set is redis.call('SET', ...), but it also works if Redis is full: Redis gives memory to any script that
-- has called a write command. PEXPIRE is a write command, and here it changes nothing: no existing key
-- expires sooner than in a millisecond. A saved record must not be written by set, nor after it.
local function set(...)
  local reply = redis.pcall('SET', ...)
  if reply and reply.err then
    redis.call('PEXPIRE', KEYS[1], '1', 'GT')
    reply = redis.call('SET', ...)
  end
  return reply
end


-- places returns the content of the queue; nil: the queue cannot be used, or the key is not a queue.
local function places(queue)
  local found = redis.pcall('GET', queue)
  if not found then
    return ''
  end
  return type(found) == 'string' and string.find(found, '^%-?latchkey:wake:') and found or nil
end

local function waiting(queue)
  return places(queue) or ''
end

-- keep replaces the queue by a shorter one.
local function keep(queue, rest)
  if rest == '' then
    redis.call('DEL', queue)
  else
    set(queue, rest, 'PX', 60000)
  end
end

-- join puts a place at the end, unless it is in the queue. Returns 2: it is new; 1: it was there; 0: it
-- is not in the queue.
local function join(queue, place)
  local found = places(queue)
  if not found then
    return 0
  end
  if string.find(' ' .. found, ' ' .. place .. ' ', 1, true) then
    redis.pcall('PEXPIRE', queue, 60000)
    return 1
  end
  set(queue, found .. place .. ' ', 'PX', 60000) -- rule: a place joins at the end
  return 2
end

-- quit removes a place.
local function quit(queue, place)
  local found = ' ' .. waiting(queue)
  local from, to = string.find(found, ' ' .. place .. ' ', 1, true)
  if from then
    keep(queue, string.sub(found, 2, from) .. string.sub(found, to + 1))
  end
end

-- told notifies a place that its turn has come, and returns whether its process listens. The message is
-- the place and, after a space, the lock: a process that no longer knows the place releases its lock at
-- once.
--
-- If PUBSUB is not permitted, PUBLISH counts the listeners, including clients that listen to all
-- channels. If neither is permitted, each process counts as listening. On a cluster the channel is in the
-- slot of the lock, in braces, and SPUBLISH counts exactly.
local function told(place, lock)
  local channel, message = string.match(place, '^(.*)/'), place .. ' ' .. lock
  if string.find(channel, '{', 1, true) then
    return redis.pcall('SPUBLISH', channel, message) ~= 0
  end
  local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return listening[2] ~= 0 -- rule: a process that listens is notified
    and redis.pcall('PUBLISH', channel, message) ~= 0
end

-- free gives the lock to the first place in the queue: the place becomes the value of the lock, for as
-- long as its process may take to respond. A process that does not listen to its channel is gone, and the
-- next place gets the lock. If no place is left, the lock is deleted.
local function free(lock, queue)
  local found = waiting(queue)
  local rest = found
  while rest ~= '' do
    local place, behind = string.match(rest, '^(%S+) (.*)$') -- rule: the first in the queue has its turn
    if not place then
      break
    end
    rest = behind
    local deaf = string.sub(place, 1, 1) == '-'
    if deaf or told(place, lock) then
      set(lock, place, 'PX', deaf and 250 or 1000) -- rule: the lock is given to the place whose turn it is
      keep(queue, rest) -- rule: the places behind it stay in the queue
      return
    end
  end
  if found ~= '' then
    redis.call('DEL', queue)
  end
  redis.call('DEL', lock)
end

-- The part of scripts that compare a record.

-- revisionOf returns the revision of a record, which each write chooses anew. For a value without a
-- revision it returns the SHA-1. So a revision has 16 characters or 40.
local function revisionOf(record)
  local revision = string.match(record, '^{"v":2,"s":"(%w+)"') -- rule: a record is of version 2
  return revision and #revision == 16 and revision or redis.sha1hex(record)
end

-- is reports whether the record at a key has that revision. 'foreign' is the revision of a value that is
-- not a string. A missing record has no revision. A revision of 16 characters is found without reading
-- the whole record, which may be large.
local function is(key, revision)
  local found = #revision == 16 and redis.pcall('GETRANGE', key, '12', '27') or redis.pcall('GET', key)
  if not found then
    return false
  elseif type(found) == 'string' then
    return #revision == 16 and found == revision or #revision == 40 and redis.sha1hex(found) == revision
  elseif not string.find(found.err, 'WRONGTYPE', 1, true) then
    redis.call('GETRANGE', key, '12', '27') -- fails in the same way, and ends the script
  end
  return revision == 'foreign'
end

-- changed says why a record does not have the expected revision: -3: another request has written it; -4:
-- another request has ended it, and there is a tombstone; -5: it is gone.
local function changed(key)
  local found = redis.pcall('GETRANGE', key, '28', '36')
  return found == '' and -5 or found == '","gone":' and -4 or -3
end

-- The part of scripts on a session that may be a user's: see user.go. The script sets local user before;
-- then KEYS[4] is the mark, which says which of the user's sessions are alive.
--
-- A session that was ended is buried: the code after this part finds a tombstone, as after a logout. (The
-- time of the end is not known.)

local tombstone = '{"v":2,"s":"endedByTheirUser","gone":0}'
local mark = user and redis.call('GET', KEYS[4]) or ''
if user then
  local head = redis.pcall('GETRANGE', KEYS[1], '0', '70')
  local epoch = type(head) == 'string' and string.match(head, '^{"v":2,"s":"%w+","c":%d+,"g":(%d+)')
  if epoch and string.sub(mark, 1, 15) ~= epoch -- rule: a session of another epoch was ended, unless the mark names it
    and not string.find(mark, ' ' .. string.sub(KEYS[1], -11), 1, true) then
    redis.call('PEXPIRE', KEYS[1], '1', 'GT') -- a session can be ended even if Redis is full
    redis.call('SET', KEYS[1], tombstone, 'PX', 60000)
  end
end

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

end

-- The frame. A reply carries the number of its call, which is ARGV[1] of each script: see package
-- scripting.
local reply, call = script(), tonumber(ARGV[1])
if type(reply) == 'number' then
  return 4 * call + reply
elseif not reply.err then
  reply[#reply + 1] = call
end
return reply
