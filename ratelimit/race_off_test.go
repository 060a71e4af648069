//go:build !race

package ratelimit

const manyKeys = 1_000_000
