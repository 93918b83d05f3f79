local function script()
-- Takes the lock and reads the record. If there is no session, it takes no lock.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark, of a user's session
-- ARGV[1] number of the call   ARGV[2] token    ARGV[3] lease in ms   ARGV[4] largest size in bytes
-- ARGV[5] Unix ms: sessions created then or before have reached their lifetime
-- ARGV[6] place in the queue, '' for none   ARGV[7] idle timeout in ms   ARGV[8] Unix ms: now
-- ARGV[9] '1': quiet, see times; it may be missing
-- Returns a state as in scripts.go, and the values that belong to it. After a record: 1 if other
-- processes wait; the mark, '' for a guest; and if quiet, for how many ms the record had been left.

-- The first try of a request consists of plain commands, see take.go. If something is unusual, this
-- script follows with the same token, which may have the lock by then.
local user = #KEYS > 3
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

-- The part of scripts that enforces a session's timeouts.

-- times returns the type of a record: 'c': a session; 'gone': a tombstone; anything else: neither. For a
-- session it also returns for how many ms it may live, and for how many if it stays idle. now and
-- outlived are Unix ms. A session created at outlived or before has reached its lifetime; if outlived is
-- '', only idleness ends a session. Timeouts in the record take precedence. If quiet is '1', the session
-- is not used by its visitor, and idle counts, whatever the record says.
local function times(record, now, outlived, idle, quiet)
  -- A record has the time of its creation, a tombstone the time of the end. Timeouts in the record
  -- follow, up to the d of its data, or the e if it is sealed.
  local what, when, own = string.match(record, '^{"v":2,"s":"%w+","(%a+)":(%d+)([,}][^de]*)') -- rule: a record is of version 2
  if what ~= 'c' then
    return what
  end
  local visited = quiet ~= '1'
  idle = tonumber(visited and string.match(own, ',"i":(%d+)') or idle)
  local left = 9223372036854 -- the longest time.Duration
  if outlived ~= '' then
    local ends = string.match(own, ',"u":(%d+),"$')
    left = math.min(left, ends and ends - now or when - outlived)
    idle = ends and visited and left or idle
  end
  return what, left, math.min(left, idle)
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


-- outlast makes the record outlast the lock, or the next try of a waiting process: a session for which a
-- request has come does not expire. Two seconds are longer than a process keeps its turn, and than a
-- waiting process waits before it asks again.
local function outlast(idle)
  redis.call('PEXPIRE', KEYS[1], math.max(ARGV[3] + 2000, idle), 'GT') -- rule: a record outlasts its lock
end

local record = redis.pcall('GET', KEYS[1])
local foreign = type(record) == 'table'
if foreign and not string.find(record.err, 'WRONGTYPE', 1, true) then
  return record
end
local token, place = ARGV[2], ARGV[6]
local what, left, idle
if record and not foreign then
  what, left, idle = times(record, ARGV[8], ARGV[5], ARGV[7], ARGV[9])
  if what == 'gone' then -- rule: an ended session is not taken
    if redis.pcall('GET', KEYS[2]) == token then -- rule: a take of an ended session leaves no lock
      free(KEYS[2], KEYS[3])
    end
    local time = redis.call('TIME')
    return {3, record, redis.call('PTTL', KEYS[1]), tonumber(time[1])}
  end
end

local absent = not record or left and left <= 0
if absent
  or not set(KEYS[2], token, 'NX', 'PX', ARGV[3]) then -- rule: a free session is taken for a lease
  local holder = redis.call('GET', KEYS[2])
  -- The token may be our own, from a try whose reply was lost.
  local ours = holder == token -- rule: a repeated take knows its token
    or place ~= '' and holder == place -- rule: a place takes the lock that it was given
  if absent and (ours or not holder) then
    -- A replica that has not received the record must not deny it: it refuses to write.
    redis.call('DEL', KEYS[2])
    if place ~= '' then
      quit(KEYS[3], place)
    end
    if ours then
      free(KEYS[2], KEYS[3])
    end
    return {2}
  elseif not ours then
    -- While another token has the lock, the result is never that there is no session: the request would
    -- begin another session beside the holder's.
    if idle and ARGV[9] == '1' then -- rule: a job that waits extends the session no further than its holder does
      redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[2]), 0) + 2000, 'GT')
    elseif idle then
      outlast(idle)
    end
    if place == '' then
      return {0, holder}
    end
    local held = redis.pcall('PTTL', KEYS[2])
    held = type(held) ~= 'number' and 0 or held == 0 and 1 or held -- 0 means less than a millisecond to PTTL
    return {0, holder, held, join(KEYS[3], place)}
  elseif holder == token then
    redis.call('PEXPIRE', KEYS[2], ARGV[3], 'GT') -- rule: a late take does not shorten the lock
  else
    set(KEYS[2], token, 'PX', ARGV[3]) -- rule: a lock that was given to a place is taken for a lease
  end
end
-- A late try may have put the place into the queue again.
if place ~= '' then -- rule: a place that has the lock is not in the queue
  quit(KEYS[3], place)
end
local before = ARGV[9] == '1' and redis.call('PTTL', KEYS[1]) or nil
if idle then
  outlast(idle)
end
if foreign then
  return {5}
end
if #record > tonumber(ARGV[4]) then -- rule: a record that is too large is refused
  return {4, #record, revisionOf(record)}
end
return {1, record, waiting(KEYS[3]) ~= '' and 1 or 0, mark, before}

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
