package sharding_test

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// limits reads the limits of a selector.
func limits(t *testing.T, selector string) (lower, upper *big.Int) {
	t.Helper()
	found := regexp.MustCompile(`^shardRange\(object\.metadata\.uid, '0x([0-9a-f]{16})', '0x([0-9a-f]{16,17})'\)$`).
		FindStringSubmatch(selector)
	if found == nil {
		t.Fatalf("the selector %q does not have the form of Kubernetes", selector)
	}
	lower, _ = new(big.Int).SetString(found[1], 16)
	upper, _ = new(big.Int).SetString(found[2], 16)
	return lower, upper
}

// TestRanges shows that the ranges divide the hash space without gaps, that each object is in exactly one of them, and
// that the API server and the client agree which one.
func TestRanges(t *testing.T) {
	for _, count := range []int{1, 2, 3, 7, 16, 1000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			end, held := new(big.Int), make([]int, count)
			for i := range count {
				r := sharding.Range{Index: i, Count: count}
				lower, upper := limits(t, r.Selector())
				if lower.Cmp(end) != 0 || upper.Cmp(lower) <= 0 {
					t.Fatalf("range %s is [%x, %x): it must begin at %x and not be empty", r, lower, upper, end)
				}
				end = upper
				for n := range 2000 {
					uid := types.UID(fmt.Sprint("uid-", n))
					hash := fnv.New64a()
					_, _ = hash.Write([]byte(uid))
					at := new(big.Int).SetUint64(hash.Sum64())
					server := lower.Cmp(at) <= 0 && at.Cmp(upper) < 0
					if r.Contains(uid) != server {
						t.Fatalf("%s: the client says %t and the selector %s says %t for the hash %x", uid,
							r.Contains(uid), r.Selector(), server, at)
					}
					if server {
						held[i]++
					}
				}
			}
			if total := new(big.Int).Lsh(big.NewInt(1), 64); end.Cmp(total) != 0 {
				t.Errorf("the last range ends at %x, want 2^64", end)
			}
			objects := 0
			for _, n := range held {
				objects += n
			}
			if objects != 2000 {
				t.Errorf("the ranges have %d objects together, want 2000", objects)
			}
		})
	}
}

// TestWhole shows that the zero value does not restrict anything.
func TestWhole(t *testing.T) {
	var all sharding.Range
	if all.Selector() != "" || !all.Contains("some") || all.String() != "" {
		t.Errorf("the zero range has selector %q, name %q, contains an object: %t", all.Selector(), all.String(),
			all.Contains("some"))
	}
	if ctx := sharding.WithRange(t.Context(), all); sharding.RangeOf(ctx) != all {
		t.Error("a context without a range has one")
	}
	third := sharding.Range{Index: 2, Count: 16}
	if got := sharding.RangeOf(sharding.WithRange(t.Context(), third)); got != third || got.String() != "2/16" {
		t.Errorf("the range of the context is %q, want 2/16", got)
	}
}
