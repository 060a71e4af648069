package policy

import (
	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
)

// Policy is what a file says.
type Policy struct {
	// Redis is the address of the store that the limits are shared through, such
	// as redis://10.0.0.7:6379/0. Empty: every process has limits of its own.
	Redis string `yaml:"redis"`
	// Gate is what comes in.
	Gate gate `yaml:"gate"`
	// Outbound is what goes out.
	Outbound outboundCalls `yaml:"outbound"`
}

// Resources are what a file can name but not hold. The zero value is enough for a
// file that names none.
type Resources struct {
	// Shared makes a limit that all processes share through Policy.Redis. It is
	// called for every limit that is not local when Redis is set, and the limits
	// it returns are the caller's to close. Nil: a file with Redis is an error.
	Shared func(SharedLimit) (ratelimit.Limiter, error)
	// Observer becomes Options.Observer.
	Observer admission.Observer
	// OutboundObserver becomes outbound.Options.Observer.
	OutboundObserver outbound.Observer
}

// SharedLimit is a limit as [Resources].Shared is asked for it.
type SharedLimit struct {
	Redis string                    // the address
	Name  string                    // unique in the file
	Plan  ratelimit.Plan            // of callers without one
	Plans map[string]ratelimit.Plan // nil: none
	Keys  int                       // most keys tracked; 0: the default
}

// Load reads the policy in the file at path. The errors of GateOptions and
// OutboundOptions then name file and line.
func Load(path string) (*File, error) {
	doc, err := ReadDocument(path)
	if err != nil {
		return nil, err
	}
	return read(doc)
}

// Parse is [Load] for text that is at hand; name stands where the path would.
func Parse(name string, text []byte) (*File, error) {
	doc, err := ParseDocument(name, text)
	if err != nil {
		return nil, err
	}
	return read(doc)
}

func read(doc *Document) (*File, error) {
	f := &File{doc: doc}
	if err := doc.Decode(&f.Policy); err != nil {
		return nil, err
	}
	return f, nil
}

// File is a policy and where it was read.
type File struct {
	Policy
	doc *Document
}

// GateOptions returns what the file says about the gate, checked field by field:
// [admission.New] and [admission.Gate.Update] take them as they are.
func (f *File) GateOptions(r Resources) (admission.Options, error) {
	opts, err := f.Policy.GateOptions(r)
	return opts, f.doc.At(err)
}

// OutboundOptions returns what the file says about calls going out.
func (f *File) OutboundOptions(r Resources) (outbound.Options, error) {
	opts, err := f.Policy.OutboundOptions(r)
	return opts, f.doc.At(err)
}

// GateOptions returns the options of section gate. Errors are [FieldError]s, all
// of them at once.
func (p *Policy) GateOptions(r Resources) (admission.Options, error) {
	at := start("gate")
	opts := p.Gate.options(at, p.limits(r))
	opts.Observer = r.Observer
	if err := at.err(); err != nil {
		return admission.Options{}, err
	}
	// What is left are contradictions between fields.
	probe := opts
	probe.Observer = nil
	if _, err := admission.New(probe); err != nil {
		at.wrong(err)
	}
	return opts, at.err()
}

// OutboundOptions returns the options of section outbound.
func (p *Policy) OutboundOptions(r Resources) (outbound.Options, error) {
	at := start("outbound")
	opts := p.Outbound.options(at, p.limits(r))
	if err := at.err(); err != nil {
		return outbound.Options{}, err
	}
	if _, err := outbound.New(opts); err != nil {
		at.wrong(err)
	}
	opts.Observer = r.OutboundObserver
	return opts, at.err()
}

func (p *Policy) limits(r Resources) limits {
	return limits{redis: p.Redis, shared: r.Shared, named: map[string]SharedLimit{}}
}
