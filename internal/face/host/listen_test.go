package host

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRenewedCertificate replaces the files of the certificate while the server listens.
func TestRenewedCertificate(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	write := func(path, kind string, der []byte) {
		t.Helper()
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew := func(name string) (private []byte) {
		t.Helper()
		public, secret, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(nil, template, template, public, secret)
		if err != nil {
			t.Fatal(err)
		}
		write(cert, "CERTIFICATE", der)
		private, err = x509.MarshalPKCS8PrivateKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		return private
	}
	write(key, "PRIVATE KEY", renew("one"))
	var log strings.Builder
	l, _, err := Listen(context.Background(), ListenOptions{Address: "127.0.0.1:0", Auth: "off", Cert: cert, Key: key}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	served := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "one" {
		t.Errorf("the certificate is %s", got)
	}
	private := renew("another")
	if got := served(); got != "one" {
		t.Errorf("with a new certificate and the old key the certificate is %s", got)
	}
	write(key, "PRIVATE KEY", private)
	if got := served(); got != "another" {
		t.Errorf("after a renewal the certificate is %s", got)
	}
	l.Close()
	if <-ended; !strings.Contains(log.String(), "keeps its certificate") {
		t.Errorf("the log is %s", log.String())
	}
}
