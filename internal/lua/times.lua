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
