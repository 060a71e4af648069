package redisrate

import "golang.org/x/time/rate"

func rateOf(r float64) rate.Limit { return rate.Limit(r) }
