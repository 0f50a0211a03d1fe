package edge_test

import (
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/keys"
)

func TestValidateReportsEveryFault(t *testing.T) {
	cfg := edge.DefaultConfig()
	cfg.Listen = "8080"
	cfg.AdminListen = "here"
	cfg.TLSCert = "cert.pem"
	cfg.Tiers = keys.Tiers{"trial": 0}
	cfg.AnonymousLimit = 0
	cfg.MaxHeaderBytes = 1
	cfg.IdleTimeout = -1
	cfg.DrainDelay = -1
	err := cfg.Validate()
	must.Require(t, err != nil, "got no error")
	must.Show(t, "the error", err.Error(), `listen "8080"`, `admin listen "here"`, "TLS wants", `tier "trial": 0`, "anonymous limit: 0",
		"header bytes: 1", "idle timeout: -1ns", "drain delay: -1ns")
	must.Fail(t, "New takes a configuration that is not valid", must.Err(edge.New(cfg, edge.Deps{})))
}
