package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// certificate loads the member's own, or signs one for all its names. It stays on the volume.
func certificate(folder string, s settings) (tls.Certificate, error) {
	file := filepath.Join(folder, "certificate.pem")
	if pair, err := tls.LoadX509KeyPair(file, file); err == nil {
		return pair, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, err
	}
	body := x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: s.name, OrganizationalUnit: []string{s.group}},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // so that a client may take it as its trust anchor
		DNSNames:              []string{s.name},
		IPAddresses:           []net.IP{net.ParseIP(s.address)},
	}
	// Within a cluster a name works without the domain's last parts too.
	for name := s.host; net.ParseIP(s.host) == nil; {
		if name != s.name {
			body.DNSNames = append(body.DNSNames, name)
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			break
		}
		name = name[:dot]
	}
	signed, err := x509.CreateCertificate(rand.Reader, &body, &body, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(text, text)
}
