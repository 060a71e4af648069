// Package house holds the tests that keep the walls between the packages: which
// may import which, and what they may ask of the outside.
package house
