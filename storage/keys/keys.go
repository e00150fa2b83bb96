package keys

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/blake2b"
)

// KopfPrefix is the prefix of annotations of Kopf's operators that were not given their own: the default under Kopf
// compatibility.
const KopfPrefix = "kopf.zalando.org"

// The keys that the framework itself uses, next to the ids of handlers. A handler id cannot be one of them.
const (
	// LastHandled is the key of the essence as it was last handled: the diff-base.
	LastHandled = "last-handled-configuration"
	// Handling is the key of the essence that the first successful handler of an unfinished cause saw.
	Handling = "handling-configuration"
	// HandledUID is the key of the uid of the object that the other annotations belong to.
	HandledUID = "handled-uid"
	// Touch is the key whose value has no meaning: only its change has, as it makes a new event.
	Touch = "touch-dummy"
	// ChildrenOf begins the keys of the children that handlers have declared: the id of the handler follows;
	// ChildrenOfRun begins those of handlers in the background.
	ChildrenOf    = "children-of."
	ChildrenOfRun = "children-of-run."
	// DeclaredIn is the key on a child that names the records of its parent that list it.
	DeclaredIn = "declared-in"
	// RetainedBy is the key on a child that survives its parent, and names that.
	RetainedBy = "retained-by"
)

const (
	nameLength   = 63 // what Kubernetes allows after the slash, in characters
	suffixLength = 7  // a dash and six characters of the digest
	digestSize   = 4  // bytes; a parameter of the hash, not a cut of a longer one
)

var (
	// Slashes separate handlers from sub-handlers and fields, angle brackets come from names of local functions in
	// Python. Nothing else is replaced, even if Kubernetes will refuse it: see ValidateID.
	safe = strings.NewReplacer("/", ".", "<", "_", ">", "_")

	// The usual alphabet with the two characters that annotations do not allow replaced by two that they do.
	digests = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.").
		WithPadding(base64.NoPadding)
)

// Names returns the full annotation keys, "<prefix>/<name>", for a key: a handler id or one of the keys above, already
// marked by [Mark] if it belongs to an object. They come in the order of reading: the [V2] one, then the [V1] one if
// asked for and different. All of them are to be written and purged.
func Names(prefix, key string, v1 bool) []string {
	current := V2(prefix, key)
	if v1 {
		if legacy := V1(prefix, key); legacy != current {
			return []string{current, legacy}
		}
	}
	return []string{current}
}

// V2 returns the full annotation key of the current form: the key as the name, with "/" as ".", "<" and ">" as "_"; one
// longer than 63 characters is cut to 56 and a digest of it appended: "-" and 6 characters. The prefix has no influence
// on the name. Keys that differ only in the characters replaced get the same name.
func V2(prefix, key string) string {
	key = valid(key)
	name := safe.Replace(key)
	if utf8.RuneCountInString(key) > nameLength {
		name = cut(name, nameLength-suffixLength) + suffix(key)
	}
	return prefix + "/" + name
}

// V1 returns the full annotation key of the legacy form of Kopf, where prefix and name together had to fit into 63
// characters. For prefixes of 55 characters and longer, it may be a key that Kubernetes refuses: see [ValidateKey].
func V1(prefix, key string) string {
	name := safe.Replace(valid(key))
	length := nameLength - utf8.RuneCountInString(prefix) - len("/")
	if utf8.RuneCountInString(name) > length {
		// The digest is that of the safe form here, unlike in V2.
		name = cut(name, length-suffixLength) + suffix(name)
	}
	return prefix + "/" + name
}

// valid replaces broken UTF-8 the way JSON encoders do: otherwise, what is written would be read back under another
// key.
func valid(key string) string {
	return strings.ToValidUTF8(key, "\uFFFD")
}

// cut returns the first n characters. A negative n takes that many off the end instead, down to nothing: an accident
// of Kopf with long prefixes, which is persisted by now.
func cut(name string, n int) string {
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

// suffix makes long keys unique after the cut. It always ends with a letter, as annotation names must: of the last
// character's six bits only two are ever set.
func suffix(key string) string {
	// New fails only for a wrong size or a secret too long, and both are constants here.
	hash, err := blake2b.New(digestSize, nil)
	if err != nil {
		panic(err)
	}
	hash.Write([]byte(key))
	return "-" + digests.EncodeToString(hash.Sum(nil))
}

// ManagedMarker is the name of the annotation by which other operators recognise a prefix as an operator's memory, and
// overlook all annotations under it.
const ManagedMarker = "kopf-managed"

// ManagedValue is what operators write into the marker. Only the presence of the marker is ever looked at.
const ManagedValue = "yes"

// copied is appended to the keys on replica sets of deployments. Kubernetes copies annotations from a deployment to its
// replica sets, and they would take the deployment's memory for their own.
const copied = "-ofDRS"

// ofKind and the kind of the object are appended to the keys on objects that keep their memory apart.
const ofKind = "-of"

// NeedsMarker tells whether [ManagedMarker] must be written next to annotations of the prefix: for all prefixes but
// [KopfPrefix], which everyone knows (deviation D-marker; Kopf leaves out all prefixes that start with "kopf.").
func NeedsMarker(prefix string) bool {
	return prefix != KopfPrefix
}

// MarkerKey returns the full annotation key of the prefix's marker.
func MarkerKey(prefix string) string {
	return prefix + "/" + ManagedMarker
}

// Mark returns the key as it is to be used on the object: with "-ofDRS" appended on a ReplicaSet that a Deployment
// owns, unchanged otherwise. A malformed body counts as not owned.
func Mark(body map[string]any, key string) string {
	if kind, _ := body["kind"].(string); kind != "ReplicaSet" {
		return key
	}
	metadata, _ := body["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	for _, reference := range references {
		owner, _ := reference.(map[string]any)
		if kind, _ := owner["kind"].(string); kind == "Deployment" {
			return key + copied
		}
	}
	return key
}

// MarkBound returns the key as [Mark] does. On an object that keeps its memory apart from a copy of another object's,
// "-of" and its kind are appended, such as "create-ofSecret". Bound is the annotation that names the uid of the object
// that the memory belongs to, "<prefix>/handled-uid"; an empty one turns this off.
//
// An object keeps its memory apart if the annotation with the kind names the object, and the one without does not.
// Operators that do not read keys with kinds find the same memory as this one on all other objects.
func MarkBound(body map[string]any, bound, key string) string {
	if key = Mark(body, key); bound == "" {
		return key
	}
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	if len(annotations) == 0 || uid == "" || annotations[Mark(body, bound)] == uid {
		return key
	}
	if kind, _ := body["kind"].(string); kind != "" && annotations[KindBound(body, bound)] == uid {
		return key + ofKind + kind
	}
	return key
}

// KindBound returns the full key of the annotation by which an object keeps its memory apart: see [MarkBound].
func KindBound(body map[string]any, bound string) string {
	prefix, name, _ := strings.Cut(bound, "/")
	kind, _ := body["kind"].(string)
	return V2(prefix, Mark(body, name)+ofKind+kind)
}

// Prefixes is a set of annotation prefixes, sorted; nil is the empty one.
type Prefixes []string

// MarkedPrefixes returns the prefixes under which Kopf's operators and ours, this one included, keep their memory: the
// marked ones, [KopfPrefix] and its subdomains. Annotations covered by them are not part of what users say. Nothing is
// allocated if there are none:
//
//	if marked := keys.MarkedPrefixes(annotations); marked != nil {
//		// copy the annotations without those that are covered
//	}
func MarkedPrefixes(annotations map[string]any) Prefixes {
	var marked Prefixes
	for key := range annotations {
		prefix, name, ok := strings.Cut(key, "/")
		if ok && (name == ManagedMarker || isKopf(prefix)) {
			marked = append(marked, prefix)
		}
	}
	slices.Sort(marked)
	return slices.Compact(marked)
}

// Cover tells whether a full annotation key is under one of the prefixes: "<prefix>/…". Keys without a slash and
// subdomains of a prefix are not.
func (p Prefixes) Cover(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	// Anybody can mark thousands of prefixes on one object.
	_, found := slices.BinarySearch(p, prefix)
	return found
}

func isKopf(prefix string) bool {
	return prefix == KopfPrefix || strings.HasSuffix(prefix, "."+KopfPrefix)
}
