package admissionpb_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate/admissionpb"
	"github.com/headgate-go/headgate/admission/grpcgate/admissionpb/internal/shoppb"
	"github.com/headgate-go/headgate/priority"
)

func ExampleRoutes() {
	routes, err := admissionpb.Routes(shoppb.File_shop_proto)
	if err != nil {
		panic(err)
	}
	routes["/internal.Admin/"] = admission.AtLevel(priority.High) // of a file without options
	fmt.Println(slices.Sorted(maps.Keys(routes)))
	// admission.New(admission.Options{Routes: routes, …})

	// Output:
	// [/internal.Admin/ /shop.v1.Shop/ /shop.v1.Shop/Export /shop.v1.Shop/Pay /shop.v1.Shop/Ping /shop.v1.Shop/Watch]
}
