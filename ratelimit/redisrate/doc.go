// Package redisrate shares one ceiling among processes through Redis.
package redisrate
