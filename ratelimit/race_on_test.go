//go:build race

package ratelimit

// The race detector makes memory some ten times slower; it finds no more races
// among a million keys than among this many.
const manyKeys = 50_000
