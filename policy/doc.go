// Package policy reads a gate from a file, so that the numbers may change without
// a build and without a restart:
//
//	file, err := policy.Load("policy.yaml")
//	…
//	opts, err := file.GateOptions(policy.Resources{Observer: metrics})
//	…
//	gate, err := admission.New(opts)
//
// The file is YAML. Its sections mirror [admission.Options] and
// [outbound.Options], in lower case with underscores; what is left out has the
// default stated there. [Example] is a file with every field, its default and what
// it is for.
//
// A file is either understood to its last field or refused as a whole. An error
// names the file, the line and the field:
//
//	policy.yaml:12:12: gate.limits.rate.burst: must be a whole number, not "ten"
//
// To follow a file, [Watch] it and hand what it says to [admission.Gate.Update].
// A program with settings of its own puts them beside these: see [Document].
package policy
