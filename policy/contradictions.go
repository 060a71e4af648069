package policy

import "reflect"

// contradictions are what the fields of a section may not be, or not be together, as far
// as a schema can say it.
var contradictions = map[reflect.Type]object{
	reflect.TypeFor[identity](): {"minProperties": 1, "maxProperties": 1},
	reflect.TypeFor[apiKey]():   {"required": []string{"header"}, "properties": object{"keys": object{"uniqueItems": true}}},
	reflect.TypeFor[key]():      {"oneOf": []object{required("key"), required("sha256")}},
	reflect.TypeFor[limit]():    {"oneOf": []object{ofRate, ofCount}},
	reflect.TypeFor[plan]():     {"properties": object{"share": object{"minimum": 0, "maximum": 1}}},
	reflect.TypeFor[law]():      {"maxProperties": 1, "properties": object{"fixed": object{"minimum": 1}}},
	reflect.TypeFor[aimd]():     {"properties": object{"backoff": object{"minimum": 0, "exclusiveMaximum": 1}}},
	reflect.TypeFor[route](): {
		"not":  required("cap", "stream"),
		"if":   object{"required": []string{"exempt"}, "properties": object{"exempt": object{"const": true}}},
		"then": object{"maxProperties": 1},
	},
	reflect.TypeFor[outboundCalls](): {"properties": object{"rate": without("plans")}},
}

// A limit is one of these two.
var (
	ofRate = object{
		"required":   []string{"rate", "burst"},
		"properties": object{"count": false, "per": false, "each": false, "zone": false, "plans": object{"additionalProperties": without("count")}},
	}
	ofCount = object{
		"required": []string{"count"},
		"oneOf":    []object{{"required": []string{"per"}, "properties": object{"zone": false}}, required("each")},
		"properties": object{"rate": false, "burst": false, "global": false, "plans": object{"additionalProperties": object{
			"properties": object{"rate": false, "burst": false, "cost": false, "level": false, "share": false, "weight": false},
			"anyOf":      []object{required("count"), required("allow")},
		}}},
	}
)

func required(fields ...string) object { return object{"required": fields} }

func without(field string) object { return object{"properties": object{field: false}} }
