-- Who shares a ceiling: members scored by the server's time of their last beat.
-- Beats too old, or from a clock too far ahead, are dropped.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local life = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - life))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + life), '+inf')
if ARGV[3] == 'leave' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(life / 1000) + 1000))
return redis.call('ZCARD', KEYS[1])
