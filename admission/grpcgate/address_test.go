package grpcgate

import (
	"net"
	"testing"
)

func TestAddressesAreWrittenAsStringDoes(t *testing.T) {
	for _, a := range []net.Addr{
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234},
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 1},
		&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 65535},
		&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 9, Zone: "eth0"},
		&net.TCPAddr{Port: 80},
		(*net.TCPAddr)(nil),
		&net.UnixAddr{Name: "/run/x", Net: "unix"},
	} {
		if got := addressOf(a); got != a.String() {
			t.Errorf("%q, want %q", got, a.String())
		}
	}
	if got := addressOf(nil); got != "" {
		t.Errorf("no address is %q", got)
	}
}
