-- The part of scripts on the sessions of a user that nobody has come back with: see unclaimed.go. The mark
-- has an entry for each, the oldest first: a space, ~, the session, >, and the newer session that it gives way
-- to, or dots.

-- entries returns the unclaimed sessions of a mark, and what each gives way to.
local function entries(mark)
  local order, by = {}, {}
  for id, newer in string.gmatch(mark, ' ~([^ >]+)>([^ ,]+)') do
    order[#order + 1], by[id] = id, newer
  end
  return order, by
end
