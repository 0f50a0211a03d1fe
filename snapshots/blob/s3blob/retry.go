package s3blob

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/retry"
)

var (
	// ErrNoBucket means that the server does not know the bucket.
	ErrNoBucket = errors.New("bucket does not exist, make it first")
	// ErrCredentials means that the server does not know the credentials, or that they lack the right for
	// the request.
	ErrCredentials = errors.New("credentials are refused, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a credentials file")
)

// errUnmodified is the answer to a conditional read of an object that still has the tag.
var errUnmodified = errors.New("not modified")

// call is one operation on the store, with all its requests.
type call struct {
	operation   string
	on          string // key, prefix or bucket
	write       bool
	conditional bool          // a write under a condition
	deadline    time.Duration // 0: that of the store
}

// maxConflicts is the number of answers 409 without a reason after which the condition counts as failed.
const maxConflicts = 4

// rule is that of package retry.
var rule = retry.Rule{First: 100 * time.Millisecond, Longest: 3 * time.Second}

// retry sends a request until its answer is final or the deadline has passed.
func (s *Store) retry(ctx context.Context, c call, send func(context.Context) error) error {
	within := cmp.Or(c.deadline, s.config.Deadline)
	deadline, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	inDoubt := false // an earlier request may have been applied, and may be applied yet
	conflicts := 0   // answers 409 without a reason
	var last error   // the latest fault
	final := rule.Do(deadline, func(ctx context.Context) error {
		var seen seen
		attempt, cancel := context.WithTimeout(context.WithValue(ctx, seenKey{}, &seen), s.config.Attempt)
		err := send(attempt)
		cancel()
		again, final := judge(err, c)
		if !again {
			return final
		}
		if answer := minio.ToErrorResponse(err); answer.StatusCode == http.StatusConflict {
			// Nothing was written. Without a reason, another write was in progress or the condition did not hold.
			if conflicts++; conflicts == maxConflicts && !slices.Contains(busyCodes, answer.Code) {
				return conditionFailed(err)
			}
		} else {
			inDoubt = inDoubt || c.write && seen.wrote.Load()
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		return &retry.Passing{Err: err, After: time.Duration(seen.after.Load())}
	})
	if _, passing := errors.AsType[*retry.Passing](final); passing {
		final = fmt.Errorf("%w: %w", cmp.Or(context.Cause(ctx), fmt.Errorf("no success within %v", within)), last)
	}
	switch {
	case final == nil:
		return nil
	case inDoubt:
		final = unknown(final)
	}
	return fmt.Errorf("%s %s in %s: %w", c.operation, c.on, s, final)
}

// seen is the record of a witness about one request. If nothing left this machine, the server cannot have applied the request, with
// any error.
type seen struct {
	wrote atomic.Bool  // a part of it left this machine
	after atomic.Int64 // Retry-After of the answer, as a duration
}

// seenKey is the key of a context's *seen.
type seenKey struct{}

// witness records that a request has begun to leave, and the server's clock in its
// answer. It wraps only the way to the server: a request for credentials, which is sent
// meanwhile with the same context, changes no object.
type witness struct {
	http.RoundTripper

	date *atomic.Pointer[date]
}

func (w witness) RoundTrip(r *http.Request) (*http.Response, error) {
	saw, ok := r.Context().Value(seenKey{}).(*seen)
	if ok {
		trace := &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { saw.wrote.Store(true) }}
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	}
	asked := time.Now()
	response, err := w.RoundTripper.RoundTrip(r)
	if err == nil {
		if ok {
			saw.after.Store(int64(retry.After(response.Header, time.Now(), time.Hour)))
		}
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			w.date.Store(&date{at: at, asked: asked, answered: time.Now()})
		}
	}
	if err == nil && r.URL.Query().Has("list-type") {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxList), response.Body}
	}
	return response, err
}

// maxList is the number of bytes that are read of a listing's page. A longer page is cut
// off, which its reader treats as a broken connection.
const maxList = 16 << 20

// judge asks for another request after one that ended with err, or returns the error of the operation.
func judge(err error, c call) (again bool, final error) {
	if err == nil {
		return false, nil
	}
	answer := minio.ToErrorResponse(err)
	switch {
	case errors.Is(err, blob.ErrTooLarge):
		return false, err
	case answer.StatusCode == 0: // no answer, or a part of one
		_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
		return !distrusted, err
	case answer.Code == minio.NoSuchBucket:
		return false, fmt.Errorf("%w: %w", ErrNoBucket, err)
	case slices.Contains(credentialCodes, answer.Code), answer.StatusCode == http.StatusUnauthorized:
		return false, fmt.Errorf("%w: %w", ErrCredentials, err)
	case c.conditional && conditions[answer.StatusCode] != nil:
		return conditions[answer.StatusCode](answer.Code, err)
	case answer.StatusCode == http.StatusNotModified:
		return false, errUnmodified
	case answer.Code == minio.NoSuchKey:
		return false, fmt.Errorf("%w: %w", blob.ErrNotFound, err)
	case retry.Temporary(answer.StatusCode), slices.Contains(temporaryCodes, answer.Code):
		return true, nil
	}
	return false, err
}

// conditions holds the meaning of each status that the standard (RFC 9110, 13) or a known provider gives to a write
// under a condition, beside those that mean the same for every request.
var conditions = map[int]func(code string, err error) (again bool, final error){
	http.StatusNotModified:        failed, // the standard's answer to a read
	http.StatusPreconditionFailed: failed,
	http.StatusNotFound: func(code string, err error) (bool, error) { // there is no object with the tag
		if code != minio.NoSuchKey {
			return false, err
		}
		return failed(code, err)
	},
	http.StatusConflict: func(code string, err error) (bool, error) {
		if code == "" || code == minio.Conflict || slices.Contains(busyCodes, code) {
			return true, nil // ask again, then the condition decides
		}
		return failed(code, err) // such as FileAlreadyExists of Alibaba
	},
	http.StatusBadRequest: func(code string, err error) (bool, error) {
		if slices.Contains(temporaryCodes, code) {
			return true, nil
		}
		return unsupported("does not understand it")("", err)
	},
	http.StatusMethodNotAllowed:     unsupported("does not allow it for a write"),
	http.StatusExpectationFailed:    unsupported("does not meet it"),
	http.StatusPreconditionRequired: unsupported("did not receive it, so a proxy in front removes it"),
	http.StatusNotImplemented:       unsupported("does not implement it"),
}

// failed means that the condition did not hold, and that nothing was written.
func failed(_ string, err error) (again bool, final error) { return false, conditionFailed(err) }

func conditionFailed(err error) error { return fmt.Errorf("%w: %w", blob.ErrConflict, err) }

// unsupported means that the server cannot keep the promise of a conditional write.
func unsupported(why string) func(code string, err error) (again bool, final error) {
	return func(_ string, err error) (bool, error) {
		return false, fmt.Errorf("%w: to a write under a condition it says that it %s: %w", blob.ErrUnconditional, why, err)
	}
}

var (
	credentialCodes = []string{
		minio.AccessDenied, minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, "ExpiredToken", "InvalidToken",
		"XAdminUserNotFound", // versitygw to an access key that it does not know, with 404
	}
	busyCodes      = []string{"ConditionalRequestConflict", "OperationAborted"} // Amazon: another write is in progress
	temporaryCodes = []string{"RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "RequestThrottled", "BadDigest", "IncompleteBody"}
)

// unknown is the outcome of a write with an earlier request in doubt. That request may
// have made the condition fail, so the error must not be a conflict.
func unknown(err error) error {
	if errors.Is(err, blob.ErrConflict) {
		return fmt.Errorf("%w: an earlier request was not answered: %s", blob.ErrUnknown, err.Error())
	}
	return fmt.Errorf("%w: %w", blob.ErrUnknown, err)
}

// date is a reading of the server's clock, which shows whole seconds. Both other instants are
// this machine's, with their monotonic part.
type date struct {
	at              time.Time // the server wrote this at some time between
	asked, answered time.Time
}

// maxDateAge is the life of a reading, for which two clocks run side by side.
const maxDateAge = 30 * time.Second

// maxWait is the longest transfer of a usable reading, and maxSet the largest difference between wall and
// monotonic clock before this machine's clock counts as set since.
const (
	maxWait = time.Second
	maxSet  = time.Second
)

// StoreTime implements blob.Clock by the Date of the latest answer. If that is old, it requests
// the bucket. Its error is up to a second, plus half the time of the answer.
func (s *Store) StoreTime(ctx context.Context) (time.Time, time.Duration, error) {
	d := s.date.Load()
	if d == nil || !d.fresh(time.Now()) {
		before := d
		err := s.retry(ctx, call{operation: "ask for the time", on: s.config.Bucket}, func(ctx context.Context) error {
			_, err := s.core.BucketExists(ctx, s.config.Bucket)
			return err
		})
		// Every answer has a date, also a refusal.
		if d = s.date.Load(); d == nil || d == before {
			if err == nil {
				err = fmt.Errorf("ask for the time in %s: the answer has no Date: %w", s, errors.ErrUnsupported)
			}
			return time.Time{}, 0, err
		}
	}
	at, within := d.now(time.Now())
	return at, within, nil
}

// fresh reports whether the reading is still usable at now.
func (d *date) fresh(now time.Time) bool {
	monotonic, wall := now.Sub(d.asked), now.Round(0).Sub(d.asked.Round(0))
	return d.answered.Sub(d.asked) <= maxWait && monotonic <= maxDateAge && (wall-monotonic).Abs() <= maxSet
}

// now returns the middle of the server's possible clock readings at now, and the distance to its ends.
func (d *date) now(now time.Time) (at time.Time, within time.Duration) {
	earliest := d.at.Add(now.Sub(d.answered))
	latest := d.at.Add(time.Second).Add(now.Sub(d.asked))
	within = latest.Sub(earliest) / 2
	return earliest.Add(within), within
}
