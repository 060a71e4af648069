package policy

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Schema returns a JSON Schema (draft 2020-12) for files that are decoded into structs of
// the type of v, such as Policy{}, for editors and for checks before a deploy. What only
// the whole file can tell (a plan that a key names, two laws at once) it leaves to
// GateOptions.
func Schema(id, title string, v any) ([]byte, error) {
	g := schemas{defs: map[string]any{}}
	root, err := g.of(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	top := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": title, "$defs": g.defs,
	}
	for k, v := range g.defs[strings.TrimPrefix(root["$ref"].(string), "#/$defs/")].(map[string]any) {
		top[k] = v
	}
	text, err := json.MarshalIndent(top, "", "  ")
	return append(text, '\n'), err
}

// schemas are those of the structs met so far, by name.
type schemas struct{ defs map[string]any }

// text is a scalar that is read as it stands: an editor may take it for a number.
func text(pattern string, about string) map[string]any {
	return map[string]any{"type": []string{"string", "number", "integer"}, "pattern": pattern, "description": about}
}

// ofTime is a time: of numbers alone, only 0 is one.
func ofTime(pattern string, about string) map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "minimum": 0, "maximum": 0, "pattern": pattern, "description": about}
}

const durationPattern = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$`

// scalars are the schemas of the texts that mean more.
var scalars = map[reflect.Type]map[string]any{
	reflect.TypeFor[Int]():       {"type": "integer"},
	reflect.TypeFor[number]():    {"type": "number"},
	reflect.TypeFor[Bytes]():     text(`^-?[0-9]+ *(KiB|MiB|GiB)?$`, "a size such as 512, 64KiB, 16MiB or 1GiB"),
	reflect.TypeFor[Duration]():  ofTime(durationPattern, "a time such as 250ms or 5s"),
	reflect.TypeFor[wait]():      ofTime(`^none$|`+durationPattern, "a time such as 250ms, or none"),
	reflect.TypeFor[perSecond](): {"type": "string", "pattern": `^[^/]+/ *[smhd] *$`, "description": "a rate such as 50/s, 600/m, 10/h or 1000/d"},
	reflect.TypeFor[level]():     {"enum": []string{"batch", "normal", "high", "critical"}},
}

// of returns the schema of a type.
func (g schemas) of(t reflect.Type) (map[string]any, error) {
	if s, ok := scalars[t]; ok {
		return s, nil
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil, fmt.Errorf("policy: no schema for %v", t)
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": []string{"string", "number", "integer", "boolean", "null"}}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
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
func (g schemas) nullable(t reflect.Type) (map[string]any, error) {
	inner, err := g.of(t)
	return map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}, err
}

// each is a list or a mapping of values of one type; empty means none.
func (g schemas) each(kind, key string, t reflect.Type) (map[string]any, error) {
	inner, err := g.of(t)
	return map[string]any{"type": []string{kind, "null"}, key: inner}, err
}

// section is a struct, by reference, so that one may hold itself.
func (g schemas) section(t reflect.Type) (map[string]any, error) {
	ref := map[string]any{"$ref": "#/$defs/" + t.Name()}
	if _, known := g.defs[t.Name()]; known {
		return ref, nil
	}
	fields := map[string]any{}
	g.defs[t.Name()] = map[string]any{"type": []string{"object", "null"}, "additionalProperties": false, "properties": fields}
	return ref, g.fields(t, fields)
}

func (g schemas) fields(t reflect.Type, into map[string]any) error {
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
		into[name] = s
	}
	return nil
}
