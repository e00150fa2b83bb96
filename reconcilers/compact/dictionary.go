package compact

import (
	"cmp"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	// ordinary is from how many objects one is chosen as the dictionary of those that come after them: they are kept
	// by their differences to it. With fewer of them it would not pay.
	ordinary = 32
	// rarer is after how many times as many objects the choice is made anew: objects change what they have in common,
	// as by what operators write to them.
	rarer = 4
	// candidates of different lengths are tried: longer ones have more in them, and may be unlike all others.
	candidates = 4
	// worthwhile is which part of the bytes, one of so many, another dictionary must save to be taken.
	worthwhile = 10
)

// unpacked are the texts of which a dictionary can be made.
func unpacked(objects []*Object) (texts [][]byte) {
	for _, o := range objects {
		// Of a longer one, only the end would count. What has just been packed can be unpacked.
		if text, err := o.unpack(); err == nil && len(text) <= s2.MaxDictSize {
			texts = append(texts, text)
		}
	}
	return texts
}

// better gives the dictionary with which the texts take the least memory; nil if that is not much less than before.
func better(texts [][]byte, before *s2.Dict) (best *s2.Dict) {
	if len(texts) == 0 {
		return nil
	}
	slices.SortFunc(texts, func(a, b []byte) int { return cmp.Compare(len(a), len(b)) })
	least := size(texts, before) * (worthwhile - 1) / worthwhile
	for number := range candidates {
		tried := s2.MakeDict(texts[(len(texts)-1)*(number+1)/candidates], nil)
		if tried == nil {
			continue // it is too small
		}
		if bytes := size(texts, tried); bytes < least {
			best, least = tried, bytes
		}
	}
	return best
}

// size is how many bytes the texts take with a dictionary, or with none.
func size(texts [][]byte, with *s2.Dict) (bytes int) {
	encode := s2.Encode
	if with != nil {
		encode = with.Encode
	}
	var packed []byte
	for _, text := range texts {
		packed = slices.Grow(packed[:0], s2.MaxEncodedLen(len(text)))
		bytes += len(encode(packed[:cap(packed)], text))
	}
	return bytes
}
