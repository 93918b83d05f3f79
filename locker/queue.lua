-- What the scripts of a lock with a queue begin with; see relay.go.
--
-- The queue is a string: the places of the processes that wait, first come first,
-- with a space after each. A place is <channel>/<number>. One that begins with -
-- cannot be told anything, and asks by itself. Where these keys or commands are
-- not permitted there is no queue, and whoever tries first wins.

local function waiting(queue)
  local places = redis.pcall('GET', queue)
  return type(places) == 'string' and places or ''
end

local function put(queue, places)
  if places == '' then
    redis.call('DEL', queue)
  else
    redis.pcall('SET', queue, places, 'PX', 60000)
  end
end

-- join puts a place at the end, unless it is there. Returns 1: it is new.
local function join(queue, place)
  local places = waiting(queue)
  if string.find(' ' .. places, ' ' .. place .. ' ', 1, true) then
    return 0
  end
  put(queue, places .. place .. ' ')
  return 1
end

-- quit takes a place out.
local function quit(queue, place)
  local places = ' ' .. waiting(queue)
  local from, to = string.find(places, ' ' .. place .. ' ', 1, true)
  if from then
    put(queue, string.sub(places, 2, from) .. string.sub(places, to + 1))
  end
end

-- free gives the lock to the first that waits: its place becomes the value of the
-- lock, for as long as it may take to answer. A process that does not hear its
-- channel is gone, and the next one comes. Where nobody waits the lock is deleted.
-- (In a cluster only those that listen at the same node would count.)
local function free(lock, queue)
  local places = waiting(queue)
  local rest = places
  while rest ~= '' do
    local place, behind = string.match(rest, '^(%S+) (.*)$')
    if not place then
      break
    end
    rest = behind
    local patience = 250
    local heard
    if string.sub(place, 1, 1) ~= '-' then
      patience = 1000
      heard = redis.pcall('PUBLISH', string.match(place, '^(.*)/'), place)
    end
    if heard ~= 0 then
      put(queue, rest)
      redis.call('SET', lock, place, 'PX', patience)
      return
    end
  end
  if places ~= '' then
    redis.call('DEL', queue)
  end
  redis.call('DEL', lock)
end

