local function script()
-- Reads the record without the lock, and extends its idle timeout.
-- KEYS[1] record; and of a user's session: KEYS[2] lock   KEYS[3] queue   KEYS[4] mark
-- ARGV[1] number of the call   ARGV[2] Unix ms: sessions created then or before have reached their
-- lifetime; '' if there is none
-- ARGV[3] idle timeout in ms   ARGV[4] largest size in bytes
-- ARGV[5] time to live in ms before the plain read that this follows, 0 if the read did not extend it
-- ARGV[6] the least ms by which a session that is taken now is extended   ARGV[7] Unix ms: now
-- ARGV[8] '1': quiet, see times; with an idle timeout of 0 that is left as it is; it may be missing
-- Returns a state as in scripts.go, and the values that belong to it.
local user = #KEYS > 3
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

local record = redis.pcall('GET', KEYS[1])

-- restore undoes the extension by the plain read, but not below least.
local function restore(least)
  if ARGV[5] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], math.max(ARGV[5], least), 'LT')
  end
end

if type(record) == 'table' then
  if string.find(record.err, 'WRONGTYPE', 1, true) then
    restore(0)
    return {5}
  end
  return record
end
if not record then
  -- A replica that has not received the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return {2}
end
local what, left, idle = times(record, ARGV[7], ARGV[2], ARGV[3], ARGV[8])
if what == 'gone' then
  local time = redis.call('TIME')
  -- The plain read extends a tombstone to the idle timeout. If that is longer than a minute, a tombstone that has no
  -- more than its minute was not extended: the session has ended since then.
  local has, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
  if has > 60000 or has <= ttl and ttl <= 60000 then -- rule: a fresh tombstone is left alone
    local over = string.match(record, '"gone":(%d+)') + 60000 -- rule: a read leaves a tombstone its minute
    local rest = over - time[1] * 1000 - math.floor(time[2] / 1000)
    -- The time of the end is by the clock of the process that wrote it, which may be ahead.
    restore(math.min(60000, rest)) -- rule: a read leaves a tombstone no more than a minute
  end
  return {3, record, redis.call('PTTL', KEYS[1]), tonumber(time[1])}
end
-- The session may have been taken meanwhile, by a request that believed that it outlasts its holder.
restore(what == 'c' and left > 0 and math.max(idle, ARGV[6]) or 0)
if what == 'c' then
  if left <= 0 then
    return {2}
  end
  -- GT: a session that is held may have longer to live. Its lifetime was checked above.
  redis.call('PEXPIRE', KEYS[1], idle, 'GT') -- rule: reading a session extends its timeout
end
if #record > tonumber(ARGV[4]) then
  return {4, #record}
end
return {1, record, mark}

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
