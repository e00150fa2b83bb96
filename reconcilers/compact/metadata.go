package compact

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetObjectMeta has the metadata by which client-go finds an object, and the end of a listing; all else is left out.
// client-go asks for it several times with every event, so it is made of nothing.
func (o *Object) GetObjectMeta() metav1.Object { return (*metadata)(o) }

// metadata are those of an object, as far as they are known without unpacking it. They never change, so what sets
// something does nothing.
type metadata Object

var _ metav1.Object = (*metadata)(nil)

func (m *metadata) of() *Object { return (*Object)(m) }

func (m *metadata) GetName() string            { return m.of().GetName() }
func (m *metadata) GetNamespace() string       { return m.of().GetNamespace() }
func (m *metadata) GetUID() types.UID          { return m.of().GetUID() }
func (m *metadata) GetResourceVersion() string { return m.of().GetResourceVersion() }

// GetAnnotations has that of the end of a listing.
func (m *metadata) GetAnnotations() map[string]string {
	if m.endsListing {
		return map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return nil
}

func (*metadata) GetGenerateName() string                       { return "" }
func (*metadata) GetGeneration() int64                          { return 0 }
func (*metadata) GetSelfLink() string                           { return "" }
func (*metadata) GetCreationTimestamp() (none metav1.Time)      { return none }
func (*metadata) GetDeletionTimestamp() *metav1.Time            { return nil }
func (*metadata) GetDeletionGracePeriodSeconds() *int64         { return nil }
func (*metadata) GetLabels() map[string]string                  { return nil }
func (*metadata) GetFinalizers() []string                       { return nil }
func (*metadata) GetOwnerReferences() []metav1.OwnerReference   { return nil }
func (*metadata) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }
func (*metadata) SetName(string)                                {}
func (*metadata) SetNamespace(string)                           {}
func (*metadata) SetUID(types.UID)                              {}
func (*metadata) SetResourceVersion(string)                     {}
func (*metadata) SetAnnotations(map[string]string)              {}
func (*metadata) SetGenerateName(string)                        {}
func (*metadata) SetGeneration(int64)                           {}
func (*metadata) SetSelfLink(string)                            {}
func (*metadata) SetCreationTimestamp(metav1.Time)              {}
func (*metadata) SetDeletionTimestamp(*metav1.Time)             {}
func (*metadata) SetDeletionGracePeriodSeconds(*int64)          {}
func (*metadata) SetLabels(map[string]string)                   {}
func (*metadata) SetFinalizers([]string)                        {}
func (*metadata) SetOwnerReferences([]metav1.OwnerReference)    {}
func (*metadata) SetManagedFields([]metav1.ManagedFieldsEntry)  {}
