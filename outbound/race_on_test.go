//go:build race

package outbound_test

const raceEnabled = true
