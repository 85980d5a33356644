-- KEYS[1] is the gate. Others are there to be declared. ARGV[1] is the term; after it come commands,
-- each as the number of its words and the words. Terms are compared as text, because numbers are
-- floating here.
local asked = ARGV[1]
local seen = redis.call('GET', KEYS[1])
if seen then
    if not string.match(seen, '^%d+$') then
        return {'unreadable', seen}
    end
    if #seen > #asked or (#seen == #asked and seen > asked) then
        return {'superseded', seen}
    end
end
if seen ~= asked then
    redis.call('SET', KEYS[1], asked)
end
local replies = {}
local at = 2
while ARGV[at] do
    local words = tonumber(ARGV[at])
    local reply = redis.call(unpack(ARGV, at + 1, at + words))
    -- A nil would end the list for who reads it.
    replies[#replies + 1] = reply
    at = at + 1 + words
end
return {'admitted', replies}
