package policy

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Schema returns a JSON Schema (draft 2020-12) for files that are decoded into structs of
// the type of v, such as Policy{}, for editors and for checks before a deploy. The tag
// words lists what a text may be, the tag pattern what it looks like. What only the whole
// file can tell (a plan that a key names, numbers that contradict each other) the schema
// leaves to GateOptions.
func Schema(id, title string, v any) ([]byte, error) {
	g := schemas{defs: object{}}
	root, err := g.of(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	top := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": title, "$defs": g.defs,
	}
	for k, v := range g.defs[strings.TrimPrefix(root["$ref"].(string), "#/$defs/")].(object) {
		top[k] = v
	}
	text, err := json.MarshalIndent(top, "", "  ")
	return append(text, '\n'), err
}

// schemas are those of the structs met so far, by name.
type schemas struct{ defs object }

// text is a scalar that is read as it stands: an editor may take it for a number.
func text(pattern string, about string) object {
	return object{"type": []string{"string", "number", "integer"}, "minimum": 0, "pattern": pattern, "description": about}
}

// ofTime is a time: of numbers alone, only 0 is one.
func ofTime(pattern string, about string) object {
	return object{"type": []string{"string", "integer"}, "minimum": 0, "maximum": 0, "pattern": pattern, "description": about}
}

const (
	decimal         = `([0-9]+(\.[0-9]*)?|\.[0-9]+)`
	durationPattern = `^\+?(0|(` + decimal + `(ns|us|µs|μs|ms|s|m|h))+)$`
	headerPattern   = "^[!#$%&'*+.^_`|~0-9A-Za-z-]*$"
	ratePattern     = `^ *\+?` + decimal + `([eE][-+]?[0-9]+)? */ *[smhd] *$`
)

// scalars are the schemas of the texts that mean more.
var scalars = map[reflect.Type]object{
	reflect.TypeFor[Int]():        {"type": "integer", "minimum": 0},
	reflect.TypeFor[number]():     {"type": "number"},
	reflect.TypeFor[Bytes]():      text(`^[0-9]{1,19} *(KiB|MiB|GiB)?$`, "a size such as 512, 64KiB, 16MiB or 1GiB"),
	reflect.TypeFor[Duration]():   ofTime(durationPattern, "a time such as 250ms or 5s"),
	reflect.TypeFor[wait]():       ofTime(`^none$|`+durationPattern, "a time such as 250ms, or none"),
	reflect.TypeFor[perSecond]():  {"type": "string", "pattern": ratePattern, "description": "a rate such as 50/s, 600/m, 10/h or 1000/d"},
	reflect.TypeFor[headerName](): {"type": []string{"string", "number", "integer"}, "pattern": headerPattern},
	reflect.TypeFor[level]():      {"enum": []string{"batch", "normal", "high", "critical"}},
}

type object = map[string]any

// of returns the schema of a type.
func (g schemas) of(t reflect.Type) (object, error) {
	if s, ok := scalars[t]; ok {
		return s, nil
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil, fmt.Errorf("policy: no schema for %v", t)
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": []string{"string", "number", "integer", "boolean", "null"}}, nil
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.Pointer:
		return g.nullable(t.Elem())
	case reflect.Slice:
		return g.each("array", "items", t.Elem())
	case reflect.Map:
		return g.each("object", "additionalProperties", t.Elem())
	case reflect.Struct:
		return g.section(t)
	}
	return nil, fmt.Errorf("policy: no schema for %v", t)
}

// nullable is a value that may be left empty.
func (g schemas) nullable(t reflect.Type) (object, error) {
	inner, err := g.of(t)
	return object{"anyOf": []any{inner, object{"type": "null"}}}, err
}

// each is a list or a mapping of values of one type; empty means none.
func (g schemas) each(kind, key string, t reflect.Type) (object, error) {
	inner, err := g.of(t)
	return object{"type": []string{kind, "null"}, key: inner}, err
}

// section is a struct, by reference, so that one may hold itself.
func (g schemas) section(t reflect.Type) (object, error) {
	ref := object{"$ref": "#/$defs/" + t.Name()}
	if _, known := g.defs[t.Name()]; known {
		return ref, nil
	}
	fields := object{}
	def := object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": fields}
	if more := contradictions[t]; more != nil {
		// Of nothing, that is of null, nothing is required.
		def["anyOf"] = []object{{"type": "null"}, more}
	}
	g.defs[t.Name()] = def
	return ref, g.fields(t, fields)
}

func (g schemas) fields(t reflect.Type, into object) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			if err := g.fields(f.Type, into); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			continue
		}
		s, err := g.of(f.Type)
		if err != nil {
			return err
		}
		into[name] = told(s, f.Tag)
	}
	return nil
}

// told is the schema of a field with what its tag says of the text, or of each text of a
// list. Empty is as not given.
func told(s object, tag reflect.StructTag) object {
	words, pattern := tag.Get("words"), tag.Get("pattern")
	if words == "" && pattern == "" {
		return s
	}
	said := object{"type": []string{"string", "number", "integer"}, "pattern": "^$|" + pattern}
	if words != "" {
		said = object{"enum": strings.Split(words, ",")}
	}
	if s["items"] != nil {
		return object{"type": s["type"], "items": said}
	}
	if words != "" {
		said["enum"] = append(strings.Split(words, ","), "")
	}
	return said
}
