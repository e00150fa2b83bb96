package informers

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

var errEncodingUnsupported = errors.New("an informer sends nothing")

// serializer decodes the answers to lists and watches. It offers protobuf for a kind that has messages, and JSON for
// every kind, because an API server may not be able to encode the kind as protobuf.
type serializer struct {
	texts  textDecoder
	events *transport.WatchEvents
}

var _ runtime.NegotiatedSerializer = serializer{}

// SupportedMediaTypes returns the media types in the order of preference.
func (s serializer) SupportedMediaTypes() (all []runtime.SerializerInfo) {
	// The metadata form is only implemented for JSON.
	if s.texts.packer.Kind() != nil && s.texts.metadataType == nil {
		in := messageDecoder{s.texts.packer}
		all = append(all, runtime.SerializerInfo{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application",
			MediaTypeSubType: "vnd.kubernetes.protobuf", Serializer: in,
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: eventCounter{in, s.events}, Framer: protobuf.LengthDelimitedFramer,
			},
		})
	}
	// JSON frames have no length, so their reader needs a limit; protobuf frames bring their own.
	return append(all, runtime.SerializerInfo{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json",
		EncodesAsText: true, Serializer: s.texts,
		StreamSerializer: &runtime.StreamSerializerInfo{
			EncodesAsText: true, Serializer: eventCounter{s.texts, s.events},
			Framer: boundedFramer{json.Framer, s.events},
		},
	})
}

// EncoderForVersion returns the encoder unchanged, because nothing is converted between versions.
func (s serializer) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return encoder
}

// DecoderToVersion returns the decoder unchanged, because nothing is converted between versions.
func (s serializer) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}
