//go:build !race

package outbound_test

const raceEnabled = false
