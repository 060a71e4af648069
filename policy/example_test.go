package policy_test

import (
	"fmt"
	"os"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/policy"
)

func Example() {
	file, err := policy.Parse("policy.yaml", []byte(`
gate:
  limits:
    rate: {rate: 50/s, burst: 100}
  capacity:
    limit: {fixed: 64}
  routes:
    "POST /checkout": {level: critical}
    "GET /export": {level: batch, cost: 5}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	opts, err := file.GateOptions(policy.Resources{})
	if err != nil {
		fmt.Println(err)
		return
	}
	gate := admission.MustNew(opts)
	fmt.Println(gate.Stats().Pools[0].Limit, "slots")
	// Output: 64 slots
}

func ExampleParse() {
	_, err := policy.Parse("policy.yaml", []byte("gate:\n  capasity: {}\n"))
	fmt.Println(err)
	// Output: policy.yaml:2:3: gate.capasity: unknown field "capasity"
}

// A program with settings of its own puts them beside the policy's sections.
func ExampleDocument() {
	doc, err := policy.ParseDocument("config.yaml", []byte("listen: :8080\ngate:\n  outcomes: maybe\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var config struct {
		Listen        string `yaml:"listen"`
		policy.Policy `yaml:",inline"`
	}
	if err := doc.Decode(&config); err != nil {
		fmt.Println(err)
		return
	}
	_, err = config.GateOptions(policy.Resources{})
	fmt.Println(config.Listen)
	fmt.Println(doc.At(err))
	// Output:
	// :8080
	// config.yaml:3:13: gate.outcomes: unknown "maybe"; there are: watch, off
}

func ExampleLoad() {
	path := os.TempDir() + "/headgate-example-policy.yaml"
	defer os.Remove(path)
	if err := os.WriteFile(path, []byte(policy.Example), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	file, err := policy.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	opts, err := file.OutboundOptions(policy.Resources{})
	fmt.Println(opts.Retry.Attempts, "attempts", err)
	// Output: 3 attempts <nil>
}
