package tree

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
)

// Decode fills what into points to. A field that the struct does not have is an error,
// as is a value of the wrong kind; fields that the tree does not have are left as they
// are. Structs name their fields with the tag yaml, texts that mean more implement
// encoding.TextUnmarshaler. The errors are *Error.
func (n *Node) Decode(into any) error {
	if n == nil {
		return nil
	}
	return n.into(reflect.ValueOf(into).Elem(), nil)
}

func (n *Node) into(v reflect.Value, path []string) error {
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return n.scalar(path, "a single value", text.UnmarshalText)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return n.pointer(v, path)
	case reflect.Struct:
		return n.section(path, func() error { return n.fields(v, path) })
	case reflect.Map:
		return n.section(path, func() error { return n.keys(v, path) })
	case reflect.Slice:
		return n.list(v, path)
	case reflect.String:
		return n.scalar(path, "a text", func(text []byte) error { v.SetString(string(text)); return nil })
	case reflect.Bool:
		return n.scalar(path, "true or false", func(text []byte) error { return n.truth(v) })
	}
	return n.wrong(path, "cannot hold a %s", v.Type()) // a mistake of the program
}

func (n *Node) wrong(path []string, format string, args ...any) *Error {
	return &Error{File: n.File, Line: n.Line, Column: n.Column, Path: path, Message: fmt.Sprintf(format, args...)}
}

func (n *Node) scalar(path []string, want string, set func([]byte) error) error {
	if n.Kind != Scalar {
		return n.wrong(path, "must be %s", want)
	}
	if err := set([]byte(n.Text)); err != nil {
		return n.wrong(path, "%v", err)
	}
	return nil
}

func (n *Node) truth(v reflect.Value) error {
	if n.Quoted || n.Text != "true" && n.Text != "false" {
		return fmt.Errorf("must be true or false, not %q", n.Text)
	}
	v.SetBool(n.Text == "true")
	return nil
}

// pointer leaves nil for null, and never decodes over what a default points to.
func (n *Node) pointer(v reflect.Value, path []string) error {
	if n.Null() {
		v.SetZero()
		return nil
	}
	fresh := reflect.New(v.Type().Elem())
	if err := n.into(fresh.Elem(), path); err != nil {
		return err
	}
	v.Set(fresh)
	return nil
}

// section calls fill for a mapping; one that is left empty says nothing.
func (n *Node) section(path []string, fill func() error) error {
	switch {
	case n.Null():
		return nil
	case n.Kind != Mapping:
		return n.wrong(path, "must be a mapping of names to values")
	}
	return fill()
}

func (n *Node) fields(v reflect.Value, path []string) error {
	for _, f := range n.Fields {
		here := step(path, f.Name)
		field, ok := named(v, f.Name)
		if !ok {
			return &Error{File: n.File, Line: f.Line, Column: f.Column, Path: here, Message: fmt.Sprintf("unknown field %q", f.Name)}
		}
		if err := f.Value.into(field, here); err != nil {
			return err
		}
	}
	return nil
}

// named returns the field of a struct that the tag yaml gives a name, also within
// structs that are inlined.
func named(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		tag, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if option == "inline" {
			if field, ok := named(v.Field(i), name); ok {
				return field, true
			}
		} else if tag == name && tag != "" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func (n *Node) keys(v reflect.Value, path []string) error {
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Fields)))
	for _, f := range n.Fields {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := f.Value.into(value, step(path, f.Name)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(f.Name).Convert(v.Type().Key()), value)
	}
	return nil
}

func (n *Node) list(v reflect.Value, path []string) error {
	if n.Null() {
		v.SetZero()
		return nil
	}
	if n.Kind != Sequence {
		return n.wrong(path, "must be a list")
	}
	list := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		if err := item.into(list.Index(i), step(path, index(i))); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}
