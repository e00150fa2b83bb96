package keys

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/blake2b"
)

// KopfPrefix is the annotation prefix of Kopf's operators without a configured prefix. It is the default under Kopf
// compatibility.
const KopfPrefix = "kopf.zalando.org"

// The keys that the framework uses beside the handler ids. A handler id cannot equal one of them.
const (
	// LastHandled is the key of the last-handled configuration: the diff-base.
	LastHandled = "last-handled-configuration"
	// Handling is the key of the essence with which the first successful handler of an unfinished cause was called.
	Handling = "handling-configuration"
	// HandledUID is the key of the uid of the object to which the other annotations belong.
	HandledUID = "handled-uid"
	// Touch is the key of an annotation whose value does not matter: its change causes a new event.
	Touch = "touch-dummy"
	// ChildrenOf is the beginning of the keys of the children that handlers have declared; the id of the handler
	// follows. ChildrenOfRun is the beginning for handlers in the background.
	ChildrenOf    = "children-of."
	ChildrenOfRun = "children-of-run."
	// DeclaredIn is a key on a child. The value names the records of its parent that list the child.
	DeclaredIn = "declared-in"
	// RetainedBy is a key on a child that survives its parent. The value identifies the parent.
	RetainedBy = "retained-by"
	// HandleNow is the key with which a user requests another run of the handlers, and HandledNow that of the answer.
	HandleNow  = "handle-now"
	HandledNow = "handled-now"
	// Paused is the key with which a user pauses the handling of one object.
	Paused = "paused"
	// FailedHandlers is the key of the handlers that have failed permanently in the last handled change.
	FailedHandlers = "failed-handlers"
)

// controlKeys are the keys that control the handling of one object. They do not belong to its configuration, even if no
// marker of the prefix is on the object yet.
var controlKeys = []string{HandleNow, HandledNow, Paused, FailedHandlers}

const (
	nameLength   = 63 // the limit of Kubernetes for the name after the slash, in characters
	suffixLength = 7  // a dash and six characters of the digest
	digestSize   = 4  // in bytes; a parameter of the hash, which is not the same as truncating a longer one
)

var (
	// Slashes separate handlers from sub-handlers and fields; angle brackets occur in the names of Python's local
	// functions. Nothing else is replaced, even if Kubernetes will refuse it: see [ValidateID].
	idReplacer = strings.NewReplacer("/", ".", "<", "_", ">", "_")

	// This is base64 with the two characters that annotation names do not allow replaced by "-" and ".".
	digestEncoding = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.").
			WithPadding(base64.NoPadding)
)

// AnnotationKeys returns the full annotation keys, "<prefix>/<name>", of a key: a handler id, or one of the keys above.
// It does not depend on an object: see [AnnotationKeysOn]. The order is that of reading: first the [CurrentKey]
// form, then the [LegacyKey] form if v1 is true and the form differs. All of them must be written and purged.
func AnnotationKeys(prefix, key string, v1 bool) []string {
	current := CurrentKey(prefix, key)
	if v1 {
		if legacy := LegacyKey(prefix, key); legacy != current {
			return []string{current, legacy}
		}
	}
	return []string{current}
}

// CurrentKey returns the full annotation key in the current form. The name is the key, with "/" replaced by ".", and
// "<" and ">" by "_". A key that is longer than 63 characters is cut to 56, followed by "-" and 6 characters of its
// digest. The name does not depend on the prefix. Keys that differ only in replaced characters have the same name.
func CurrentKey(prefix, key string) string {
	key = toValidUTF8(key)
	name := idReplacer.Replace(key)
	if utf8.RuneCountInString(key) > nameLength {
		name = cutName(name, nameLength-suffixLength) + digestSuffix(key)
	}
	return prefix + "/" + name
}

// LegacyKey returns the full annotation key in Kopf's legacy form, in which prefix and name together have at most 63
// characters. For a prefix of 55 or more characters, Kubernetes can refuse the key: see [ValidateKey].
func LegacyKey(prefix, key string) string {
	name := idReplacer.Replace(toValidUTF8(key))
	length := nameLength - utf8.RuneCountInString(prefix) - len("/")
	if utf8.RuneCountInString(name) > length {
		// The digest is that of the name after the replacements, unlike in the current form.
		name = cutName(name, length-suffixLength) + digestSuffix(name)
	}
	return prefix + "/" + name
}

// toValidUTF8 replaces invalid UTF-8 in the way JSON encoders do. Otherwise, the annotation would be written under one
// key and read under another.
func toValidUTF8(key string) string {
	return strings.ToValidUTF8(key, "\uFFFD")
}

// cutName returns the first n characters. If n is negative, it removes that many characters from the end instead, at
// most all. This is an accident of Kopf with long prefixes, and such names are stored in clusters.
func cutName(name string, n int) string {
	if n < 0 {
		n = max(0, n+utf8.RuneCountInString(name))
	}
	for offset := range name {
		if n == 0 {
			return name[:offset]
		}
		n--
	}
	return name
}

// digestSuffix returns the digest that makes long keys unique after the cut. It always ends with a letter, as
// annotation names must: only two of the last character's six bits are ever set.
func digestSuffix(key string) string {
	// New fails only for an invalid size or key, and both are constants here.
	hash, err := blake2b.New(digestSize, nil)
	if err != nil {
		panic(err)
	}
	hash.Write([]byte(key))
	return "-" + digestEncoding.EncodeToString(hash.Sum(nil))
}

// ManagedMarker is the name of the annotation that marks a prefix as the memory of an operator. Other operators ignore
// all annotations with a marked prefix.
const ManagedMarker = "kopf-managed"

// ManagedValue is the value of the marker. Operators check only its presence.
const ManagedValue = "yes"

// replicaSetSuffix is appended to the keys on replica sets of deployments. Kubernetes copies annotations from a
// deployment to its replica sets, which would otherwise use the deployment's memory as their own.
const replicaSetSuffix = "-ofDRS"

// kindSuffix and the kind of the object are appended to the keys of an object that separates its memory from a copied
// one.
const kindSuffix = "-of"

// NeedsMarker reports whether [ManagedMarker] must be written with annotations of the prefix. This is necessary for all
// prefixes except [KopfPrefix], which all operators recognise (deviation D-marker; Kopf writes no marker for any prefix
// that starts with "kopf.").
func NeedsMarker(prefix string) bool {
	return prefix != KopfPrefix
}

// MarkerKey returns the full key of the prefix's marker annotation.
func MarkerKey(prefix string) string {
	return prefix + "/" + ManagedMarker
}

// MarkReplicaSet returns the key to use on the object: with "-ofDRS" appended for a ReplicaSet that is owned by a
// Deployment, and otherwise unchanged. A malformed body counts as not owned.
func MarkReplicaSet(body map[string]any, key string) string {
	if kind, _ := body["kind"].(string); kind != "ReplicaSet" {
		return key
	}
	metadata, _ := body["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	for _, reference := range references {
		owner, _ := reference.(map[string]any)
		if kind, _ := owner["kind"].(string); kind == "Deployment" {
			return key + replicaSetSuffix
		}
	}
	return key
}

// AnnotationKeyOn returns the full annotation key of a key on the object, in the current form. Bound is the annotation
// with the uid of the object to which the memory belongs, "<prefix>/handled-uid"; without it, the object cannot have a
// memory that is separate from a copied one. On a ReplicaSet of a Deployment, the name ends with "-ofDRS": Kubernetes
// copies the plain annotation from the Deployment.
func AnnotationKeyOn(body map[string]any, prefix, bound, key string) string {
	return CurrentKey(prefix, markForObject(body, bound, key))
}

// AnnotationKeysOn returns all full annotation keys of a key on the object: see [AnnotationKeyOn] and [AnnotationKeys].
func AnnotationKeysOn(body map[string]any, prefix, bound, key string, v1 bool) []string {
	return AnnotationKeys(prefix, markForObject(body, bound, key), v1)
}

// markForObject returns the key like [MarkReplicaSet]. For an object that separates its memory from a copy of another
// object's memory, it appends "-of" and the kind, such as "create-ofSecret". Bound is the annotation with the uid of
// the object to which the memory belongs, "<prefix>/handled-uid"; an empty one disables this.
//
// An object separates its memory if the annotation with the kind has the object's uid, and the annotation without the
// kind does not. On all other objects, operators that do not support keys with kinds find the same memory as this one.
func markForObject(body map[string]any, bound, key string) string {
	if key = MarkReplicaSet(body, key); bound == "" {
		return key
	}
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	// The memory under the plain keys is the object's own, or there is none.
	if len(annotations) == 0 || uid == "" || annotations[MarkReplicaSet(body, bound)] == uid {
		return key
	}
	if kind, _ := body["kind"].(string); kind != "" && annotations[KindBoundKey(body, bound)] == uid {
		return key + kindSuffix + kind
	}
	return key
}

// KindBoundKey returns the full key of the annotation with which an object separates its memory.
func KindBoundKey(body map[string]any, bound string) string {
	prefix, name, _ := strings.Cut(bound, "/")
	kind, _ := body["kind"].(string)
	return CurrentKey(prefix, MarkReplicaSet(body, name)+kindSuffix+kind)
}

// IsControl reports whether a full annotation key is one of those that control the handling of an object, with or
// without the kind of the object at its end.
func IsControl(prefix, key string) bool {
	name, ok := strings.CutPrefix(key, prefix)
	if !ok || !strings.HasPrefix(name, "/") {
		return false
	}
	return slices.ContainsFunc(controlKeys, func(own string) bool { return isReserved(name[1:], own) })
}

// isReserved reports whether the name is the reserved one, with or without the kind of an object at its end.
func isReserved(name, own string) bool {
	rest, ok := strings.CutPrefix(name, own)
	return ok && (rest == "" || strings.HasPrefix(rest, kindSuffix))
}

// Prefixes is a sorted set of annotation prefixes. Nil is the empty set.
type Prefixes []string

// MarkedPrefixes returns the prefixes under which operators of Kopf and of this framework, including this one, store
// their memory: the marked ones, [KopfPrefix] and its subdomains. Their annotations are not part of the configuration.
// If there are none, it returns nil and does not allocate:
//
//	if marked := keys.MarkedPrefixes(annotations); marked != nil {
//		// copy the annotations without those that are covered
//	}
func MarkedPrefixes(annotations map[string]any) Prefixes {
	var marked Prefixes
	for key := range annotations {
		prefix, name, ok := strings.Cut(key, "/")
		if ok && (name == ManagedMarker || isKopfPrefix(prefix)) {
			marked = append(marked, prefix)
		}
	}
	slices.Sort(marked)
	return slices.Compact(marked)
}

// CoversKey reports whether a full annotation key has one of the prefixes: "<prefix>/…". It is false for keys without a
// slash and for subdomains of a prefix.
func (p Prefixes) CoversKey(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	// A user can mark thousands of prefixes on one object, so this is not a linear search.
	_, found := slices.BinarySearch(p, prefix)
	return found
}

// isKopfPrefix reports whether the prefix is Kopf's own or a subdomain of it.
func isKopfPrefix(prefix string) bool {
	return prefix == KopfPrefix || strings.HasSuffix(prefix, "."+KopfPrefix)
}
