// Package queue decides who waits for a slot, for how long, and who goes next.
package queue
