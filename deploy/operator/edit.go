package operator

import (
	"context"

	"gridcast/deploy/auditlog"
)

// edit is a change of one T, such as a key, in a document D of the store, such as all keys.
type edit[D, T any] struct {
	load   func(context.Context) (*D, error)
	update func(context.Context, func(*D) error) error
	find   func(*D) (*T, error)
	// preview may refuse the change.
	preview func(*D, *T, *Preview) error
	change  func(*D, *T, Request) (Answer, error)
}

// plan finds the T, and plans its change. Apply returns ErrStale if the T differs by then.
func (e edit[D, T]) plan(ctx context.Context, entry auditlog.Intent) (*Plan, error) {
	doc, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	item, err := e.find(doc)
	if err != nil {
		return nil, err
	}
	p := &Plan{Brief: true, entry: entry, Preview: Preview{Seen: digest(item)}}
	if err := e.preview(doc, item, &p.Preview); err != nil {
		return nil, err
	}
	p.do = func(ctx context.Context, request Request) (answer Answer, err error) {
		err = e.update(ctx, func(doc *D) error {
			item, err := e.find(doc)
			if err != nil {
				return err
			}
			if digest(item) != p.Seen {
				return ErrStale
			}
			answer, err = e.change(doc, item, request)
			return err
		})
		return answer, err
	}
	return p, nil
}
