-- A cap on work in flight: owner tokens scored by the server's time at which they
-- lapse. take adds one if there is room; renew prolongs those that are there;
-- adopt adds those of an outage whether there is room or not; give removes.
local op, most, life, late = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
if late > 0 and now > late then return { -1, now } end

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now))
-- Times from another server's clock, far ahead of this one's, start again.
local ahead = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + 2 * life), '+inf')
local lapse = string.format('%.0f', now + life)
for _, token in ipairs(ahead) do redis.call('ZADD', KEYS[1], lapse, token) end

local done = {}
for i = 5, #ARGV do
  local token = ARGV[i]
  local mine = redis.call('ZSCORE', KEYS[1], token)
  local ok = 0
  if op == 'give' then
    ok = redis.call('ZREM', KEYS[1], token)
  elseif mine or op == 'adopt' or (op == 'take' and redis.call('ZCARD', KEYS[1]) < most) then
    redis.call('ZADD', KEYS[1], lapse, token)
    ok = 1
  end
  done[#done + 1] = ok
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(2 * life / 1000) + 1000))
end
local reply = { redis.call('ZCARD', KEYS[1]), now }
for i = 1, #done do reply[#reply + 1] = done[i] end
return reply
