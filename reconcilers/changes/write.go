package changes

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// save writes the account as it is now, with what the attempts remembered and their results. What cannot be written
// is kept in memory, so that the handlers are not called again for it.
func (p *pass) save(ctx context.Context, attempts []*execution.Attempt) error {
	err := p.saveOnce(ctx, attempts)
	if atFault(err) {
		if err = p.sift(ctx, attempts, err); err == nil && !p.gone {
			err = p.saveOnce(ctx, attempts)
		}
	}
	p.memory.unwritten = nil
	if err != nil {
		p.memory.unwritten = &unwritten{
			cause: p.cause, stored: p.stored, state: p.state, attempts: attempts, interim: p.interim,
			purging: p.purging,
		}
	}
	return err
}

func (p *pass) saveOnce(ctx context.Context, attempts []*execution.Attempt) error {
	p.refusal = nil
	patch := patching.Patch{Merge: map[string]any{}}
	written := make([]int, len(attempts))
	for i, a := range attempts {
		var err error
		if written[i], err = include(&patch, a); err != nil {
			return err
		}
	}
	// What is to be removed is only what is there.
	if _, err := p.reread(ctx); err != nil || p.gone {
		return err
	}
	if err := p.compose(ctx, &patch); err != nil {
		return err
	}
	if err := p.send(ctx, patch); err != nil || p.gone {
		return err
	}
	p.report(ctx, attempts)
	for i, a := range attempts {
		a.Written(written[i])
	}
	if err := p.kept(patch.Merge); err != nil {
		return err
	}
	p.state.Written()
	p.attempts, p.pending, p.purging = nil, time.Time{}, false
	return nil
}

func (p *pass) compose(ctx context.Context, patch *patching.Patch) error {
	if p.state.Done() && !p.busy {
		return p.close(ctx, patch)
	}
	return p.continued(patch)
}

// send applies the patch, re-applies it to the fresh object after conflicts, and goes on from the server's answer.
func (p *pass) send(ctx context.Context, patch patching.Patch) error {
	if patch.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.writeTimeout())
	defer cancel()
	seen := p.body
	var fresh map[string]any
	target := patching.Target{Body: seen, StatusSubresource: p.StatusSubresource}
	result, err := p.Writer.ApplyRetrying(ctx, target, patch, func(ctx context.Context) (map[string]any, error) {
		body, err := p.get(ctx, seen)
		if err == nil && uidOf(body) == uidOf(seen) {
			fresh = body
		}
		return body, err
	})
	p.memory.uncertain = uncertain(err)
	if p.gone = result.Gone || errors.Is(err, patching.ErrReplaced); p.gone {
		return nil
	}
	p.refusal = result.StatusRefused
	p.proceed(newest(fresh, result.Body), result.Released)
	return err
}

// proceed goes on from what is now known of the object, even if the write as a whole has failed.
func (p *pass) proceed(body map[string]any, last bool) {
	if body != nil {
		p.body, p.written = body, body
		_ = p.disown() // every round begins with it, and sees to its errors
	}
	if last {
		p.released, p.written = true, nil
	}
}
