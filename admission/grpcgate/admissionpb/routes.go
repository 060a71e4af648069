// Package admissionpb says in a proto file how the calls of a service are admitted, and
// reads it from there:
//
//	import "headgate/v1/admission.proto";
//
//	service Shop {
//	  option (headgate.v1.service_admission) = {level: LEVEL_HIGH};
//
//	  rpc Search(SearchRequest) returns (SearchReply);
//	  rpc Pay(PayRequest) returns (PayReply) {
//	    option (headgate.v1.admission) = {level: LEVEL_CRITICAL};
//	  }
//	  rpc Export(ExportRequest) returns (ExportReply) {
//	    option (headgate.v1.admission) = {level: LEVEL_BATCH cost: 5};
//	  }
//	}
//
// protoc finds the imported file with -I and the directory of this package. [Routes] makes
// rules of it, for [admission.Options].Routes. It serves gRPC and connect servers alike,
// and needs neither.
package admissionpb

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// Routes returns a rule for each method, and each service, of the files that has an option
// of this package: by the pattern "/shop.v1.Shop/Pay" for a method, which replaces the one
// of its service, "/shop.v1.Shop/". Without arguments it reads every file whose generated
// code is in the program. The map is the caller's own, to add to and to change. An error
// names the method and the field; what only a gate can judge, such as a pool that is not
// there, is an error of [admission.New].
func Routes(files ...protoreflect.FileDescriptor) (map[string]admission.Rule, error) {
	if len(files) == 0 {
		protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			files = append(files, f)
			return true
		})
	}
	t := table{rules: map[string]admission.Rule{}, errs: map[string]error{}}
	for _, f := range files {
		services := f.Services()
		for i := range services.Len() {
			t.service(services.Get(i))
		}
	}
	var errs []error
	for _, pattern := range slices.Sorted(maps.Keys(t.errs)) {
		errs = append(errs, fmt.Errorf("admissionpb: %s: %w", pattern, t.errs[pattern]))
	}
	return t.rules, errors.Join(errs...)
}

// table collects rules by pattern.
type table struct {
	rules map[string]admission.Rule
	errs  map[string]error
}

func (t *table) service(s protoreflect.ServiceDescriptor) {
	prefix := "/" + string(s.FullName()) + "/"
	t.add(prefix, s.Options(), E_ServiceAdmission)
	methods := s.Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		t.add(prefix+string(m.Name()), m.Options(), E_Admission)
	}
}

func (t *table) add(pattern string, options proto.Message, field protoreflect.ExtensionType) {
	if !proto.HasExtension(options, field) {
		return
	}
	rule, err := proto.GetExtension(options, field).(*Admission).rule()
	if err != nil {
		t.errs[pattern] = err
		return
	}
	t.rules[pattern] = rule
}

// rule is a in the terms of package admission.
func (a *Admission) rule() (admission.Rule, error) {
	level, ok := levels[a.GetLevel()]
	if !ok {
		return admission.Rule{}, fmt.Errorf("level: %d is none", a.GetLevel())
	}
	var opts []admission.RouteOption
	for _, n := range []struct {
		name   string
		value  uint32
		option func(int) admission.RouteOption
	}{
		{"cost", a.GetCost(), admission.Cost},
		{"slots", a.GetSlots(), admission.Slots},
		{"cap", a.GetCap(), admission.Cap},
		{"streams", a.GetStreams(), admission.Stream},
	} {
		switch {
		case n.value > math.MaxInt32:
			return admission.Rule{}, fmt.Errorf("%s: %d is too large", n.name, n.value)
		case n.value > 0:
			opts = append(opts, n.option(int(n.value)))
		}
	}
	if d := a.GetTimeout(); d != nil {
		if d.CheckValid() != nil || d.AsDuration() <= 0 {
			return admission.Rule{}, fmt.Errorf("timeout: %v: must be positive", d.AsDuration())
		}
		opts = append(opts, admission.Timeout(d.AsDuration()))
	}
	if a.GetPool() != "" {
		opts = append(opts, admission.InPool(a.GetPool()))
	}
	if a.GetExempt() {
		opts = append(opts, admission.Exempt())
	}
	return admission.AtLevel(level, opts...), nil
}

var levels = map[Level]priority.Level{
	Level_LEVEL_UNSPECIFIED: priority.Normal,
	Level_LEVEL_BATCH:       priority.Batch,
	Level_LEVEL_NORMAL:      priority.Normal,
	Level_LEVEL_HIGH:        priority.High,
	Level_LEVEL_CRITICAL:    priority.Critical,
}
