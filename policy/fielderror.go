package policy

import (
	"fmt"
	"strings"
)

// FieldError is a value that makes no sense.
type FieldError struct {
	path []string
	Err  error // what is wrong with it
}

// Field returns the field's name, such as gate.limits.rate.burst.
func (e *FieldError) Field() string { return strings.Join(e.path, ".") }

// Wrong returns err as the error of a field, given step by step, for settings that
// a program checks itself. A nil err yields nil.
func Wrong(err error, field ...string) error {
	if err == nil {
		return nil
	}
	return &FieldError{field, err}
}

// Error names the field and says what is wrong with it.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %v", e.Field(), e.Err) }

// Unwrap returns what is wrong with the value.
func (e *FieldError) Unwrap() error { return e.Err }

// problems are everything wrong with a file: all of it is told at once.
type problems []*FieldError

func (ps problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one.
func (ps problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// fieldErrors returns those in the tree of err.
func fieldErrors(err error) (all []*FieldError) {
	switch e := err.(type) {
	case *FieldError:
		return []*FieldError{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, fieldErrors(one)...)
		}
	case interface{ Unwrap() error }:
		return fieldErrors(e.Unwrap())
	}
	return all
}

// place is where in the file we are, and what was wrong so far.
type place struct {
	path []string
	all  *problems
}

func start(section string) place { return place{path: []string{section}, all: new(problems)} }

// in returns the place of a field below.
func (p place) in(steps ...string) place {
	path := make([]string, 0, len(p.path)+len(steps))
	return place{append(append(path, p.path...), steps...), p.all}
}

// wrong notes an error here; nil is none.
func (p place) wrong(err error) {
	if err != nil {
		*p.all = append(*p.all, &FieldError{p.path, err})
	}
}

func (p place) wrongf(format string, args ...any) { p.wrong(fmt.Errorf(format, args...)) }

// err returns what was wrong anywhere, or nil.
func (p place) err() error {
	if len(*p.all) == 0 {
		return nil
	}
	return *p.all
}
