package recipes

import "github.com/headgate-go/headgate/admission/caller"

// BehindNginx trusts the nginx on this machine and those of the private network.
// nginx must set the field: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for.
func BehindNginx() caller.ClientIP {
	// nginx: begin
	return caller.ClientIP{Trusted: []string{"127.0.0.1", "::1", "10.0.0.0/8"}}
	// nginx: end
}

// BehindCloudflare believes CF-Connecting-IP of Cloudflare's own addresses, as
// published at cloudflare.com/ips; read them again at every deploy. Nobody else may
// reach this server, or the header is anybody's.
func BehindCloudflare(published []string) caller.ClientIP {
	// cloudflare: begin
	return caller.ClientIP{Trusted: published, Header: "CF-Connecting-IP"}
	// cloudflare: end
}

// BehindALB counts the one load balancer in front, whose addresses change. The
// security group must let nobody else in.
func BehindALB() caller.ClientIP {
	// alb: begin
	return caller.ClientIP{Hops: 1}
	// alb: end
}

// BehindALBAndCloudFront counts both: CloudFront appends the client, the load
// balancer appends CloudFront.
func BehindALBAndCloudFront() caller.ClientIP {
	// cloudfront: begin
	return caller.ClientIP{Hops: 2}
	// cloudfront: end
}
