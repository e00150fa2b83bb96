package main

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// sqlTable is a table of PostgreSQL or SQLite:
//
//	CREATE TABLE kopf_memory (uid text, key text, value text NOT NULL, PRIMARY KEY (uid, key))
type sqlTable struct{ db *sql.DB }

var _ table = sqlTable{}

// transactionTimeout is the time for one transaction. The object waits for it, and so does a worker.
const transactionTimeout = 5 * time.Second

// Get returns the text of one row.
func (t sqlTable) Get(uid, key string) (text string, found bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	line := t.db.QueryRowContext(ctx, "SELECT value FROM kopf_memory WHERE uid = $1 AND key = $2", uid, key)
	if err := line.Scan(&text); errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	} else if err != nil {
		return "", false, err
	}
	return text, true, nil
}

// Write can be repeated.
func (t sqlTable) Write(rows map[row]*string) error {
	ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	transaction, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = transaction.Rollback() }() // without effect after the commit
	for at, text := range rows {
		if text == nil {
			_, err = transaction.ExecContext(ctx, "DELETE FROM kopf_memory WHERE uid = $1 AND key = $2", at.UID, at.Key)
		} else {
			_, err = transaction.ExecContext(ctx, "INSERT INTO kopf_memory (uid, key, value) VALUES ($1, $2, $3) "+
				"ON CONFLICT (uid, key) DO UPDATE SET value = excluded.value", at.UID, at.Key, *text)
		}
		if err != nil {
			return err
		}
	}
	return transaction.Commit()
}

// Forget removes the rows of an object.
func (t sqlTable) Forget(uid string) error {
	ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	_, err := t.db.ExecContext(ctx, "DELETE FROM kopf_memory WHERE uid = $1", uid)
	return err
}
