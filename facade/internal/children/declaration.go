package children

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

var errEnded = errors.New("the handler has returned: children must be declared before that")

// Declaration is what one call of a handler declares, bit by bit: the whole set is known when the call has ended. The
// goroutines of the handler may share it.
type Declaration struct {
	keeper  *Keeper
	parent  Parent
	handler Handler

	mu       sync.Mutex
	ended    bool
	wanted   set
	contents map[identity]content // of them
	absent   set                  // those of them that could not be applied
	failed   bool                 // something was declared that is no child
}

// Begin begins a call of the handler, which declares nothing yet: it has an empty set if it ends so.
func (k *Keeper) Begin(parent Parent, handler Handler) *Declaration {
	return &Declaration{
		keeper: k, parent: parent, handler: handler,
		wanted: set{}, contents: map[identity]content{}, absent: set{},
	}
}

// Ensure applies these as well, see [Keeper.Ensure]. Nothing is deleted before the end.
func (d *Declaration) Ensure(ctx context.Context, given []any) error {
	all, wanted, invalid := d.keeper.prepare(ctx, d.parent, given)
	all, wanted, err := d.add(all, wanted, invalid)
	if err != nil && len(all) == 0 {
		return err
	}
	return errors.Join(err, d.keeper.runPass(ctx, d.parent, d.handler, func(p *pass) error {
		err := p.run(ctx, all, wanted, nil)
		d.note(p.present)
		return err
	}))
}

// add records the declared children as absent. It returns the children to apply: all those that no earlier call has
// declared otherwise.
func (d *Declaration) add(all []declared, wanted set, invalid error) ([]declared, set, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, nil, errEnded
	}
	var failed []error
	all = slices.DeleteFunc(all, func(child declared) bool {
		before, twice := d.contents[child.identity]
		if twice = twice && before != child.content; twice {
			failed = append(failed, fmt.Errorf("%s is %s, which an earlier call of Ensure has declared otherwise: "+
				"declare it once, or the same again", child.place, child.identity))
			delete(wanted, child.identity)
		}
		return twice
	})
	for _, child := range all {
		d.contents[child.identity] = child.content
	}
	d.wanted, d.absent = d.wanted.with(wanted), d.absent.with(wanted)
	err := errors.Join(append([]error{invalid}, failed...)...)
	d.failed = d.failed || err != nil
	return all, wanted, err
}

// note takes up what is there by now.
func (d *Declaration) note(present set) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.absent = d.absent.without(present)
}

// End ends the call, which has succeeded: what the handler has declared before, and not in this call, is deleted,
// unless something that it has declared is not there.
func (d *Declaration) End(ctx context.Context) error {
	d.mu.Lock()
	d.ended = true
	wanted, complete := d.wanted, !d.failed && len(d.absent) == 0
	d.mu.Unlock()
	err := d.keeper.runPass(ctx, d.parent, d.handler, func(p *pass) error {
		if !complete {
			return p.logUndeclared(ctx, wanted)
		}
		return p.run(ctx, nil, nil, wanted)
	})
	if errors.Is(err, ErrDeleting) { // all of them are deleted
		return nil
	}
	return err
}

// logUndeclared reports the children that are no longer declared, and that are left as Ensure has failed.
func (p *pass) logUndeclared(ctx context.Context, wanted set) error {
	known, err := p.recorded(p.parent.own())
	if err != nil {
		return err
	}
	for _, child := range known.without(wanted).sorted() {
		logf.FromContext(ctx).Info("Leaving a child that is not declared any more, as Ensure has failed",
			"child", child.String())
	}
	return nil
}

// content is the digest of a declaration: two declarations with the same content are equal.
type content [sha256.Size]byte

// describe records the declaration of the handler, before labels and references of the parent are added. For a child
// that is made once, all declarations count as equal.
func (d *declared) describe() {
	object := d.object.Object
	if d.rules.UntilDone {
		d.digest = digestOf(object)
	}
	if d.rules.Once {
		object = nil
	}
	d.content = contentOf(map[string]any{"object": object, "rules": d.rules})
}

func contentOf(object map[string]any) content {
	text, err := json.Marshal(object) // which sorts the keys
	if err != nil {
		return content{} // of no object that was made of JSON
	}
	return sha256.Sum256(text)
}
