package edge

import "github.com/headgate-go/headgate/policy"

// SchemaURL is where the schema of a file is published, for the file's first line.
const SchemaURL = "https://raw.githubusercontent.com/headgate-go/headgate/main/cmd/headgate/edge.schema.json"

// Schema returns the JSON Schema of the edge's file.
func Schema() ([]byte, error) { return policy.Schema(SchemaURL, "The edge of Headgate", Config{}) }
