// Package testhook lets admissiontest make gates that no Options describe.
package testhook

import "github.com/headgate-go/headgate/shed"

// Refusing makes an *admission.Gate that refuses everything for one reason. It is
// set by package admission.
var Refusing func(r shed.Reason) any
