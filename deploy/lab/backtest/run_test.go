package backtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/lab/backtest"
	"gridcast/deploy/must"
)

// race names the forecast of a model in backtests of one archive and one basis.
type race struct {
	year  int
	round season.GrandPrixID
}

// remembered asks once for each race, because the same view gives the same answer.
type remembered[T any] struct {
	ask func(v *season.View, year int, round season.GrandPrixID) (T, error)

	mu      sync.Mutex
	answers map[race]T
}

func (m *remembered[T]) answer(v *season.View, year int, round season.GrandPrixID) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.answers[race{year, round}]; ok {
		return known, nil
	}
	a, err := m.ask(v, year, round)
	if err == nil {
		if m.answers == nil {
			m.answers = map[race]T{}
		}
		m.answers[race{year, round}] = a
	}
	return a, err
}

// rememberedModel is a model that predicts each race once.
type rememberedModel struct {
	predict.Model
	remembered[predict.Forecast]
}

func remember(m predict.Model) *rememberedModel {
	return &rememberedModel{Model: m, remembered: remembered[predict.Forecast]{ask: m.Predict}}
}

func (m *rememberedModel) Predict(v *season.View, year int, round season.GrandPrixID) (predict.Forecast, error) {
	return m.answer(v, year, round)
}

// published is the model of the published figures, with its history of the whole release. The walk through the
// seasons is the dearest part of a backtest, so that the tests share it.
var published = predict.NewV2(predict.DefaultParams())

// explained explains each race of the whole release once, from its grid.
type explained struct {
	remembered[predict.Explanation]
}

var fromGrid = &explained{remembered[predict.Explanation]{ask: published.Explain}}

func (*explained) Name() string { return published.Name() }

func (m *explained) Predict(v *season.View, year int, round season.GrandPrixID) (predict.Forecast, error) {
	e, err := m.answer(v, year, round)
	return e.Forecast, err
}

// TestPublishedFigures holds the model to the figures of deploy/docs/predictions.md, on the whole release. The
// model was tuned on the seasons to 2024, and not on 2025 and 2026.
func TestPublishedFigures(t *testing.T) {
	must.Long(t, "takes ten seconds")
	whole, known := backtest.DefaultConfig(2010, 2026), backtest.DefaultConfig(2010, 2024)
	for i, b := range whole.Baselines {
		whole.Baselines[i].Model = remember(b.Model)
		if b.Name == "f0" {
			whole.Baselines[i].Model = backtest.QualifiedAlone(fromGrid.answer)
		}
	}
	whole.Model, known.Model, known.Baselines = fromGrid, fromGrid, whole.Baselines
	all := must.Get(backtest.Run(t.Context(), allSeasons(t), whole))(t)
	if m := all.Model; all.Races < 340 || m.LogLoss > 1.193 || m.PodiumPct < 68 {
		t.Errorf("2010 to 2026: %d races, log-loss %.4f, podium %.2f %%, want at least 340, at most 1.193, at least 68",
			all.Races, m.LogLoss, m.PodiumPct)
	}
	got := must.Get(backtest.Run(t.Context(), allSeasons(t), known))(t)
	if got.Races != 305 || len(got.Seasons) != 15 {
		t.Fatalf("got %d races in %d seasons, want 305 in 15", got.Races, len(got.Seasons))
	}
	if m := all.Model; m.PodiumBrier > 1.316 || m.ECEDriversPct > 1.2 {
		t.Errorf("2010 to 2026: podium Brier %.4f, error over all drivers %.2f %%, want at most 1.316 and 1.2", m.PodiumBrier, m.ECEDriversPct)
	}
	if m := all.Model; m.PlacesLogScore > 50.8 || m.FinishesOnZero > 20 || m.Finishes < 6000 {
		t.Errorf("2010 to 2026: log-loss of all places %.2f, %d of %d finishes on a published zero, want at most 50.8 and 20", m.PlacesLogScore, m.FinishesOnZero, m.Finishes)
	}
	for _, b := range all.Podiums {
		must.Hold(t, b.Said <= .85 || b.Said >= .95 || math.Abs(b.Said-b.Won) <= .07,
			"podiums said %.3f came %.3f, want them within .07", b.Said, b.Won)
	}
	m := got.Model
	must.Hold(t, m.PointsBrier <= 3.10 && m.RPS <= .131,
		"2010 to 2024: Brier of the points %.3f, ranked probability score %.4f, want at most 3.10 and .131", m.PointsBrier, m.RPS)
	if math.Abs(m.LogLoss-1.208) > .002 || math.Abs(m.PodiumPct-67.5) > .4 || m.PodiumBrier > 1.33 {
		t.Errorf("got log-loss %.4f, podium %.2f %%, podium Brier %.4f, want 1.208 within .002, 67.5 within .4, at most 1.33",
			m.LogLoss, m.PodiumPct, m.PodiumBrier)
	}
	if m.ECEPct > got.Calibrated.Interval[1] {
		t.Errorf("calibration error %.1f %% is beyond the %.1f %% that chance leaves", m.ECEPct, got.Calibrated.Interval[1])
	}
	grid := got.Differences["grid_frequency"]
	must.Hold(t, grid.LogLoss.Interval[1] < 0 && grid.WinnerHitPct.Interval[0] > 0 && grid.PodiumBrier.Interval[1] < 0,
		"not better than the grid-slot table beyond noise: %+v", grid)
	// The known scores of the baselines on these races.
	for name, want := range map[string][3]float64{
		"pole": {51.1, 66.4, 34.4}, "grid_frequency": {51.1, 66.4, 34.4}, "leader": {42.0, 57.4, 25.5}, "previous_winner": {35.7, 51.0, 22.8},
	} {
		b := got.Baselines[name]
		for i, v := range []float64{b.WinnerHitPct, b.PodiumPct, b.ExactPodiumPct} {
			if diff := v - want[i]; diff < -.06 || diff > .06 {
				t.Errorf("%s: got %.2f, want %.1f", name, v, want[i])
			}
		}
	}
	for _, name := range []string{"rounds 1-4", "seasons with new rules"} {
		must.Hold(t, slices.ContainsFunc(got.Subsets, func(s backtest.Subset) bool { return s.Name == name && s.Races > 0 }),
			"subset %q is missing", name)
	}
}

// TestEmbeddedSeasonsStartEarly backtests the seasons of a fresh installation from its first race on.
func TestEmbeddedSeasonsStartEarly(t *testing.T) {
	a := embedded(t)
	first := a.Facts().Seasons[0].Year
	c := backtest.DefaultConfig(first, first+2)
	seen, total := 0, 0
	c.Progress = func(_ string, done, of int) { seen, total = done, of }
	got := must.Get(backtest.Run(t.Context(), a, c))(t)
	if seen != got.Races || total != got.Races || got.Seasons[0].Year != first {
		t.Errorf("got %d races from %d, told of %d of %d", got.Races, got.Seasons[0].Year, seen, total)
	}
	if m, b := got.Model.LogLoss, got.Baselines["grid_frequency"].LogLoss; m > b+.02 {
		t.Errorf("log-loss of the first three seasons: got %.3f, want no worse than the %.3f of the grid", m, b)
	}
}

// penalised is the bar of the picks on a basis.
type penalised struct {
	basis                  predict.Order
	logLoss, podium, brier float64
}

// firstSeason returns the first season of a backtest: of the figures that are published, or of a shorter form that
// make test runs. make predictions runs the long one.
func firstSeason(whole, short int) int {
	if os.Getenv("GRIDCAST_SEASONS") != "" {
		return whole
	}
	return short
}

// TestGridIsWorthItsPenalties measures the picks with less than the grid. A grid is qualifying and its
// penalties, so without it the model may lose only that much.
func TestGridIsWorthItsPenalties(t *testing.T) {
	must.Long(t, "takes ten seconds")
	rows := []penalised{{predict.FromQualifying, 1.215, 66.5, 1.350}, {predict.FromForm, 1.515, 57.5, math.Inf(1)}}
	first := firstSeason(2010, 2020)
	if first > 2010 {
		rows = []penalised{{predict.FromQualifying, 1.172, 66, 1.358}, {predict.FromForm, 1.472, 57.5, 1.638}}
	}
	for _, tc := range rows {
		c := backtest.DefaultConfig(first, 2026)
		c.Model, c.Basis, c.Baselines = published, tc.basis, []backtest.Baseline{{Name: "grid_frequency", Model: predict.GridFrequency()}}
		got := must.Get(backtest.Run(t.Context(), allSeasons(t), c))(t)
		if m := got.Model; got.Basis != tc.basis || m.LogLoss > tc.logLoss || m.PodiumPct < tc.podium {
			t.Errorf("%s: got log-loss %.4f, podium %.2f %%, want at most %.3f, at least %.1f", got.Basis, m.LogLoss, m.PodiumPct, tc.logLoss, tc.podium)
		}
		if got.Model.PodiumBrier > tc.brier {
			t.Errorf("%s: podium Brier %.4f, want at most %.3f", got.Basis, got.Model.PodiumBrier, tc.brier)
		}
		if d := got.Differences["grid_frequency"]; d.LogLoss.Interval[1] >= 0 {
			t.Errorf("%s: not better beyond noise than the frequency of the same order: %+v", tc.basis, d.LogLoss)
		}
	}
}

// embeddedBar is the bar of the model on the embedded seasons.
type embeddedBar struct {
	races                int
	logLoss, hit, podium float64
}

// TestEmbeddedFigures holds the model to its figures on the embedded seasons alone.
func TestEmbeddedFigures(t *testing.T) {
	must.Long(t, "takes five seconds")
	first, want := firstSeason(2010, 2021), embeddedBar{races: 305, logLoss: 1.212, hit: 55.5, podium: 67.2}
	if first > 2010 {
		want = embeddedBar{races: 90, logLoss: 1.132, hit: 59.9, podium: 67}
	}
	got := must.Get(backtest.Run(t.Context(), embedded(t), backtest.DefaultConfig(first, 2024)))(t)
	if m := got.Model; got.Races != want.races || m.LogLoss > want.logLoss || m.WinnerHitPct < want.hit || m.PodiumPct < want.podium {
		t.Errorf("got %d races, log-loss %.4f, hit %.2f %%, podium %.2f %%, want %+v", got.Races, m.LogLoss, m.WinnerHitPct, m.PodiumPct, want)
	}
}

func TestReportForms(t *testing.T) {
	a := embedded(t)
	last := a.Facts().Seasons[len(a.Facts().Seasons)-1].Year
	c := backtest.DefaultConfig(last, last)
	c.Model = predict.GridFrequency()
	r := must.Get(backtest.Run(t.Context(), a, c))(t)
	b := must.Get(json.Marshal(r))(t)
	var form struct {
		From, To, Races int
		Model           map[string]any
		Baselines       map[string]map[string]any
		Seasons         []struct {
			Year  int
			Model map[string]any
		}
	}
	must.Do(t, json.Unmarshal(b, &form))
	if form.From != last || form.To != last || form.Races != r.Races || len(form.Seasons) != 1 || form.Seasons[0].Year != last {
		t.Errorf("got %d to %d with %d races and %d seasons", form.From, form.To, form.Races, len(form.Seasons))
	}
	for _, m := range []map[string]any{form.Model, form.Baselines["pole"], form.Baselines["grid_frequency"], form.Seasons[0].Model} {
		for _, key := range []string{"winner_hit_pct", "podium_pct", "exact_podium_pct", "log_loss", "brier", "podium_brier", "ece_pct", "intervals"} {
			if _, ok := m[key]; !ok {
				t.Errorf("%s is missing in %v", key, m)
			}
		}
	}
	if d := r.Differences["grid_frequency"]; d != (backtest.Difference{}) {
		t.Errorf("a model differs from itself by %+v", d)
	}
	var plot bytes.Buffer
	must.Do(t, r.Plot(&plot))
	must.Hide(t, "the plot", plot.String(), "NaN")
	must.Equal(t, "dots of the plot", len(r.Reliability), strings.Count(plot.String(), "<circle"))
	for _, label := range regexp.MustCompile(`<text x="([0-9.]+)" y="[0-9.]+" style="text-anchor:end">`).FindAllStringSubmatch(plot.String(), -1) {
		if x, _ := strconv.ParseFloat(label[1], 64); math.Mod(x, 640) > 70 {
			t.Errorf("plot: a label of a vertical axis ends at %v, want it at the left of its panel", x)
		}
	}
	for d := xml.NewDecoder(&plot); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("plot: %v", err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	a := embedded(t)
	must.Fail(t, "seasons that are not there: got no error", must.Err(backtest.Run(t.Context(), a, backtest.DefaultConfig(1900, 1901))))
	last := a.Facts().Seasons[len(a.Facts().Seasons)-1].Year
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backtest.Run(done, a, backtest.DefaultConfig(last, last)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if _, err := backtest.Run(t.Context(), a, backtest.Config{From: last, To: last, Model: refuser{}}); !errors.Is(err, predict.ErrNobody) {
		t.Errorf("a model that refuses: got %v", err)
	}
}

type refuser struct{}

func (refuser) Name() string { return "refuser" }

func (refuser) Predict(*season.View, int, season.GrandPrixID) (predict.Forecast, error) {
	return predict.Forecast{}, predict.ErrNobody
}
