package policy

import _ "embed" // for Example

// Example is a policy file in which every field has its default, with what it is
// for. A program can print it for people to start from.
//
//go:embed example.yaml
var Example string
