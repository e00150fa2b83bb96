package compact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// errMalformed is the error of a text that is not a JSON object.
var errMalformed = errors.New("not a well-formed JSON object")

// Packer makes the objects of one kind for an informer. They share a dictionary, which is in memory as long as an
// object uses it. All methods may be called concurrently. A nil Packer makes objects without a dictionary.
type Packer struct {
	kind                  *MessageKind
	packedCount           atomic.Int64               // the number of objects so far
	textForm, messageForm atomic.Pointer[packedForm] // the current forms of new objects
	choice                dictionaryChoice
}

// NewPacker returns a packer of objects as JSON and, if the kind is not nil, as messages.
func NewPacker(kind *MessageKind) *Packer {
	p := &Packer{kind: kind}
	p.messageForm.Store(&packedForm{kind: kind})
	return p
}

// Kind returns the kind of the messages, which can be nil.
func (p *Packer) Kind() *MessageKind { return p.kind }

// New returns an object for its JSON: see the function [New].
func (p *Packer) New(text []byte, typ metav1.TypeMeta) (*CachedObject, error) {
	if p == nil {
		return New(text, typ)
	}
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	o, err := s.takeText(text, typ)
	if err == nil {
		o.form = p.textForm.Load()
		p.packObject(o, s)
	}
	return o, err
}

// packObject compresses the content of the scratch into the object, and lets the choice evaluate it.
func (p *Packer) packObject(o *CachedObject, s *scratch) {
	s.compressInto(o)
	// Between two choices, objects are packed without a lock.
	if p.packedCount.Add(1) <= p.choice.collectAfter.Load() {
		return
	}
	if dictionary := p.choice.learnFrom(o); dictionary != nil {
		// Packed objects keep their former dictionary, so nothing has to be packed again.
		p.textForm.Store(&packedForm{dictionary: dictionary})
		p.messageForm.Store(&packedForm{kind: p.kind, dictionary: dictionary})
	}
}

// dictionaryChoice chooses a dictionary for the objects of one kind. Its methods may be called concurrently.
type dictionaryChoice struct {
	collectAfter atomic.Int64 // the number of objects after which the next ones are collected

	mu      sync.Mutex
	samples []*CachedObject // collected in the packed form, because the next choice may never be made
}

// learnFrom collects an object that has been packed. It returns the dictionary to use from now on, and nil if the
// current one stays.
func (c *dictionaryChoice) learnFrom(o *CachedObject) *s2.Dict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.samples = append(c.samples, o); len(c.samples) < sampleSize {
		return nil
	}
	from := c.samples
	c.samples = nil
	// Each interval is longer than the one before by the factor.
	c.collectAfter.Store((c.collectAfter.Load()+sampleSize)*intervalFactor - sampleSize)
	// Other calls wait for the lock while the candidates are tried.
	return chooseDictionary(unpackTexts(from), o.packedDictionary())
}

// New returns an object for its JSON. The text can be reused afterwards. Elements of some lists do not have an API
// version and kind; they get those of typ. Only the metadata is read. If another part is malformed, decoding the object
// returns an error.
func New(text []byte, typ metav1.TypeMeta) (*CachedObject, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	o, err := s.takeText(text, typ)
	if err == nil {
		s.compressInto(o)
	}
	return o, err
}

// OpenTrimmed returns an opened object without its managed fields, for a caller that does not cache it. The text can be
// reused afterwards.
func OpenTrimmed(text []byte) (*jsontext.LazyObject, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if _, err := s.takeText(text, metav1.TypeMeta{}); err != nil {
		return nil, err
	}
	return jsontext.New(slices.Clone(s.text)), nil
}

// takeText copies the text of an object without its managed fields into the scratch. It returns an object that has only
// the metadata outside of the compressed text.
func (s *scratch) takeText(text []byte, typ metav1.TypeMeta) (*CachedObject, error) {
	var metadata jsontext.RawMember
	typed, isEmpty := typ.Kind == "", true
	whole := jsontext.EachMember(text, func(m jsontext.RawMember) {
		isEmpty = false
		switch string(m.Key) {
		case "metadata":
			metadata = m
		case "kind":
			typed = true
		}
	})
	var o CachedObject
	managed, readable := o.readMetadata(metadata.Value)
	if !whole || !readable && metadata.Value != nil {
		return nil, fmt.Errorf("reading an object: %w", errMalformed)
	}
	// The positions within the metadata become positions within the text.
	at := metadata.End - len(metadata.Value)
	managed.Start, managed.End = at+managed.Start, at+managed.End
	s.text = s.text[:0]
	// The type is inserted as the first members, and the opening bracket of the text is skipped.
	if !typed {
		s.text = fmt.Appendf(s.text, `{"apiVersion":%q,"kind":%q`, typ.APIVersion, typ.Kind)
		// The first of the object's own members follows.
		if !isEmpty {
			s.text = append(s.text, ',')
		}
		skipped := bytes.IndexByte(text, '{') + 1
		text, managed.Start, managed.End = text[skipped:], managed.Start-skipped, managed.End-skipped
	}
	s.text = appendWithout(s.text, text, managed)
	return &o, nil
}

// readMetadata stores the metadata that is kept outside of the text. It returns the member with the managed fields,
// whose value is nil if there are none.
func (o *CachedObject) readMetadata(metadata []byte) (managed jsontext.RawMember, whole bool) {
	var name, namespace, uid, version []byte
	whole = jsontext.EachMember(metadata, func(m jsontext.RawMember) {
		switch string(m.Key) {
		case "name":
			name = unquoteString(m.Value)
		case "namespace":
			namespace = unquoteString(m.Value)
		case "uid":
			uid = unquoteString(m.Value)
		case "resourceVersion":
			version = unquoteString(m.Value)
		case "deletionTimestamp":
			// A null counts as absent.
			o.deleting = m.Value[0] == '"'
		case "annotations":
			o.endsListing = endsListing(m.Value)
		case "managedFields":
			managed = m
		}
	})
	o.setKeyMetadata(name, namespace, uid, version)
	return managed, whole
}

// setKeyMetadata stores the metadata that the engine needs at every event.
func (o *CachedObject) setKeyMetadata(name, namespace, uid, version []byte) {
	o.keyMetadata = string(name) + string(namespace) + string(uid) + string(version)
	o.nameEnd = sizeOf(name)
	o.namespaceEnd = o.nameEnd + sizeOf(namespace)
	o.uidEnd = o.namespaceEnd + sizeOf(uid)
	o.versionEnd = o.uidEnd + sizeOf(version)
}

// sizeOf returns the length of a part of the metadata.
func sizeOf(part []byte) uint32 { return uint32(len(part)) } //nolint:gosec // no API server takes names of gigabytes

// endsListing reports whether the annotations mark the event that ends the listing of a streaming list.
func endsListing(annotations []byte) bool {
	const key = metav1.InitialEventsAnnotationKey
	return bytes.Contains(annotations, []byte(key)) && jsontext.New(annotations).StringAt(key) == "true"
}

// unquoteString returns the decoded form of a string, and nil for other values.
func unquoteString(value []byte) []byte {
	switch {
	case value[0] != '"':
		return nil
	case !bytes.Contains(value, []byte{'\\'}):
		return value[1 : len(value)-1]
	}
	var text string
	// A malformed string is empty.
	_ = json.Unmarshal(value, &text)
	return []byte(text)
}

// appendWithout appends the text of an object without one of its members and without one comma next to it.
func appendWithout(to, text []byte, member jsontext.RawMember) []byte {
	if member.Value == nil {
		return append(to, text...)
	}
	before := bytes.TrimRight(text[:member.Start], " \t\r\n")
	after, more := bytes.CutPrefix(bytes.TrimLeft(text[member.End:], " \t\r\n"), []byte(","))
	// The last member follows the comma to remove.
	if !more {
		before = bytes.TrimSuffix(before, []byte(","))
	}
	return append(append(to, before...), after...)
}

// scratch has the buffers in which an object is prepared and compressed. They are pooled, because objects arrive in
// large numbers.
type scratch struct{ text, metadata, packed []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// compressInto compresses the text of the scratch into the object, in exactly as much memory as needed.
func (s *scratch) compressInto(o *CachedObject) {
	encode := s2.Encode
	if by := o.packedDictionary(); by != nil {
		encode = by.Encode
	}
	// The compressed text is copied from the buffer, so the object does not keep unused capacity.
	s.packed = slices.Grow(s.packed[:0], s2.MaxEncodedLen(len(s.text)))
	o.packedContent = string(encode(s.packed[:cap(s.packed)], s.text))
}

// decompressContent returns the uncompressed text or message.
func (o *CachedObject) decompressContent() ([]byte, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	// The decoder needs bytes; a pooled buffer avoids an allocation for the conversion.
	s.packed = append(s.packed[:0], o.packedContent...)
	if by := o.packedDictionary(); by != nil {
		return by.Decode(nil, s.packed)
	}
	return s2.Decode(nil, s.packed)
}
