package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// redisWith runs redis-server with the given arguments until the test ends.
func redisWith(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("redis-server", append(args, "--save", "", "--appendonly", "no", "--daemonize", "no")...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// cli runs redis-cli and returns what it says.
func cli(t *testing.T, args ...string) string {
	t.Helper()
	out, _ := exec.Command("redis-cli", args...).CombinedOutput()
	return strings.TrimSpace(string(out))
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(freeAddr(t))
	return port
}

// clusterNode is a Cluster of one node that has all slots.
func clusterNode(t *testing.T) string {
	t.Helper()
	port := freePort(t)
	redisWith(t, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", freePort(t),
		"--cluster-config-file", "nodes.conf", "--cluster-require-full-coverage", "no")
	within(t, 20*time.Second, "a Cluster", func() bool {
		cli(t, "-p", port, "cluster", "addslotsrange", "0", "16383")
		return strings.Contains(cli(t, "-p", port, "cluster", "info"), "cluster_state:ok")
	})
	return port
}

const sharedSix = "\ngate:\n  limits: {rate: {rate: 1/h, burst: 6}}\n"

// sharedThrough expects that two edges serve six requests together through an address.
func sharedThrough(t *testing.T, address string) {
	t.Helper()
	b := newBackend(t)
	file := fmt.Sprintf("redis: %q", address) + sharedSix
	one, other := startEdge(t, b.URL, file), startEdge(t, b.URL, file)
	served := 0
	for range 6 {
		for _, e := range []*edge{one, other} {
			if status(t, e.base+"/hello") == 200 {
				served++
			}
		}
	}
	if served != 6 {
		t.Errorf("%s: %d of a shared burst of 6 were served", address, served)
	}
}

// Case ED-07: tried on the product
func TestOneNodeOfAClusterIsNoRedis(t *testing.T) {
	need(t, "redis-server", "redis-cli")
	port := clusterNode(t)
	t.Run("named as one server", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "edge.yaml")
		if err := os.WriteFile(path, []byte("redis: redis://127.0.0.1:"+port+sharedSix), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, check := range [][]string{{"-check"}, nil} {
			args := append([]string{"-upstream", "http://127.0.0.1:1", "-listen", "127.0.0.1:0", "-config", path}, check...)
			out, err := exec.Command(build(t, "../examples/edge"), args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "node of a Redis Cluster: say redis-cluster://") {
				t.Errorf("%v: %v\n%s", check, err, out)
			}
		}
	})
	t.Run("named as a Cluster", func(t *testing.T) { sharedThrough(t, "redis-cluster://127.0.0.1:"+port) })
	t.Run("named by its nodes", func(t *testing.T) {
		cli(t, "-p", port, "flushall")
		sharedThrough(t, "redis://127.0.0.1:"+port+",127.0.0.1:"+freePort(t))
	})
}

// Sentinel, a Unix socket, TLS with an authority of one's own, and a user.
func TestLimitsAreSharedThroughEveryFormOfRedis(t *testing.T) {
	need(t, "redis-server", "redis-cli")
	t.Run("a Unix socket", func(t *testing.T) {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("headgate-e2e-%d.sock", os.Getpid()))
		redisWith(t, "--port", "0", "--unixsocket", path)
		within(t, 20*time.Second, "Redis", func() bool { return cli(t, "-s", path, "ping") == "PONG" })
		sharedThrough(t, "unix://"+path)
	})
	t.Run("TLS", func(t *testing.T) {
		port, ca, key := freePort(t), "", ""
		ca, key = authority(t)
		redisWith(t, "--port", "0", "--tls-port", port, "--tls-cert-file", ca, "--tls-key-file", key, "--tls-ca-cert-file", ca, "--tls-auth-clients", "no")
		within(t, 20*time.Second, "Redis", func() bool { return cli(t, "-p", port, "--tls", "--cacert", ca, "ping") == "PONG" })
		sharedThrough(t, "rediss://127.0.0.1:"+port+"/0?ca="+ca)
	})
	t.Run("Sentinel", func(t *testing.T) {
		port, watch := freePort(t), freePort(t)
		redisWith(t, "--port", port)
		config := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("port %s\nsentinel monitor shop 127.0.0.1 %s 1\n", watch, port)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("redis-server", config, "--sentinel")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		within(t, 20*time.Second, "Sentinel", func() bool {
			return strings.Contains(cli(t, "-p", watch, "sentinel", "get-master-addr-by-name", "shop"), port)
		})
		sharedThrough(t, "redis-sentinel://127.0.0.1:"+watch+"/0?master=shop")
	})
	t.Run("a user, and the rights it lacks", func(t *testing.T) {
		port := freePort(t)
		redisWith(t, "--port", port)
		within(t, 20*time.Second, "Redis", func() bool { return cli(t, "-p", port, "ping") == "PONG" })
		cli(t, "-p", port, "acl", "setuser", "edge", "on", ">pass", "~headgate:*", "+eval", "+evalsha", "+ping", "+time", "+get", "+set",
			"+exists", "+pexpire", "+zadd", "+zcard", "+zrem", "+zscore", "+zrangebyscore", "+zremrangebyscore")
		cli(t, "-p", port, "acl", "setuser", "poor", "on", ">pass", "~headgate:*", "+eval", "+evalsha", "+ping", "+time", "+get", "+set", "+exists", "+pexpire")
		sharedThrough(t, "redis://edge:pass@127.0.0.1:"+port)
		for user, want := range map[string]string{"edge": "", "poor": "zadd"} {
			path := filepath.Join(t.TempDir(), "edge.yaml")
			if err := os.WriteFile(path, []byte("redis: redis://"+user+":pass@127.0.0.1:"+port+sharedSix), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(build(t, "../examples/edge"), "-upstream", "http://127.0.0.1:1", "-config", path, "-check", "-connect").CombinedOutput()
			if (err == nil) != (want == "") || !strings.Contains(string(out), want) || strings.Contains(string(out), "pass@") {
				t.Errorf("user %s: %v\n%s", user, err, out)
			}
		}
	})
}

// authority writes a certificate for 127.0.0.1 that signs itself, and its key.
func authority(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
