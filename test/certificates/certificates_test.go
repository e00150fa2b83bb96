package certificates_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// forgedCertificate returns a foreign certificate and key for the Service in PEM, signed by itself or by a CA.
func forgedCertificate(t *testing.T, isSigned bool) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"webhook.ns.svc"}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().AddDate(100, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := template, private
	if isSigned {
		if signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
		ca := *template
		ca.SerialNumber = big.NewInt(2)
		parent = &ca
	}
	data, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// wantUnpublished checks that no API server trusts a certificate, and that the Secret does not have it.
func (c *cluster) wantUnpublished(cert []byte) {
	c.t.Helper()
	for _, entry := range c.currentEntries() {
		if bytes.Contains(entry.ClientConfig.CABundle, cert) {
			c.t.Errorf("the entry %s trusts the foreign certificate", entry.Name)
		}
	}
	for key, value := range c.secretData() {
		if bytes.Contains(value, cert) {
			c.t.Errorf("the Secret still has the foreign certificate in %s", key)
		}
	}
}

// A tenant creates the Secret before the operator does.
func TestForeignSecretBefore(t *testing.T) {
	for name, isSigned := range map[string]bool{"SelfSigned": false, "OtherCA": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(c *cluster) {
				cert, key := forgedCertificate(t, isSigned)
				c.putSecret(map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": cert})
				c.start("webhook")
				c.start("webhook")
				c.run(changeover)
				c.wantUnpublished(cert)
			})
		})
	}
}

// A tenant changes the Secret of an operator at work. Another replica starts before the others have noticed.
func TestSecretChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, keys := range map[string][3]string{
		"Current": {"tls.crt", "tls.key", "ca.crt"}, "Next": {"next.crt", "next.key", ""}, "CA": {"", "", "ca.crt"},
		"Certificate": {"tls.crt", "", ""}, "Key": {"", "tls.key", ""},
	} {
		for form, isSigned := range map[string]bool{"SelfSigned": false, "OtherCA": true} {
			t.Run(name+form, func(t *testing.T) {
				play(t, func(c *cluster) {
					c.start("webhook")
					c.start("webhook")
					c.run(time.Minute + 20*time.Second)
					cert, key := forgedCertificate(t, isSigned)
					changes := map[string][]byte{}
					for i, value := range [][]byte{cert, key, append(c.secretData()["ca.crt"], cert...)} {
						if keys[i] != "" {
							changes[keys[i]] = value
						}
					}
					c.putSecret(changes)
					c.start("webhook")
					c.run(changeover)
					c.wantUnpublished(cert)
				})
			})
		}
	}
}

func TestSecretDeleted(t *testing.T) {
	for name, started := range map[string]int{"AtWork": 0, "RollingUpdate": 1} {
		t.Run(name, func(t *testing.T) {
			play(t, func(c *cluster) {
				first := c.start("webhook")
				c.run(time.Minute + 20*time.Second)
				former := c.secretData()["tls.crt"]
				c.Delete(secrets, "ns", "webhooks")
				for range started {
					c.start("webhook")
				}
				c.run(changeover)
				if started > 0 {
					c.stop(first)
					c.run(changeover)
				}
				if data := c.secretData(); len(data["tls.crt"]) == 0 || bytes.Equal(data["tls.crt"], former) {
					t.Error("the Secret is back, with a new certificate")
				}
			})
		})
	}
}

// The next version of the operator is behind another Service.
func TestHostChange(t *testing.T) {
	play(t, func(c *cluster) {
		first := c.start("webhook")
		c.run(2 * time.Minute)
		second := c.start("moved")
		c.run(time.Minute)
		c.stop(first)
		c.run(changeover)
		third := c.start("webhook")
		c.run(10 * time.Second)
		c.stop(second)
		c.run(changeover)
		if hosts := third.host; !strings.HasPrefix(hosts, "webhook.") || len(c.replicas) != 1 {
			t.Errorf("the last version is back at the first host: got %s", hosts)
		}
	})
}

// A process whose clock was a day ahead has left a Secret with its record.
func TestClockAhead(t *testing.T) {
	var secret, configuration map[string]any
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		c := newCluster(t)
		c.start("webhook")
		c.run(time.Minute)
		secret, configuration = c.Object(secrets, "ns", "webhooks"), c.Object(validating, "", managedName)
		c.stopAll()
	})
	play(t, func(c *cluster) {
		delete(configuration, "webhooks")
		c.Put(validating, configuration)
		c.Put(secrets, secret)
		c.start("webhook")
		c.run(changeover)
		c.Put(secrets, secret)
		c.start("webhook")
		c.run(changeover)
	})
}

// Two replicas renew their certificate several times, and are replaced meanwhile.
func TestRotation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	play(t, func(c *cluster) {
		former := [2]*replica{c.start("webhook"), c.start("webhook")}
		for i := range 6 {
			c.run(23 * time.Minute)
			replaced := former[i%2]
			former[i%2] = c.start("webhook")
			c.run(propagation + interval)
			c.stop(replaced)
		}
	})
}

// TestReplicasTakeTurns replaces a replica by another one, as in a rolling update, at all stages of a renewal.
func TestReplicasTakeTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, pause := range map[string]time.Duration{
		"AtOnce": 10 * time.Second, "Soon": overlap - time.Minute, "Later": changeover, "Renewing": 41 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(c *cluster) {
				last := c.start("webhook")
				c.run(pause)
				for range 8 {
					next := c.start("webhook")
					c.run(pause / 2)
					c.stop(last)
					c.run(pause / 2)
					last = next
				}
				c.run(changeover)
			})
		})
	}
}
