package informers

import (
	"errors"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

var errReading = errors.New("an informer sends nothing")

// serializer knows how the answers to lists and watches are decoded: protobuf for a kind that has it, JSON for all, as
// the API server may not have the other for the kind.
type serializer struct {
	packer *compact.Packer
	bare   *metav1.TypeMeta // of what nothing but the metadata is kept; nil is whole objects
}

var _ runtime.NegotiatedSerializer = serializer{}

// SupportedMediaTypes are in the order of preference.
func (s serializer) SupportedMediaTypes() (all []runtime.SerializerInfo) {
	if s.packer.Kind() != nil && s.bare == nil {
		in := messages{s.packer}
		all = append(all, runtime.SerializerInfo{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application",
			MediaTypeSubType: "vnd.kubernetes.protobuf", Serializer: in,
			StreamSerializer: &runtime.StreamSerializerInfo{Serializer: in, Framer: protobuf.LengthDelimitedFramer},
		})
	}
	return append(all, runtime.SerializerInfo{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json",
		EncodesAsText: true, Serializer: texts(s),
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: texts(s), Framer: framer{}},
	})
}

// EncoderForVersion is the same for all versions.
func (s serializer) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return encoder
}

// DecoderToVersion is the same for all versions.
func (s serializer) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

// framer cuts JSON.
type framer struct{}

// NewFrameReader reads the events of a watch, one after the other.
func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser { return &frames{from: r} }

// NewFrameWriter is never called.
func (framer) NewFrameWriter(w io.Writer) io.Writer { return w }
