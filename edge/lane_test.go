package edge_test

import (
	"testing"
)

// expressLane says whether the edges of tests have an express lane.
var expressLane = true

// TestContractWithoutExpressLane runs again without the lane what the others ran with it.
func TestContractWithoutExpressLane(t *testing.T) {
	expressLane = false
	t.Cleanup(func() { expressLane = true })
	for _, contract := range []struct {
		name string
		test func(*testing.T)
	}{
		{"OrderOfChecks", TestOrderOfChecks},
		{"HeadersOfData", TestHeadersOfData},
		{"Encodings", TestEncodings},
		{"NotModified", TestNotModified},
		{"Preflight", TestPreflight},
		{"AbsoluteForm", TestAbsoluteForm},
		{"Credentials", TestCredentials},
		{"Origins", TestOrigins},
		{"Parameters", TestParameters},
		{"LimitOfEachTier", TestLimitOfEachTier},
		{"EveryRequestWithAKeyCounts", TestEveryRequestWithAKeyCounts},
		{"OverTheLimit", TestOverTheLimit},
		{"AnonymousWindow", TestAnonymousWindow},
		{"WindowsBehindAProxy", TestWindowsBehindAProxy},
		{"CountdownMovesByItself", TestCountdownMovesByItself},
		{"OutsideTheBasePath", TestOutsideTheBasePath},
		{"DocumentsAreCached", TestDocumentsAreCached},
		{"Readiness", TestReadiness},
		{"Status", TestStatus},
		{"StatusPage", TestStatusPage},
		{"KeysAreReloaded", TestKeysAreReloaded},
		{"UsageOfEachKey", TestUsageOfEachKey},
		{"HTTPLayer", TestHTTPLayer},
		{"BugIsAnError", TestBugIsAnError},
		{"PipelinedRequests", TestPipelinedRequests},
		{"SwapsUnderLoad", TestSwapsUnderLoad},
		{"Drain", TestDrain},
		{"DrainDelay", TestDrainDelay},
		{"Admin", TestAdmin},
	} {
		t.Run(contract.name, contract.test)
	}
}
