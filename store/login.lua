-- Writes the record of a new id, and puts it on the list of its user.
-- KEYS[1] record   KEYS[2] list   KEYS[3] mark
-- ARGV[1] its stamp   ARGV[2] record, with an epoch of zeros   ARGV[3] time to live in ms
-- ARGV[4] Unix ms: when the session ends at the latest   ARGV[5] Unix ms: now
-- ARGV[6] the session that it takes the place of, which must be on the list; '' for none
-- ARGV[7] how many others may be on the list; -1: any number
-- ARGV[8] '1': more than that are refused
-- ARGV[9] epoch for a user who has none, 15 digits
-- Returns 0: the id is taken; 2: there are too many; 3: the session before was ended; or {1} and the
-- sessions that are too many, those that would end first: written.
-- include record.lua
local list, marked, member = KEYS[2], KEYS[3], string.sub(KEYS[1], -11)
local old, most = ARGV[6], tonumber(ARGV[7])
-- It may be there from a try whose reply was lost.
local again = redis.call('PTTL', KEYS[1]) ~= -2
if again and not is(KEYS[1], ARGV[1]) then
  return 0
end
local mark, alive = redis.call('GET', marked), redis.call('ZCARD', list)
if not mark or alive == 0 then -- one of them is lost, or there are no sessions
  mark, alive = nil, 0
end
if again and (alive == 0 or not redis.call('ZSCORE', list, member)) then
  return {1} -- it was ended since
elseif not again and old ~= '' and (alive == 0 or not redis.call('ZSCORE', list, old)) then -- rule: a session that was ended is not renewed
  if alive == 0 then
    redis.call('DEL', list, marked)
  end
  return 3
end
-- The clocks of two processes may differ by ten minutes.
local over, surplus, result = ARGV[5] - 600000, {}, {1}
if most >= 0 and alive > 0 then
  for _, other in ipairs(redis.call('ZRANGE', list, '(' .. over, '+inf', 'BYSCORE')) do -- rule: sessions on the list that have not expired count
    if other ~= old and other ~= member then
      surplus[#surplus + 1] = other
    end
  end
  if #surplus > most and ARGV[8] == '1' then
    return again and result or 2
  end
  for i = 1, #surplus - most do
    result[i + 1] = surplus[i]
  end
end
if again then
  return result
end
local epoch = mark and string.sub(mark, 1, 15) or ARGV[9]
local head, rest = string.match(ARGV[2], '^(.-,"g":)%d+(.*)$')
-- Before all other writes: on a full Redis it is refused, but not in a script that has written something.
redis.call('SET', KEYS[1], head .. epoch .. rest, 'PX', ARGV[3]) -- rule: a login begins with its user's epoch
if not mark then
  redis.call('DEL', list)
end
redis.call('ZREMRANGEBYSCORE', list, '-inf', over)
-- Last, so that the list has at least this one.
redis.call('ZADD', list, ARGV[4], member) -- rule: a login is on the list at once
local last = redis.call('ZRANGE', list, -1, -1, 'WITHSCORES')
local left = math.max(1, last[2] - ARGV[5] + 600000) -- rule: a list lasts as long as its sessions
redis.call('PEXPIRE', list, left)
redis.call('SET', marked, mark or epoch, 'PX', left)
return result
