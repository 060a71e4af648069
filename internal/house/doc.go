// Package house holds the tests of the project as a whole: which package may import
// which, how many names are exported, what the documents say, and the page that lists
// the field reports. Style and length are the linter's.
package house
