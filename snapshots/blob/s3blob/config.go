package s3blob

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"gridcast/snapshots/blob"
)

// Config describes the bucket and the way to reach it.
type Config struct {
	Bucket   string // must exist
	Prefix   string // of every key, without slashes at its ends; may be empty
	Endpoint string // URL of the server: https://host[:port], or http:// in a trusted network; "": Amazon S3
	Region   string // "": asked from the server

	// Addressing is the place of the bucket's name: Host (bucket.host/key), Path
	// (host/bucket/key), or Auto, which is Host for the large providers and Path elsewhere.
	Addressing Addressing

	// CA is a file of PEM certificates that the store trusts besides the system's.
	CA string

	// AccessKey and SecretKey, if set, are used. Otherwise the store looks for credentials in
	// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, MINIO_ROOT_USER and MINIO_ROOT_PASSWORD,
	// the AWS credentials file (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE), and the identity
	// of the machine or container, unless AWS_EC2_METADATA_DISABLED is true. Without
	// credentials requests are anonymous.
	AccessKey, SecretKey string

	Deadline time.Duration // for one operation with its retries; 0: 20 s
	Attempt  time.Duration // for one request of it; 0: 10 s
	Poll     time.Duration // between the polls of Watch, give or take a tenth; 0: 1 s
}

// Addressing is a way to name the bucket in a request.
type Addressing string

// The ways.
const (
	Auto Addressing = "auto"
	Path Addressing = "path"
	Host Addressing = "host"
)

// ParseURL reads s3://bucket/prefix?endpoint=URL&region=R&addressing=auto|path|host&ca=FILE.
// It must hold no credentials. An unknown parameter is an error.
func ParseURL(text string) (Config, error) {
	u, err := url.Parse(text)
	name := Redacted(text)
	if err != nil || u.Scheme != "s3" || u.User != nil {
		return Config{}, fmt.Errorf("store %q: want s3://bucket/prefix, without credentials", name)
	}
	c := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, fmt.Errorf("store %q: %w", name, err)
	}
	for _, parameter := range slices.Sorted(maps.Keys(values)) {
		field, ok := map[string]*string{
			"endpoint": &c.Endpoint, "region": &c.Region, "addressing": (*string)(&c.Addressing), "ca": &c.CA,
		}[parameter]
		if !ok || len(values[parameter]) != 1 {
			return Config{}, fmt.Errorf("store %q: parameter %s unknown or repeated; known are endpoint, region, addressing and ca", name, parameter)
		}
		*field = values.Get(parameter)
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("store %q: %w", name, err)
	}
	return c, nil
}

// Redacted returns a URL for an error: without its parameters and its password, because people put credentials there.
func Redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil || strings.Contains(u.Opaque, "@") {
		return "…"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.Bucket == "" {
		faults = append(faults, errors.New("no bucket"))
	}
	if c.Prefix != "" {
		if err := blob.CheckKey(c.Prefix); err != nil {
			faults = append(faults, fmt.Errorf("prefix: %w", err))
		}
	}
	if _, _, err := c.server(); err != nil {
		faults = append(faults, err)
	}
	if _, ok := lookups[c.Addressing]; !ok {
		faults = append(faults, fmt.Errorf("addressing %q: want auto, path or host", c.Addressing))
	}
	return errors.Join(faults...)
}

var lookups = map[Addressing]minio.BucketLookupType{
	"": minio.BucketLookupAuto, Auto: minio.BucketLookupAuto, Path: minio.BucketLookupPath, Host: minio.BucketLookupDNS,
}

// server returns the host of the endpoint, and whether it is reached by TLS.
func (c Config) server() (host string, secure bool, err error) {
	if c.Endpoint == "" {
		return "s3.amazonaws.com", true, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", false, fmt.Errorf("endpoint %q: want https://host[:port]", Redacted(c.Endpoint))
	}
	return u.Host, u.Scheme == "https", nil
}

func (c Config) credentials() *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	chain := []credentials.Provider{&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}}
	if !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		// On a machine without an identity service, packets to its address vanish.
		client := &http.Client{Timeout: 2 * time.Second}
		chain = append(chain, &credentials.IAM{Client: client})
	}
	return credentials.NewChainCredentials(chain)
}

// transport keeps connections for the parallel requests of a publish or an edge.
func (c Config) transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: c.Attempt,
		IdleConnTimeout:       time.Minute,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   64,
		DisableCompression:    true, // objects stay unchanged, gzip files too
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if c.CA == "" {
		return t, nil
	}
	certificates, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("certificates of the system: %w", err)
	}
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, fmt.Errorf("certificates to trust: %s holds none", c.CA)
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}
