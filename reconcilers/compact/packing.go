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

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

var errMalformed = errors.New("not a well-formed JSON object")

// Packer makes the objects of one kind, as an informer finds them: what they have in common is kept once, for as long
// as there are any. Any goroutine may use it. Nil makes objects one by one.
type Packer struct {
	kind            *Kind
	packed          atomic.Int64 // how many objects
	texts, messages atomic.Pointer[form]
	choice          choice
}

// NewPacker makes a packer of objects as JSON and, with a kind, of messages.
func NewPacker(kind *Kind) *Packer {
	p := &Packer{kind: kind}
	p.messages.Store(&form{kind: kind})
	return p
}

// Kind is that of the messages; nil is none.
func (p *Packer) Kind() *Kind { return p.kind }

// New makes an object of its JSON, see [New].
func (p *Packer) New(text []byte, typ metav1.TypeMeta) (*Object, error) {
	if p == nil {
		return New(text, typ)
	}
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	o, err := s.take(text, typ)
	if err == nil {
		o.form = p.texts.Load()
		p.pack(o, s)
	}
	return o, err
}

// pack keeps what the scratch has for the object.
func (p *Packer) pack(o *Object, s *scratch) {
	s.pack(o)
	if p.packed.Add(1) <= p.choice.begins.Load() {
		return
	}
	if dictionary := p.choice.learn(o); dictionary != nil {
		p.texts.Store(&form{dictionary: dictionary})
		p.messages.Store(&form{kind: p.kind, dictionary: dictionary})
	}
}

// choice is how a dictionary is found for the objects of one kind. Any goroutine may use it.
type choice struct {
	begins atomic.Int64 // after how many objects one looks at them

	mu   sync.Mutex
	from []*Object // packed: the next choice may never be made
}

// learn looks at an object that has been packed, and gives the dictionary that is to be used from now on; nil is the
// same as before.
func (c *choice) learn(o *Object) *s2.Dict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from = append(c.from, o); len(c.from) < ordinary {
		return nil
	}
	from := c.from
	c.from = nil
	c.begins.Store((c.begins.Load()+ordinary)*rarer - ordinary)
	return better(unpacked(from), o.dictionary())
}

// New makes an object of its JSON, which is the caller's again afterwards. The elements of some lists do not say what
// they are: then it is what the type says. Only the metadata are looked into: what is not well-formed elsewhere is an
// error when the object is decoded.
func New(text []byte, typ metav1.TypeMeta) (*Object, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	o, err := s.take(text, typ)
	if err == nil {
		s.pack(o)
	}
	return o, err
}

// Trim is [New] and Open at once: the object without its managed fields, for one who does not keep it. The text is the
// caller's again afterwards. A former state is not nil if one is known: see [jsontext.After].
func Trim(text []byte, former *jsontext.Object) (*jsontext.Object, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if _, err := s.take(text, metav1.TypeMeta{}); err != nil {
		return nil, err
	}
	return jsontext.After(slices.Clone(s.text), former), nil
}

// take has the text of an object without managed fields, and gives what is kept beside it.
func (s *scratch) take(text []byte, typ metav1.TypeMeta) (*Object, error) {
	var metadata jsontext.Member
	typed, isEmpty := typ.Kind == "", true
	whole := jsontext.Members(text, func(m jsontext.Member) {
		isEmpty = false
		switch string(m.Key) {
		case "metadata":
			metadata = m
		case "kind":
			typed = true
		}
	})
	var o Object
	managed, readable := o.read(metadata.Value)
	if !whole || !readable && metadata.Value != nil {
		return nil, fmt.Errorf("reading an object: %w", errMalformed)
	}
	at := metadata.End - len(metadata.Value)
	managed.At, managed.End = at+managed.At, at+managed.End
	s.text = s.text[:0]
	if !typed {
		s.text = fmt.Appendf(s.text, `{"apiVersion":%q,"kind":%q`, typ.APIVersion, typ.Kind)
		if !isEmpty {
			s.text = append(s.text, ',')
		}
		skipped := bytes.IndexByte(text, '{') + 1
		text, managed.At, managed.End = text[skipped:], managed.At-skipped, managed.End-skipped
	}
	s.text = appendWithout(s.text, text, managed)
	return &o, nil
}

// read takes what is kept beside the text, and gives the member with the managed fields, without a value if there are
// none.
func (o *Object) read(metadata []byte) (managed jsontext.Member, whole bool) {
	var name, namespace, uid, version []byte
	whole = jsontext.Members(metadata, func(m jsontext.Member) {
		switch string(m.Key) {
		case "name":
			name = unquoted(m.Value)
		case "namespace":
			namespace = unquoted(m.Value)
		case "uid":
			uid = unquoted(m.Value)
		case "resourceVersion":
			version = unquoted(m.Value)
		case "deletionTimestamp":
			o.deleting = m.Value[0] == '"'
		case "annotations":
			o.endsListing = endsListing(m.Value)
		case "managedFields":
			managed = m
		}
	})
	o.know(name, namespace, uid, version)
	return managed, whole
}

// know keeps what the engine asks for at every event.
func (o *Object) know(name, namespace, uid, version []byte) {
	o.known = string(name) + string(namespace) + string(uid) + string(version)
	o.name = sizeOf(name)
	o.namespace = o.name + sizeOf(namespace)
	o.uid = o.namespace + sizeOf(uid)
	o.version = o.uid + sizeOf(version)
}

func sizeOf(part []byte) uint32 { return uint32(len(part)) } //nolint:gosec // no API server takes names of gigabytes

// endsListing is true for the annotations of the event that ends a listing in a stream.
func endsListing(annotations []byte) bool {
	const key = metav1.InitialEventsAnnotationKey
	return bytes.Contains(annotations, []byte(key)) && jsontext.New(annotations).String(key) == "true"
}

func unquoted(value []byte) []byte {
	switch {
	case value[0] != '"':
		return nil
	case !bytes.Contains(value, []byte{'\\'}):
		return value[1 : len(value)-1]
	}
	var text string
	_ = json.Unmarshal(value, &text) // what is no string is none
	return []byte(text)
}

// appendWithout appends the text of an object without one of its members, and without a comma at its place.
func appendWithout(to, text []byte, member jsontext.Member) []byte {
	if member.Value == nil {
		return append(to, text...)
	}
	before := bytes.TrimRight(text[:member.At], " \t\r\n")
	after, more := bytes.CutPrefix(bytes.TrimLeft(text[member.End:], " \t\r\n"), []byte(","))
	if !more {
		before = bytes.TrimSuffix(before, []byte(","))
	}
	return append(append(to, before...), after...)
}

// scratch is where a text, or a message, is prepared, and compressed.
type scratch struct{ text, metadata, packed []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// pack keeps the compressed text in as much memory as it needs.
func (s *scratch) pack(o *Object) {
	encode := s2.Encode
	if by := o.dictionary(); by != nil {
		encode = by.Encode
	}
	s.packed = slices.Grow(s.packed[:0], s2.MaxEncodedLen(len(s.text)))
	o.packed = string(encode(s.packed[:cap(s.packed)], s.text))
}

func (o *Object) decompress() ([]byte, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.packed = append(s.packed[:0], o.packed...)
	if by := o.dictionary(); by != nil {
		return by.Decode(nil, s.packed)
	}
	return s2.Decode(nil, s.packed)
}
