package resp

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Script is a Lua script that Redis runs as one step.
type Script struct{ source, sha string }

// NewScript returns the script with this source.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // the name that Redis gives to a script
	return &Script{source, hex.EncodeToString(sum[:])}
}

// Ints runs the script, whose reply must be an array of integers. The words are so many keys and
// then the arguments. The source is sent only to a Redis that does not know it.
func (s *Script) Ints(ctx context.Context, c *Client, keys int, words *Words) ([]int64, error) {
	reply, err := c.do(ctx, words, "EVALSHA", s.sha, strconv.Itoa(keys))
	var refused Error
	if errors.As(err, &refused) && strings.HasPrefix(string(refused), "NOSCRIPT") {
		reply, err = c.do(ctx, words, "EVAL", s.source, strconv.Itoa(keys))
	}
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("run script: got %T, want an array", reply)
	}
	ints := make([]int64, len(items))
	for i, item := range items {
		if ints[i], ok = item.(int64); !ok {
			return nil, fmt.Errorf("run script: item %d is %T, want an integer", i, item)
		}
	}
	return ints, nil
}
