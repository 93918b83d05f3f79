local function script()
-- Takes the lock for a token, if it is free.
-- KEYS[1] lock    KEYS[2] queue
-- ARGV[1] number of the call   ARGV[2] token   ARGV[3] lease in ms   ARGV[4] place in the queue, '' for none
-- Returns {1}: the token has the lock; {0, token, time left in ms, joined}: another token has it. The time
-- is -1 for a lock that does not expire, and 0 if PTTL is not permitted. joined is the result of join, 0
-- without a place. {-2}: the key is not a lock.
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

local place = ARGV[4]
-- taken is the result when the token has the lock. The place is then removed from the queue, even if a
-- late try has put it there again.
local function taken()
  if place ~= '' then
    quit(KEYS[2], place)
  end
  return {1}
end
if set(KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) then
  return taken()
end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  if string.find(holder.err, 'WRONGTYPE', 1, true) then
    return {-2}
  end
  return holder
end
-- The token may be our own, from a try whose reply was lost. GT: this may be a copy that comes after an Extend.
if holder == ARGV[2] then
  redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT') -- rule: a lock that is taken again lasts no shorter
  return taken()
end
if place ~= '' and holder == place then -- our turn has come
  set(KEYS[1], ARGV[2], 'PX', ARGV[3])
  return taken()
end
local left = redis.pcall('PTTL', KEYS[1])
left = type(left) ~= 'number' and 0 or left == 0 and 1 or left -- 0 means less than a millisecond to PTTL
return {0, holder, left, place ~= '' and join(KEYS[2], place) or 0}

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
