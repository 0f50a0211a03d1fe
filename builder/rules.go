package builder

import (
	"fmt"
	"sync"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/provenance"
	"gridcast/builder/season"
	"gridcast/builder/settings"
)

// LastMinute is the time before lights out in which a pick is frozen even without the settings of the store.
const LastMinute = time.Minute

// substitute is the reason of a pick that was frozen without the settings of the store.
const substitute = "the settings could not be read, so the default model %s made the pick"

// Policy holds the rules by which a builder decides without an operator.
type Policy struct {
	// Model makes the picks.
	Model predict.Model
	// AutoVerifyAfter is the time after which an unchanged classification is verified by itself. It
	// counts from the later of race end and arrival. Zero, the default: only an operator verifies.
	AutoVerifyAfter time.Duration
	// AutoReviseAfter is the same time for a classification that differs from the verified one. It
	// becomes the next revision. Zero, the default: only an operator corrects.
	AutoReviseAfter time.Duration
	// Stability says since when an archive, named by its sum, has a result unchanged. Settle calls it
	// with the ledger locked, so it must not block. If nil, results are unchanged since the race ended.
	Stability func(archive string, year int, gp season.GrandPrixID) provenance.Stability
	// Arrived returns when the present qualifying of a round reached the archive, zero if unknown. It
	// must not block either. If nil, the end of qualifying counts.
	Arrived func(year int, gp season.GrandPrixID) time.Time

	// Observed returns the observations of a race as read last, nil if it has none. It must not block. If it is nil, no
	// live picks are made.
	Observed func(session int64) *live.Tape

	// Unread says that the settings of the store were never read, so that Model may not be theirs. The policy then
	// verifies nothing, and freezes a pick in the LastMinute before lights out.
	Unread bool

	settings string // the digest of the store's settings that Rules has applied; empty: it has none
}

func (p Policy) arrived(r *almanac.Round) time.Time {
	if p.Arrived == nil {
		return time.Time{}
	}
	return p.Arrived(r.Year, r.Facts.GrandPrix)
}

// With returns the policy with the rules of the settings, except for the model: see [Builder.Rules].
func (p Policy) With(s settings.Settings) Policy {
	if s.AutoVerifySeconds != nil {
		p.AutoVerifyAfter = time.Duration(*s.AutoVerifySeconds) * time.Second
	}
	if s.AutoReviseSeconds != nil {
		p.AutoReviseAfter = time.Duration(*s.AutoReviseSeconds) * time.Second
	}
	return p
}

// storeRules are the settings of the store as a builder has read them last. They are safe for concurrent use.
type storeRules struct {
	mu      sync.Mutex         // guards the other fields
	read    *settings.Settings // as read last; nil: never
	problem error              // of the last reading
	since   time.Time          // race time since which problem stands, as far as missing knows
	name    string             // of the model that settings have named last
	model   predict.Model      // cache, by that name: a new model learns for .7 s
}

// apply returns a policy with the settings that were read, or with those read before if there was an error. It also
// returns the problem of the settings; empty: there is none.
func (r *storeRules) apply(p Policy, now settings.Settings, err error) (Policy, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && now.Model != "" && r.name != now.Model {
		var model predict.Model
		if model, err = predict.ByName(now.Model); err == nil {
			if p.Model != nil && p.Model.Name() == model.Name() {
				model = p.Model
			}
			r.name, r.model = now.Model, model
		}
	}
	problem := ""
	if r.problem = err; err == nil {
		r.read, r.since = &now, time.Time{}
	} else {
		problem = r.describe()
	}
	if r.read == nil {
		p.AutoVerifyAfter, p.AutoReviseAfter, p.Unread, p.settings = 0, 0, true, unreadSettings
		return p, problem
	}
	p = p.With(*r.read)
	p.settings = r.read.Digest()
	if r.read.Model != "" {
		p.Model = r.model
	}
	return p, problem
}

// unreadSettings stands in a manifest for the digest of settings that could not be read. A store without settings has an
// empty digest.
const unreadSettings = "unreadable"

// describe describes the problem and its effect. The caller holds r.mu.
func (r *storeRules) describe() string {
	if r.read != nil {
		return fmt.Sprintf("the settings of the store cannot be read; those read last go on: %v", r.problem)
	}
	return fmt.Sprintf("the settings of the store cannot be read; nothing is verified, and picks wait for the last minute before lights out: %v", r.problem)
}
