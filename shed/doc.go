// Package shed decides how much work is let in, and who is turned away.
//
// It holds pure decisions only: every function takes the time as an argument, and
// nothing here starts a goroutine, takes a lock, or knows HTTP. The lock lives one
// layer up, in package queue.
package shed
