// Package ratelimit decides how often a key may pass.
package ratelimit
