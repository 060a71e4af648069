// Package outbound paces the calls a service makes.
package outbound
