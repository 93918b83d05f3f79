-- What scripts that compare a record include.

-- name names a record: by its stamp, which each write chooses anew, or where it has
-- none, by its SHA-1. So a name is 16 characters or 40.
local function name(record)
  local stamp = string.match(record, '^{"v":2,"s":"(%w+)"') -- rule: a record is of version 2
  return stamp and #stamp == 16 and stamp or redis.sha1hex(record)
end

-- is reports whether the record at a key has a name; 'foreign' is that of a value that
-- is no string. Where there is none it has no name. A stamp is found without reading
-- all of a record that may be large.
local function is(key, expected)
  local found
  if #expected == 16 then
    found = redis.pcall('GETRANGE', key, '12', '27')
  else
    found = redis.pcall('GET', key)
  end
  if not found then
    return false
  elseif type(found) == 'string' then
    return #expected == 16 and found == expected or #expected == 40 and redis.sha1hex(found) == expected
  elseif not string.find(found.err, 'WRONGTYPE', 1, true) then
    redis.call('GETRANGE', key, '12', '27') -- fails in the same way, and ends the script
  end
  return expected == 'foreign'
end

-- quiet returns a base without its ~, and for how long the record is to live then: for ttl, but no
-- longer than it would without this commit. A holder that is not the session's visitor asks for it.
local function quiet(base, ttl)
  if string.sub(base, 1, 1) ~= '~' then
    return base, ttl
  end
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 and ttl ~= '' then
    ttl = math.max(1, math.min(left, ttl))
  end
  return string.sub(base, 2), ttl
end

-- changed says what has become of a record that has not the name expected: -3: another has
-- written it; -4: another has ended it, and a tombstone is there; -5: it is gone.
local function changed(key)
  local found = redis.pcall('GETRANGE', key, '28', '36')
  return found == '' and -5 or found == '","gone":' and -4 or -3
end

