package compact

import (
	"cmp"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	// sampleSize is the number of objects from which one is chosen as the dictionary of later objects. A dictionary
	// does not pay for fewer objects.
	sampleSize = 32
	// intervalFactor is the factor by which the interval between two choices grows. The choice is repeated because the
	// common parts of objects change, such as by the writes of operators.
	intervalFactor = 4
	// candidates is the number of objects that are tried as dictionaries. They differ in length: longer ones contain
	// more, but can be unlike all others.
	candidates = 4
	// minSavingsDivisor is the inverse of the part of the bytes that another dictionary must save to replace the
	// current one.
	minSavingsDivisor = 10
)

// unpackTexts returns the texts of the objects from which a dictionary can be made.
func unpackTexts(objects []*CachedObject) (texts [][]byte) {
	for _, o := range objects {
		// Of a text that exceeds the limit, a dictionary would use the end only. Errors are ignored, as an object that
		// was just packed can be unpacked.
		if text, err := o.unpackContent(); err == nil && len(text) <= s2.MaxDictSize {
			texts = append(texts, text)
		}
	}
	return texts
}

// chooseDictionary returns the dictionary with which the texts take the least memory. It returns nil unless that is
// much less than with the current dictionary.
func chooseDictionary(texts [][]byte, before *s2.Dict) (best *s2.Dict) {
	if len(texts) == 0 {
		return nil
	}
	// The candidates are evenly distributed over the sorted lengths; the last one is the longest.
	slices.SortFunc(texts, func(a, b []byte) int { return cmp.Compare(len(a), len(b)) })
	least := packedSize(texts, before) * (minSavingsDivisor - 1) / minSavingsDivisor
	for number := range candidates {
		tried := s2.MakeDict(texts[(len(texts)-1)*(number+1)/candidates], nil)
		if tried == nil {
			// MakeDict returns nil for a text that is too short.
			continue
		}
		if bytes := packedSize(texts, tried); bytes < least {
			best, least = tried, bytes
		}
	}
	return best
}

// packedSize returns the number of bytes that the texts take with a dictionary, which may be nil.
func packedSize(texts [][]byte, with *s2.Dict) (bytes int) {
	encode := s2.Encode
	if with != nil {
		encode = with.Encode
	}
	var packed []byte
	for _, text := range texts {
		// One buffer serves for all texts, because only the sizes matter.
		packed = slices.Grow(packed[:0], s2.MaxEncodedLen(len(text)))
		bytes += len(encode(packed[:cap(packed)], text))
	}
	return bytes
}
